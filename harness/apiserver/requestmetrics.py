"""What each request leaves in the metrics (as/endpoints/metrics/metrics.go, MonitorRequest).

Labels as upstream: the verb in capitals, LIST and WATCH told from GET; the scope is resource, namespace or cluster.
Requests that authentication or authorization refuse are not counted.
"""

from __future__ import annotations

from harness.apiserver.metrics import Metrics
from harness.apiserver.metrics_text import Counter, Gauge, Histogram
from harness.wire.paths import RequestInfo

_VERBS = {"create": "POST", "update": "PUT", "": "OTHER"}
_SIZED = frozenset({"GET", "LIST"})
Labels = tuple[str, str, str, str, str, str, str]
"""verb, group, version, resource, subresource, scope, component"""


def labels_of(info: RequestInfo) -> Labels:
    verb = _VERBS.get(info.verb) or info.verb.upper()
    if not info.is_resource:
        return verb, "", "", "", info.path, "", "apiserver"
    if info.name or info.verb == "create":
        scope = "resource"
    elif info.namespace:
        scope = "namespace"
    else:
        scope = "cluster"
    return verb, info.group, info.version, info.resource, info.subresource, scope, "apiserver"


class _Series:
    """What one combination of labels counts in."""

    __slots__ = ("codes", "duration", "sizes", "sli")

    def __init__(self, duration: Histogram, sli: Histogram, sizes: Histogram | None) -> None:
        self.duration = duration
        self.sli = sli
        self.sizes = sizes
        self.codes: dict[int, Counter] = {}


class RequestMetrics:
    """Keeps the series of the labels that it has seen."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._series: dict[Labels, _Series] = {}
        self._open: dict[Labels, Gauge] = {}

    def answered(
        self, labels: Labels, code: int, duration_s: float, waited_s: float, size_bytes: int
    ) -> None:
        """A unary request has been answered; `waited_s` of `duration_s` it waited for a seat."""
        series = self._of(labels)
        self._count(series, labels, code)
        series.duration.observe(duration_s)
        series.sli.observe(duration_s - waited_s)
        if series.sizes is not None:
            series.sizes.observe(size_bytes)

    def watch_opened(self, labels: Labels) -> None:
        self._gauge(labels).inc()

    def watch_ended(self, labels: Labels, duration_s: float, waited_s: float) -> None:
        """Watches are counted when they end, always as 200."""
        self._gauge(labels).dec()
        self.answered(labels, 200, duration_s, waited_s, 0)

    def initial_events_sent(self, info: RequestInfo, labels: Labels, duration_s: float) -> None:
        """A watch-list has sent its state."""
        family = self._metrics.apiserver_watch_list_duration_seconds
        family.labels(info.group, info.version, info.resource, labels[5]).observe(duration_s)

    def rejected(self, labels: Labels) -> None:
        """Turned away by flow control: counted without a duration."""
        self._count(self._of(labels), labels, 429)
        self._metrics.apiserver_request_terminations_total.labels(*labels, "429").inc()

    def terminated(self, labels: Labels, code: int) -> None:
        """Ended by the server in self-defence: a time-out."""
        self._metrics.apiserver_request_terminations_total.labels(*labels, str(code)).inc()

    def aborted(self, labels: Labels) -> None:
        """The client went before its answer."""
        self._metrics.apiserver_request_aborts_total.labels(
            labels[0], labels[1], labels[2], labels[3], labels[4], labels[5]
        ).inc()

    def _of(self, labels: Labels) -> _Series:
        series = self._series.get(labels)
        if series is None:
            metrics = self._metrics
            verb, *rest = labels
            sizes = metrics.apiserver_response_sizes.labels(*labels) if verb in _SIZED else None
            duration = metrics.apiserver_request_duration_seconds.labels(verb, "", *rest)
            sli = metrics.apiserver_request_sli_duration_seconds.labels(*labels)
            series = self._series[labels] = _Series(duration, sli, sizes)
        return series

    def _count(self, series: _Series, labels: Labels, code: int) -> None:
        counter = series.codes.get(code)
        if counter is None:
            verb, *rest = labels
            counter = self._metrics.apiserver_request_total.labels(verb, "", *rest, str(code))
            series.codes[code] = counter
        counter.inc()

    def _gauge(self, labels: Labels) -> Gauge:
        gauge = self._open.get(labels)
        if gauge is None:
            gauge = self._open[labels] = self._metrics.apiserver_longrunning_requests.labels(*labels)
        return gauge
