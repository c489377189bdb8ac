"""What is computed from the run's record: EtcdMetrics, ResourceUsageSummary, MetricsForE2E.

As with the SLO of API calls, the figures are those of the run's scraper, which no worker sees. So a call says which
time is meant (a `record-window` note), and who owns the record computes the summary at the end of the run
(`harness.load.recordwindows`), or says there why it cannot.
"""

from __future__ import annotations

from harness.clusterloader import e2emetrics, etcdmetrics, resourceusage
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Params,
    Unsupported,
    unknown_action,
)

NOTE = "record-window"
_NAMESPACE = "kube-system"


class _Recorded:
    """`label` is what messages call it: its method, or its name as a part of a bundle."""

    METHOD = ""

    def __init__(self, label: str = "") -> None:
        self._label = label or self.METHOD
        self._start_s: float | None = None
        self._limits = ""

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            self._limits = self._begin(call.params)
            self._start_s = call.runtime.wall_s
        elif action != "gather":
            raise unknown_action(action, "start", "gather")
        elif self._start_s is None:
            raise MeasurementError(f"{self.METHOD} has not been started")
        else:
            self._leave_to_the_record(call, self._start_s)
        return Outcome()

    def _begin(self, params: Params) -> str:
        """The path of a file of limits, "" without. Raises MeasurementError or Unsupported."""
        return ""

    def _leave_to_the_record(self, call: Call, since_s: float) -> None:
        call.runtime.note(
            NOTE,
            method=self.METHOD,
            label=self._label,
            identifier=call.identifier,
            step=call.step,
            from_s=since_s,
            until_s=call.runtime.wall_s,
            limits=self._limits,
        )

    def dispose(self) -> None:
        """Nothing runs."""


class EtcdMetrics(_Recorded):
    """`waitTime`, how often upstream asks for the size of the database, has no effect: each scrape tells it."""

    METHOD = etcdmetrics.METHOD


class ResourceUsageSummary(_Recorded):
    """`host`, where upstream's kubemark finds the master, has no effect: the run knows its members."""

    METHOD = resourceusage.METHOD

    def _begin(self, params: Params) -> str:
        namespace = params.text("namespace", _NAMESPACE)
        if namespace != _NAMESPACE:
            raise Unsupported(
                f"of {namespace}, whose containers only kubelets know; here the control plane's processes are read"
            )
        return params.text(resourceusage.CONSTRAINTS, "")


class MetricsForE2E(_Recorded):
    """Each call gathers, whatever its action, as upstream's does."""

    METHOD = e2emetrics.METHOD

    async def execute(self, call: Call) -> Outcome:
        if call.params.boolean("gatherKubeletsMetrics", False):
            call.skip(f"{self._label} of kubelets", "nobody scrapes the kubelets")
        self._leave_to_the_record(call, call.runtime.wall_s)
        return Outcome()
