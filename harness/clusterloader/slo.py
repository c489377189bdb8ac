"""The SLO of API calls, from the members' histograms (APIResponsivenessPrometheus).

Mirrors pkg/measurement/common/slos/api_responsiveness_prometheus.go. Its simple form takes the quantiles of everything
between start and end; the other one the 0.99 quantile, over time, of what the quantiles were minute by minute (the
recording rule apiserver:apiserver_request_sli_latency_1m, looked at every 30 s), the first five minutes left out.
Increases here are the counters' own, a restart counted from zero; Prometheus' are extrapolated to the window's ends.
Upstream sums over all members; here `latencies` takes whichever series it is given, so that members are told apart.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import yaml

from harness.clusterloader.durations import parse_duration
from harness.clusterloader.perfdata import DataItem, PerfData
from harness.clusterloader.series import Series

REQUESTS = "apiserver_request_sli_duration_seconds_bucket"
WATCH_LISTS = "apiserver_watch_list_duration_seconds_bucket"
SINGLE_RESOURCE_S = 1.0  # the SLO of a call for one object
_OTHERWISE_S = 30.0
_UNCOUNTED = frozenset(
    {"log", "exec", "portforward", "attach", "proxy"}
)  # subresources that last as long as asked
_QUANTILES = (0.5, 0.9, 0.99)
_RATE_S, _EVERY_S = 60.0, 30.0
WARM_UP_S = 300.0  # latencyWindowSize
_SHOWN = 5  # kinds of calls that the screen shows, the slowest first


class Limits(msgspec.Struct, frozen=True):
    """Parameters of a gather. `custom_s` has thresholds by ``resource|subresource|verb|scope``."""

    name: str = "APIResponsivenessPrometheus"
    enforced: bool = False
    simple: bool = False
    allowed_slow_calls: int = 0
    single_resource_s: float = SINGLE_RESOURCE_S
    custom_s: dict[str, float] = {}


class Call(NamedTuple):
    """Which requests: the labels by which upstream sums."""

    resource: str
    subresource: str
    verb: str
    scope: str

    @property
    def key(self) -> str:
        return "|".join(self)


class Latency(NamedTuple):
    """Of one kind of call: quantiles in seconds, how many calls there were and how many of them slow."""

    call: Call
    perc50_s: float
    perc90_s: float
    perc99_s: float
    calls: int
    slow: int


_Histogram = dict[float, float]
"""Count of what took at most so many seconds, by that bound."""


def latencies(series: Iterable[Series], since: float, until: float, *, simple: bool = True) -> list[Latency]:
    """Every kind of call between two times, the slowest first."""
    grouped: defaultdict[Call, list[tuple[float, Series]]] = defaultdict(list)
    for item in series:
        call = _call(item.labels)
        if call is not None:
            grouped[call].append((float(item.labels["le"]), item))
    found = []
    for call, buckets in grouped.items():
        whole = _histogram(buckets, since, until)
        count = whole.get(math.inf, 0.0)
        if count:
            quantiles = _whole(whole) if simple else _by_the_minute(buckets, since, until)
            slow = max(0, round(count) - round(whole.get(_slow_above_s(call), count)))
            found.append(Latency(call, *quantiles, round(count), slow))
    return sorted(found, key=lambda item: (-item.perc99_s, item.call))


def _call(labels: Mapping[str, str]) -> Call | None:
    """None for what the SLO does not count."""
    name = labels.get("__name__", REQUESTS)
    verb = "WATCHLIST" if name == WATCH_LISTS else labels.get("verb", "")
    subresource = labels.get("subresource", "")
    if verb == "WATCH" or subresource in _UNCOUNTED:
        return None
    return Call(labels.get("resource", ""), subresource, verb, labels.get("scope", ""))


def _slow_above_s(call: Call) -> float:
    """The bucket up to which a call is fast (filterGetAndMutating, filterNamespaceList, filterClusterList)."""
    if call.verb != "LIST":
        return 1.0
    return 30.0 if call.scope == "cluster" else 5.0


def _histogram(buckets: list[tuple[float, Series]], since: float, until: float) -> _Histogram:
    found: defaultdict[float, float] = defaultdict(float)
    for bound, series in buckets:
        found[bound] += series.increase(since, until)
    return dict(found)


def _whole(histogram: _Histogram) -> tuple[float, float, float]:
    p50, p90, p99 = (histogram_quantile(q, histogram) for q in _QUANTILES)
    return p50, p90, p99


def _by_the_minute(
    buckets: list[tuple[float, Series]], since: float, until: float
) -> tuple[float, float, float]:
    length_s = max(_RATE_S, until - since - WARM_UP_S)
    looks = math.floor(length_s / _EVERY_S) + 1
    ends = [until - _EVERY_S * number for number in range(looks)]
    minutes = [_histogram(buckets, end - _RATE_S, end) for end in ends]
    kept = [_whole(minute) for minute in minutes if minute.get(math.inf, 0.0)]
    if not kept:  # called in the time left out only
        return 0.0, 0.0, 0.0
    p50, p90, p99 = (_over_time(0.99, sorted(values)) for values in zip(*kept, strict=True))
    return p50, p90, p99


def _over_time(q: float, ordered: Sequence[float]) -> float:
    """PromQL's quantile_over_time: between two values, by rank."""
    rank = q * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] * (1 - (rank - low)) + ordered[high] * (rank - low)


def histogram_quantile(q: float, histogram: _Histogram) -> float:
    """PromQL's: linear within a bucket from 0 upwards; what is above the last bound is that bound. 0 of nothing."""
    bounds = sorted(histogram)
    total = histogram.get(math.inf, 0.0)
    if not total or len(bounds) < 2:
        return 0.0
    rank = q * total
    below, start = 0.0, 0.0
    for bound in bounds:
        count = max(below, histogram[bound])
        if count >= rank:
            if bound == math.inf:
                return bounds[-2]
            return start + (bound - start) * (rank - below) / (count - below) if count > below else bound
        below, start = count, bound
    return bounds[-2]


def perf_data(found: Iterable[Latency]) -> PerfData:
    """As ClusterLoader2 writes it for perf-dash."""
    return PerfData("v1", [_item(latency) for latency in found])


def _item(latency: Latency) -> DataItem:
    call = latency.call
    data = {
        "Perc50": latency.perc50_s * 1000,
        "Perc90": latency.perc90_s * 1000,
        "Perc99": latency.perc99_s * 1000,
    }
    labels = {
        "Count": str(latency.calls),
        "Resource": call.resource,
        "Scope": call.scope,
        "SlowCount": str(latency.slow),
        "Subresource": call.subresource,
        "Verb": call.verb,
    }
    return DataItem(data, "ms", labels)


def figures(found: Sequence[Latency]) -> list[tuple[str, float]]:
    """The slowest kinds of calls for a person, each with its perc99 in milliseconds."""
    return [
        (
            f"{item.call.verb} {item.call.resource} {item.call.scope} perc99, ms".replace("  ", " "),
            item.perc99_s * 1000,
        )
        for item in found[:_SHOWN]
    ]


def violations(found: Iterable[Latency], limits: Limits) -> list[str]:
    """What is above its threshold; every quantile must be below it."""
    bad = []
    for latency in found:
        default_s = limits.single_resource_s if latency.call.scope == "resource" else _OTHERWISE_S
        limit_s = limits.custom_s.get(latency.call.key, default_s)
        forgiven = 0 < limits.allowed_slow_calls >= latency.slow
        slowest_s = max(latency.perc50_s, latency.perc90_s, latency.perc99_s)
        if slowest_s > limit_s and not forgiven:
            call = latency.call
            what = f"{call.verb} {call.resource}{'/' if call.subresource else ''}{call.subresource}"
            bad.append(
                f"{what} (scope {call.scope or 'none'}): perc99 {latency.perc99_s:.3f}s of {latency.calls} calls, "
                f"allowed are {limit_s:g}s"
            )
    return bad


class _Custom(msgspec.Struct):
    """An entry of customThresholds."""

    threshold: str
    resource: str = ""
    subresource: str = ""
    verb: str = ""
    scope: str = ""


def custom_limits(text: str) -> dict[str, float]:
    """Thresholds in seconds by the call's key, from YAML in a parameter. Raises ValueError."""
    try:
        entries = msgspec.convert(yaml.safe_load(text) or [], list[_Custom])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    found = {}
    for entry in entries:
        seconds = parse_duration(entry.threshold)
        if seconds <= 0:
            raise ValueError(f"threshold {entry.threshold!r} is not allowed; it must be positive")
        found[Call(entry.resource, entry.subresource, entry.verb, entry.scope).key] = float(seconds)
    return found
