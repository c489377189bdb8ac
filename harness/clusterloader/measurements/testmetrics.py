"""TestMetrics: the bundle that most configs begin and end with (pkg/measurement/common/bundle/test_metrics.go).

Of its parts SystemPodMetrics is done; each other one is skipped under its own name, once.
"""

from __future__ import annotations

from harness.clusterloader.measurements.base import Call, Outcome
from harness.clusterloader.measurements.skipped import reason
from harness.clusterloader.measurements.systempods import SystemPodMetrics

PARTS = (
    "EtcdMetrics",
    "SchedulingMetrics",
    "MetricsForE2E",
    "ResourceUsageSummary",
    "CPUProfile",
    "MemoryProfile",
    "BlockProfile",
    "ClusterOOMsTracker",
)


class TestMetrics:
    __test__ = False  # pytest takes the name for one of its own

    def __init__(self) -> None:
        self._system_pods = SystemPodMetrics()
        self._told = False

    async def execute(self, call: Call) -> Outcome:
        if not self._told:
            self._told = True
            for part in PARTS:
                call.skip(f"TestMetrics {part}", reason(part))
        action = call.params.text("action").removesuffix("SystemPodMetrics")
        return await self._system_pods.execute(call._replace(params=call.params.with_(action=action)))

    def dispose(self) -> None:
        self._system_pods.dispose()
