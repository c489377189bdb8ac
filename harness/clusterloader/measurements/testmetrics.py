"""TestMetrics: the bundle that most configs begin and end with (pkg/measurement/common/bundle/test_metrics.go).

EtcdMetrics, MetricsForE2E, ResourceUsageSummary and SystemPodMetrics are done; each other part is skipped under its own
name, once. As upstream, all parts are called whatever becomes of one of them.
"""

from __future__ import annotations

from harness.clusterloader.measurements.base import (
    Call,
    Measurement,
    MeasurementError,
    Outcome,
    Result,
    Unsupported,
)
from harness.clusterloader.measurements.recorded import EtcdMetrics, MetricsForE2E, ResourceUsageSummary
from harness.clusterloader.measurements.skipped import reason
from harness.clusterloader.measurements.systempods import SystemPodMetrics

NAME = "TestMetrics"
PARTS = ("SchedulingMetrics", "CPUProfile", "MemoryProfile", "BlockProfile", "ClusterOOMsTracker")
"""Those that are skipped."""
_SYSTEM_PODS = "SystemPodMetrics"


class TestMetrics:
    __test__ = False  # pytest takes the name for one of its own

    def __init__(self) -> None:
        recorded = (EtcdMetrics, MetricsForE2E, ResourceUsageSummary)
        self._parts: dict[str, Measurement] = {
            **{part.METHOD: part(f"{NAME} {part.METHOD}") for part in recorded},
            _SYSTEM_PODS: SystemPodMetrics(),
        }
        self._skipped: dict[str, str] = {}

    async def execute(self, call: Call) -> Outcome:
        for part in PARTS:
            self._skip(call, part, reason(part))
        action = call.params.text("action")
        pauses = action.removesuffix(_SYSTEM_PODS)
        if pauses != action:
            return await self._parts[_SYSTEM_PODS].execute(_with_action(call, pauses))
        return await self._all(call, action)

    async def _all(self, call: Call, action: str) -> Outcome:
        results: list[Result] = []
        violations: list[str] = []
        errors: list[str] = []
        for name, part in self._parts.items():
            if name in self._skipped or (name == MetricsForE2E.METHOD and action != "gather"):
                continue
            try:
                outcome = await part.execute(_with_action(call, action))
            except Unsupported as error:
                self._skip(call, name, str(error))
            except MeasurementError as error:
                errors.append(f"action {action} failed for {name} measurement: {error}")
            else:
                results += outcome.results
                violations += [outcome.failure] if outcome.failure else []
        if errors:
            raise MeasurementError("; ".join(errors))
        return Outcome(tuple(results), "; ".join(violations))

    def _skip(self, call: Call, part: str, why: str) -> None:
        """Once."""
        if part not in self._skipped:
            self._skipped[part] = why
            call.skip(f"{NAME} {part}", why)

    def dispose(self) -> None:
        for part in self._parts.values():
            part.dispose()


def _with_action(call: Call, action: str) -> Call:
    return call._replace(params=call.params.with_(action=action))
