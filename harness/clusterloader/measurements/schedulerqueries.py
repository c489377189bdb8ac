"""What the scheduler did, by PromQL: its throughput as apiservers saw it, and its own histograms.

Mirrors cl2/pkg/measurement/common/scheduling_throughput_prometheus.go and prometheus_scheduler_latency.go. The
histograms need a kube-scheduler that Prometheus scrapes; the scheduler of a fleet has none.
"""

from __future__ import annotations

from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Params, Result
from harness.clusterloader.measurements.latencyqueries import go_latency
from harness.clusterloader.measurements.prometheus import Window
from harness.clusterloader.perfdata import PERCENTS
from harness.clusterloader.slo import histogram_quantile

_THROUGHPUT = (
    'max_over_time(sum(irate(apiserver_request_total{{verb="POST", resource="pods", subresource="binding",'
    'code="201"}}[1m]))[{range}:5s])'
)
_BUCKETS = "sum(increase({metric}[{range}])) by (le)"
_HISTOGRAMS = {
    "e2eSchedulingLatency": "scheduler_pod_scheduling_sli_duration_seconds_bucket",
    "schedulingLatency": "scheduler_scheduling_algorithm_duration_seconds_bucket",
    "preemptionEvaluationLatency": "scheduler_scheduling_algorithm_preemption_evaluation_seconds_bucket",
}
_EXTENSION_POINTS = (
    "PreFilter",
    "Filter",
    "PostFilter",
    "PreScore",
    "Score",
    "PreBind",
    "Bind",
    "PostBind",
    "Reserve",
    "Unreserve",
    "Permit",
)
_AT_POINT = 'scheduler_framework_extension_point_duration_seconds_bucket{{extension_point="{point}"}}'


class SchedulingThroughput:
    """The most bindings a second."""

    METHOD = "SchedulingThroughputPrometheus"

    def configure(self, params: Params) -> None:
        params.number("threshold", 0.0)

    async def gather(self, window: Window, call: Call) -> Outcome:
        samples = await window.vector(_THROUGHPUT.format(range=window.range))
        if not samples:
            return Outcome(skipped="Prometheus has no two scrapes with bindings of pods within a minute")
        if len(samples) != 1:
            raise MeasurementError(f"got unexpected number of samples: {len(samples)}")
        most = samples[0].value
        threshold = call.params.number("threshold", 0.0)
        failure = ""
        if threshold > 0 and most < threshold:
            failure = f"scheduler throughput_prometheus: actual throughput {most:f} lower than threshold {threshold:f}"
        return Outcome((Result(self.METHOD, {"max": most, "unit": "pods/s"}, {"max": most}),), failure)


class SchedulingMetrics:
    """Quantiles of the scheduler's histograms, between start and gather."""

    METHOD = "PrometheusSchedulingMetrics"

    def configure(self, params: Params) -> None:
        """It has no parameters."""

    async def gather(self, window: Window, call: Call) -> Outcome:
        metrics = dict(_HISTOGRAMS)
        metrics.update((point, _AT_POINT.format(point=point)) for point in _EXTENSION_POINTS)
        found = {name: await _buckets(window, metric) for name, metric in metrics.items()}
        latencies = {name: _latency(buckets) for name, buckets in found.items()}
        content: dict[str, object] = {name: go_latency(latencies[name]) for name in _HISTOGRAMS}
        content["frameworkExtensionPointDuration"] = {
            point: go_latency(latencies[point]) for point in _EXTENSION_POINTS
        }
        values: dict[str, object] = {"unit": "ms"}
        for name in _HISTOGRAMS:
            values.update((f"{name}_perc{percent}", s * 1000) for percent, s in latencies[name].items())
        skipped = "" if any(found.values()) else "Prometheus scrapes no kube-scheduler"
        result = Result(f"{call.identifier}_{self.METHOD}", values, content)
        return Outcome((result,), skipped=skipped)


async def _buckets(window: Window, metric: str) -> dict[float, float]:
    """Whole counts by upper bound."""
    samples = await window.vector(_BUCKETS.format(metric=metric, range=window.range))
    return {float(sample.labels["le"]): int(sample.value) for sample in samples if "le" in sample.labels}


def _latency(buckets: dict[float, float]) -> dict[int, float]:
    return {percent: histogram_quantile(percent / 100, buckets) for percent in PERCENTS}
