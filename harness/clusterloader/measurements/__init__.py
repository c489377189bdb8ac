"""Measurements: what a test observes and waits for, by ClusterLoader2's method names.

Here belongs one file for each method that is simulated, mirroring clusterloader2/pkg/measurement/common, and the table
of them (`methods`). What is PromQL (`prometheus`) is asked of the run's Prometheus, where there is one. What needs a
container that really runs or a shell on a node is skipped, with the reason that `skipped` has for it; the executor says
so in the run's record.
"""

from __future__ import annotations

from harness.clusterloader.measurements.methods import METHODS, PROMETHEUS

__all__ = ["METHODS", "PROMETHEUS"]
