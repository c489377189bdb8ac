"""ClusterLoader2's configs, run unmodified: the scenario language of swarmlet.

Here belongs what a config means: templates, schema, overrides, tuning sets, steps, measurements. Mirrors
kubernetes/perf-tests at 4b341544, directory clusterloader2. It is pure: the executor is a `Machine` that asks for
requests and timers and is told what came of them; sockets, clocks and random sources are given to it. What a run's
record does with its notes, and how a report looks, does not belong here.
"""

from harness.clusterloader.config import Config, describe
from harness.clusterloader.executor import ClusterLoader, ClusterLoaderOptions
from harness.clusterloader.loading import load_config
from harness.clusterloader.suite import SuiteTest, is_suite, load_suite
from harness.documents.files import Files

__all__ = [
    "ClusterLoader",
    "ClusterLoaderOptions",
    "Config",
    "Files",
    "SuiteTest",
    "describe",
    "is_suite",
    "load_config",
    "load_suite",
]
