"""The SLO of API calls by upstream's own queries, where a Prometheus scraped the members.

Mirrors cl2/pkg/measurement/common/slos/api_responsiveness_prometheus.go (gatherAPICalls, newFromSamples). What
`harness.clusterloader.slo` computes from the run's own scrapes is the same, but for PromQL's extrapolation.
"""

from __future__ import annotations

from harness.clusterloader.measurements.prometheus import Window
from harness.clusterloader.perfdata import PERCENTS
from harness.clusterloader.slo import WARM_UP_S, Call, Latency
from harness.wire.promql import VectorSample, range_of

RECORDED = "apiserver:apiserver_request_sli_latency_1m:histogram_quantile"
"""The recording rule of upstream's Prometheus that the form by the minute looks at."""
RECORDED_OF = "apiserver_request_sli_duration_seconds"
BY = "resource,  subresource, verb, scope, le"

_FILTERS = 'verb!="WATCH", subresource!~"log|exec|portforward|attach|proxy"'
_SIMPLE = (
    f"histogram_quantile({{q:.2f}}, sum(rate({RECORDED_OF}_bucket{{{{{_FILTERS}}}}}[{{range}}])) by ({BY}))"
)
_BY_THE_MINUTE = f"quantile_over_time(0.99, {RECORDED}{{{{{_FILTERS}}}}}[{{range}}])"
_WATCH_LISTS = "apiserver_watch_list_duration_seconds"
_WATCH_LIST = (
    f"histogram_quantile({{q:.2f}}, sum(rate({_WATCH_LISTS}_bucket{{{{}}}}[{{range}}])) "
    "by (group, version, resource, scope, le))"
)
_COUNT = "sum(increase({metric}{{{filters}}}[{range}])) by (resource, subresource, scope, verb)"
_FAST = (
    'verb!~"WATCH|LIST", subresource!="proxy", le="1"',
    'scope!="cluster", verb="LIST", le="5"',
    'scope="cluster", verb="LIST", le="30"',
)
_WATCHLIST = "WATCHLIST"
_LEAST_S = 60.0  # of the form by the minute
_PERCENT_OF = {"0.5": 50, "0.50": 50, "0.9": 90, "0.90": 90, "0.99": 99}


class _Figures:
    """What is known of one kind of call."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = {}
        self.count = 0
        self.fast: int | None = None  # for verbs whose calls are never slow there is no such count

    def latency(self, call: Call) -> Latency:
        p50, p90, p99 = (self.seconds.get(percent, 0.0) for percent in PERCENTS)
        slow = 0 if self.fast is None else self.count - self.fast
        return Latency(call, p50, p90, p99, self.count, slow)


class _Calls:
    def __init__(self) -> None:
        self._calls: dict[Call, _Figures] = {}

    def of(self, sample: VectorSample, verb: str = "") -> _Figures:
        labels = sample.labels
        call = Call(
            labels.get("resource", ""),
            labels.get("subresource", ""),
            verb or labels.get("verb", ""),
            labels.get("scope", ""),
        )
        return self._calls.setdefault(call, _Figures())

    def latencies(self) -> list[Latency]:
        """The slowest first; the queries of fast calls find some, of logs say, that the SLO does not count."""
        found = [
            figures.latency(call) for call, figures in self._calls.items() if figures.seconds or figures.count
        ]
        return sorted(found, key=lambda item: (-item.perc99_s, item.call))

    @property
    def any_latency(self) -> bool:
        return any(figures.seconds for figures in self._calls.values())


async def latencies(window: Window, *, simple: bool) -> list[Latency]:
    """Every kind of call of a window; empty where Prometheus knows no latency of any. Raises MeasurementError."""
    calls = _Calls()
    if simple:
        await _simple(window, calls)
    else:
        await _by_the_minute(window, calls)
    if not calls.any_latency:
        return []
    for metric, filters, verb in ((RECORDED_OF, _FILTERS, ""), (_WATCH_LISTS, "", _WATCHLIST)):
        query = _COUNT.format(metric=f"{metric}_count", filters=filters, range=window.range)
        for sample in await window.vector(query):
            if count := round(sample.value):
                calls.of(sample, verb).count = count
    for filters in _FAST:
        query = _COUNT.format(metric=f"{RECORDED_OF}_bucket", filters=filters, range=window.range)
        for sample in await window.vector(query):
            calls.of(sample).fast = round(sample.value)
    return calls.latencies()


async def _simple(window: Window, calls: _Calls) -> None:
    for percent in PERCENTS:
        for query, verb in ((_SIMPLE, ""), (_WATCH_LIST, _WATCHLIST)):
            for sample in await window.vector(query.format(q=percent / 100, range=window.range)):
                calls.of(sample, verb).seconds[percent] = sample.value


async def _by_the_minute(window: Window, calls: _Calls) -> None:
    length_s = max(_LEAST_S, window.until_s - window.since_s - WARM_UP_S)
    for sample in await window.vector(_BY_THE_MINUTE.format(range=range_of(length_s))):
        percent = _PERCENT_OF.get(sample.labels.get("quantile", ""))
        if percent is not None:
            calls.of(sample).seconds[percent] = sample.value
