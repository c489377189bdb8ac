"""Measurements that are the quantiles of one histogram, by PromQL: network programming, DNS, the metrics server.

Mirrors cl2/pkg/measurement/common/slos/network_programming.go, nodelocaldns_latency_prometheus.go and
metrics_server_prometheus.go. A histogram that nobody scrapes is not measured, and the run says so; upstream calls that
an unexpected number of samples.
"""

from __future__ import annotations

from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Params, Result
from harness.clusterloader.measurements.prometheus import Window
from harness.clusterloader.perfdata import PERCENTS, DataItem, PerfData
from harness.wire.promql import VectorSample

_PROGRAMMED = "kubeproxy:kubeproxy_network_programming_duration:histogram_quantile"
"""A recording rule of upstream's Prometheus."""
_NETWORK_PROGRAMMING = f"quantile_over_time(0.99, {_PROGRAMMED}{{{{}}}}[{{range}}])"
_DNS = "histogram_quantile({q}, sum(rate(coredns_dns_request_duration_seconds_bucket[{range}])) by (le))"
_METRICS_SERVER = (
    "histogram_quantile({q}, sum(rate(apiserver_request_sli_duration_seconds_bucket"
    '{{group="metrics.k8s.io",resource="pods",scope="cluster"}}[{range}])) by (le))'
)
_DNS_THRESHOLD_S = 5.0

Seconds = dict[int, float]
"""Seconds by percent."""


class NetworkProgrammingLatency:
    """The 0.99 quantile over time of what kube-proxies' quantiles were (a recording rule)."""

    METHOD = "NetworkProgrammingLatency"

    def __init__(self) -> None:
        self._threshold_s = 0.0
        self._enforced = False

    def configure(self, params: Params) -> None:
        self._threshold_s = params.duration("threshold")
        self._enforced = params.boolean("enableViolations", False)

    async def gather(self, window: Window, call: Call) -> Outcome:
        samples = await window.vector(_NETWORK_PROGRAMMING.format(range=window.range))
        if not samples:
            return Outcome(skipped="Prometheus has no recording rule's samples of kube-proxies")
        if len(samples) != len(PERCENTS):
            raise MeasurementError(f"got unexpected number of samples: {len(samples)}")
        found = {round(100 * _quantile_label(sample)): sample.value for sample in samples}
        item = _item(self.METHOD, found)
        failure = _above(found, self._threshold_s) if self._enforced else ""
        failure = f"Network Programming Latency: {failure}" if failure else ""
        return Outcome((Result(self.METHOD, _values(found), PerfData("v1", [item])),), failure)


class NodeLocalDNSLatency:
    METHOD = "NodeLocalDNSLatencyPrometheus"

    def configure(self, params: Params) -> None:
        params.duration("threshold", _DNS_THRESHOLD_S)

    async def gather(self, window: Window, call: Call) -> Outcome:
        found = await _quantiles(window, _DNS)
        if not found:
            return Outcome(skipped="Prometheus scrapes no CoreDNS")
        most_s = call.params.duration("threshold", _DNS_THRESHOLD_S)
        failure = ""
        if found[99] > most_s:
            failure = (
                f"NodelocalDNS dns_request_duration_seconds: 99th percentile latency {found[99]:.3f}s, "
                f"allowed are {most_s:g}s"
            )
        return Outcome((Result(self.METHOD, _values(found), _item(self.METHOD, found)),), failure)


class MetricsServer:
    METHOD = "MetricsServerPrometheus"

    def configure(self, params: Params) -> None:
        """It has no parameters."""

    async def gather(self, window: Window, call: Call) -> Outcome:
        found = await _quantiles(window, _METRICS_SERVER)
        if not found:
            return Outcome(skipped="no request for metrics.k8s.io was served: there is no metrics-server")
        return Outcome((Result(self.METHOD, _values(found), go_latency(found)),))


def go_latency(found: Seconds) -> dict[str, int]:
    """A LatencyMetric as Go's JSON has it: whole nanoseconds."""
    return {f"Perc{percent}": round(found.get(percent, 0.0) * 1e9) for percent in PERCENTS}


async def _quantiles(window: Window, query: str) -> Seconds:
    """Empty where there is nothing to take a quantile of. Raises MeasurementError."""
    found: Seconds = {}
    for percent in PERCENTS:
        samples = await window.vector(query.format(q=f"{percent / 100:g}", range=window.range))
        if len(samples) > 1:
            raise MeasurementError(f"got unexpected number of samples: {len(samples)}")
        if samples:
            found[percent] = samples[0].value
    return found if len(found) == len(PERCENTS) else {}


def _quantile_label(sample: VectorSample) -> float:
    text = sample.labels.get("quantile", "")
    try:
        return float(text)
    except ValueError:
        raise MeasurementError(f"a sample whose label quantile is {text!r}") from None


def _above(found: Seconds, most_s: float) -> str:
    """The first percentile above the threshold (latency_metric.go: VerifyThreshold)."""
    for percent in PERCENTS:
        if found.get(percent, 0.0) > most_s:
            return f"too high latency {percent}th percentile: got {found[percent]:.3f}s expected: {most_s:g}s"
    return ""


def _item(metric: str, found: Seconds) -> DataItem:
    data = {f"Perc{percent}": found.get(percent, 0.0) * 1000 for percent in PERCENTS}
    return DataItem(data, "ms", {"Metric": metric})


def _values(found: Seconds) -> dict[str, object]:
    return {"unit": "ms", **{f"perc{percent}": found.get(percent, 0.0) * 1000 for percent in PERCENTS}}
