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


class WatchSeries:
    """What watches with the same labels count in; one for all of them. `path` is one that asks for such a watch."""

    __slots__ = ("_initial", "_metrics", "_open", "_route", "path")

    def __init__(
        self, metrics: RequestMetrics, opened: Gauge, route: Labels, initial: Histogram | None
    ) -> None:
        _, group, version, resource, *_ = route
        self.path = f"/{f'apis/{group}' if group else 'api'}/{version}/{resource}?watch=true"
        self._metrics = metrics
        self._open = opened
        self._route = route
        self._initial = initial

    def opened(self) -> None:
        self._open.inc()

    def initialized(self, duration_s: float) -> None:
        """A watch-list has sent its state; of others nothing is counted."""
        if self._initial is not None:
            self._initial.observe(duration_s)

    def ended(self, duration_s: float, waited_s: float) -> None:
        """Watches are counted when they end, always as 200."""
        self._open.dec()
        self._metrics.answered(self._route, 200, duration_s, waited_s, 0)


class RequestMetrics:
    """Keeps the series of the labels that it has seen."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._series: dict[Labels, _Series] = {}
        self._open: dict[Labels, Gauge] = {}
        self._watches: dict[tuple[Labels, Labels, bool], WatchSeries] = {}

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

    def watch(self, info: RequestInfo) -> WatchSeries:
        """What watches like this one count in."""
        key = (info_labels(info), route_labels(info), info.query.get("sendInitialEvents") == "true")
        series = self._watches.get(key)
        if series is None:
            labels, route, is_list = key
            family = self._metrics.apiserver_watch_list_duration_seconds
            initial = family.labels(*labels[1:4], labels[5]) if is_list else None
            series = self._watches[key] = WatchSeries(self, self._gauge(labels), route, initial)
        return series

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
