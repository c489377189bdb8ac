"""What each request leaves in the metrics (as/endpoints/metrics/metrics.go).

Two readings of a request: what has been answered is counted under its route's scope (MonitorRequest; installer.go,
requestScope), where a list or watch selected by metadata.name is one of its namespace; what is long-running, turned
away, timed out or aborted under the scope of its request info (CleanScope), where the selected name makes it one of a
resource, and such a list a GET. Watch-lists are WATCH, deletecollection is DELETE. Requests that authentication or
authorization refuse are not counted, nor those that no route serves.
"""

from __future__ import annotations

from harness.apiserver.metrics.families import Metrics
from harness.apiserver.metrics.text import Counter, Gauge, Histogram
from harness.wire.paths import RequestInfo

_VERBS = {
    "get": "GET",
    "head": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
    "post": "POST",
    "put": "PUT",
}
_SIZED = frozenset({"GET", "LIST"})
Labels = tuple[str, str, str, str, str, str, str]
"""verb, group, version, resource, subresource, scope, component"""


def route_labels(info: RequestInfo) -> Labels:
    """As MonitorRequest has them."""
    return _labels(info, len(info.parts) > 1)


def info_labels(info: RequestInfo) -> Labels:
    """As RecordLongRunning, RecordDroppedRequest, RecordRequestTermination and RecordRequestAbort have them."""
    return _labels(info, info.name != "")


def _labels(info: RequestInfo, named: bool) -> Labels:
    verb = _VERBS.get(info.verb, "OTHER")
    if not info.is_resource:
        return verb, "", "", "", info.path, "", "apiserver"
    if named or info.verb == "create":
        scope = "resource"
    elif info.namespace:
        scope = "namespace"
    else:
        scope = "cluster"
    if named and verb == "LIST":
        verb = "GET"
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

    def watch_opened(self, info: RequestInfo) -> None:
        self._gauge(info_labels(info)).inc()

    def watch_ended(self, info: RequestInfo, duration_s: float, waited_s: float) -> None:
        """Watches are counted when they end, always as 200."""
        self._gauge(info_labels(info)).dec()
        self.answered(route_labels(info), 200, duration_s, waited_s, 0)

    def initial_events_sent(self, info: RequestInfo, duration_s: float) -> None:
        """A watch-list has sent its state."""
        family = self._metrics.apiserver_watch_list_duration_seconds
        family.labels(info.group, info.version, info.resource, info_labels(info)[5]).observe(duration_s)

    def rejected(self, info: RequestInfo) -> None:
        """Turned away by flow control: counted without a duration."""
        verb, *rest = info_labels(info)
        self._metrics.apiserver_request_total.labels(verb, "", *rest, "429").inc()
        self.terminated(info, 429)

    def terminated(self, info: RequestInfo, code: int) -> None:
        """Ended by the server in self-defence: turned away, or timed out."""
        self._metrics.apiserver_request_terminations_total.labels(*info_labels(info), str(code)).inc()

    def aborted(self, info: RequestInfo) -> None:
        """The client went before its answer."""
        self._metrics.apiserver_request_aborts_total.labels(*info_labels(info)[:6]).inc()

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
