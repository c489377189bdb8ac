"""Measurements: what a test observes and waits for, by ClusterLoader2's method names.

Here belongs one file for each method that is simulated, mirroring clusterloader2/pkg/measurement/common. A method that
is not here is skipped by the executor, which says so in the run's record; what needs a Prometheus or a shell on a
node does not belong here.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.clusterloader.measurements.base import Measurement
from harness.clusterloader.measurements.controlledpods import WaitForControlledPodsRunning
from harness.clusterloader.measurements.podstartup import PodStartupLatency
from harness.clusterloader.measurements.runningpods import WaitForRunningPods
from harness.clusterloader.measurements.schedulingthroughput import SchedulingThroughput
from harness.clusterloader.measurements.sleep import Sleep
from harness.clusterloader.measurements.timer import Timer

METHODS: dict[str, Callable[[], Measurement]] = {
    "PodStartupLatency": PodStartupLatency,
    "SchedulingThroughput": SchedulingThroughput,
    "Sleep": Sleep,
    "Timer": Timer,
    "WaitForControlledPodsRunning": WaitForControlledPodsRunning,
    "WaitForRunningPods": WaitForRunningPods,
}
"""What is simulated: the method of a config to the class that does it."""
