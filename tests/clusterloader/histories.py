"""What two members' histograms of requests were over ten minutes: made up, the same each time, scraped every 5 s.

One member restarts in between, and its counters begin anew. The windows of tests lie within, and do not end at a
scrape, as they would not in a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.clusterloader.series import Series
from harness.clusterloader.slo import REQUESTS, WATCH_LISTS

EVERY_S = 5
SCRAPES = 132  # 11 minutes
SINCE_S, UNTIL_S = 41.7, 642.3
"""The window, counted from the first scrape."""
_RESTARTS_AT = 70  # the scrape at which member-1 begins anew
_BOUNDS = (0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 45.0)


class _Kind(NamedTuple):
    """Calls that come between two scrapes: how many end within each bound, and the rest beyond the last."""

    labels: dict[str, str]
    by_bound: tuple[int, ...]
    family: str = REQUESTS

    @property
    def count(self) -> int:
        return sum(self.by_bound)


def _labels(verb: str, resource: str, scope: str, subresource: str = "") -> dict[str, str]:
    return {"verb": verb, "resource": resource, "scope": scope, "subresource": subresource, "group": "g"}


KINDS = (
    _Kind(_labels("POST", "pods", "resource"), (90, 7, 2, 0, 3, 0, 0, 0)),
    _Kind(_labels("GET", "leases", "resource"), (400, 20, 0, 0, 0, 0, 0, 0)),
    _Kind(_labels("LIST", "pods", "namespace"), (3, 4, 5, 5, 2, 1, 0, 0)),
    _Kind(_labels("LIST", "nodes", "cluster"), (0, 0, 1, 2, 3, 3, 10, 1)),
    _Kind(_labels("WATCH", "pods", "cluster"), (0, 0, 0, 0, 0, 0, 5, 5)),
    _Kind(_labels("GET", "pods", "resource", "log"), (0, 0, 0, 0, 9, 9, 9, 9)),
    _Kind(
        {"group": "", "version": "v1", "resource": "configmaps", "scope": "cluster"},
        (1, 2, 3, 0, 0, 0, 0, 0),
        WATCH_LISTS,
    ),
)  # fmt: skip


def histories(epoch_s: float) -> dict[str, list[Series]]:
    """The buckets by member; `epoch_s` is the first scrape's time."""
    return {member: list(_buckets(member, epoch_s)) for member in ("member-0", "member-1")}


def counts(epoch_s: float) -> dict[str, list[Series]]:
    """And how many calls there were, which the ``_count`` series say."""
    found: dict[str, list[Series]] = {}
    for member, series in histories(epoch_s).items():
        found[member] = [
            Series(_as_count(item.labels), item.times, item.values)
            for item in series
            if item.labels["le"] == "+Inf"
        ]
    return found


def open_metrics(epoch_s: float) -> str:
    """All of it in the text that ``promtool tsdb create-blocks-from openmetrics`` reads."""
    lines = []
    for by_member in (histories(epoch_s), counts(epoch_s)):
        for member, series in by_member.items():
            for item in series:
                labels = {key: value for key, value in item.labels.items() if key != "__name__"}
                labels.update(job="master", instance=member)
                text = ",".join(f'{key}="{value}"' for key, value in labels.items())
                lines += [
                    f"{item.labels['__name__']}{{{text}}} {value:g} {time:.3f}"
                    for time, value in zip(item.times, item.values, strict=True)
                ]
    return "\n".join([*lines, "# EOF\n"])


def _buckets(member: str, epoch_s: float) -> Iterator[Series]:
    offset_s = 0.0 if member == "member-0" else 2.1  # members are not scraped at the same time
    times = [epoch_s + offset_s + EVERY_S * scrape for scrape in range(SCRAPES)]
    share = 1 if member == "member-0" else 3
    for kind in KINDS:
        within = 0
        for bound, more in zip((*_BOUNDS, None), (*kind.by_bound, 0), strict=True):
            within += more
            le = "+Inf" if bound is None else f"{bound:g}"
            labels = {**kind.labels, "__name__": kind.family, "le": le}
            yield Series(labels, times, [float(share * within * ups) for ups in _ups(member)])


def _ups(member: str) -> list[int]:
    """How many times five seconds of calls there have been at each scrape."""
    if member == "member-0":
        return list(range(10, SCRAPES + 10))
    return [scrape + 5 if scrape < _RESTARTS_AT else scrape - _RESTARTS_AT for scrape in range(SCRAPES)]


def _as_count(labels: object) -> dict[str, str]:
    found = {key: value for key, value in dict(labels).items() if key != "le"}  # type: ignore[call-overload]
    return {**found, "__name__": found["__name__"].removesuffix("_bucket") + "_count"}
