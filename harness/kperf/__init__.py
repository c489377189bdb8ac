"""Load profiles of kperf, run as kperf runs them, with what it does not measure.

Here belongs what a profile means: its keys and their rules, which requests it makes and when each is due, what a report
says. Mirrors Azure/kperf at 16e7cf8 (quoted as kperf/...). Pure: a runner is a `Machine` of harness.client that asks
for requests and timers; connections, clocks and random sources are given to it. How a run is spread over processes, and
the record, do not belong here (`harness.load`).

What differs from kperf, and why, is docs/kperf.md.
"""

from harness.kperf.describe import describe
from harness.kperf.loading import is_profile, load_profile
from harness.kperf.profile import LoadProfile, Spec
from harness.kperf.runner import Runner, RunnerOptions
from harness.kperf.schedule import Share

__all__ = [
    "LoadProfile",
    "Runner",
    "RunnerOptions",
    "Share",
    "Spec",
    "describe",
    "is_profile",
    "load_profile",
]
