"""How many seats a request takes, and for how long after it has answered.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/request: width.go:45-130, list_work_estimator.go:58-225 (by object sizes,
SizeBasedListCostEstimate being on), mutating_work_estimator.go:60-160, object_count_tracker.go:30-130.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from harness.apiserver.clock import Clock
from harness.apiserver.flowcontrol.classify import Info
from harness.apiserver.flowcontrol.watches import WatchTracker
from harness.wire.gotext import parse_int
from harness.wire.paths import is_true

BYTES_PER_SEAT = 100_000
STREAMED_LIST_BYTES = 1_000_000  # a list from cache never holds more than this at once
MAX_OBJECT_BYTES = 1_500_000
MAX_LIST_SEATS = 100
MAX_WRITE_SEATS = 10
WATCHES_PER_SEAT = 10
SECONDS_PER_WATCH_SEAT = 0.005
STALE_S = 180.0
FORGET_S = 3600.0


class WorkEstimate(NamedTuple):
    """`initial_seats` while it executes, then `final_seats` for `extra_latency_s` without its caller waiting.

    As upstream, the larger of the two is held all along.
    """

    initial_seats: int = 1
    final_seats: int = 0
    extra_latency_s: float = 0.0

    @property
    def max_seats(self) -> int:
        return max(self.initial_seats, self.final_seats)


ONE_SEAT = WorkEstimate()


class ObjectStats(NamedTuple):
    """How many objects of a resource there are, and their size in bytes (0: not known)."""

    objects: int
    average_bytes: int


_STALE = ObjectStats(1_000_000_000, MAX_OBJECT_BYTES)


class ObjectCounts:
    """What the storage layer last counted of each resource (upstream: each minute, StorageObjectCountTracker)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stats: dict[tuple[str, str], tuple[ObjectStats, float]] = {}

    def set(self, group: str, resource: str, count: int, average_bytes: int) -> None:
        self._stats[group, resource] = (ObjectStats(count, average_bytes), self._clock.now())

    def get(self, group: str, resource: str) -> ObjectStats | None:
        """None where nothing was ever counted or for an hour; the worst case where not for three minutes."""
        known = self._stats.get((group, resource))
        if known is None:
            return None
        stats, at = known
        age_s = self._clock.now() - at
        if age_s >= FORGET_S:
            return None
        return _STALE if age_s > STALE_S else stats


class Estimator:
    """Estimates from object counts and open watches."""

    def __init__(self, counts: ObjectCounts, watches: WatchTracker) -> None:
        self.counts = counts
        self.watches = watches

    def estimate(self, info: Info, max_seats: int) -> tuple[WorkEstimate, int | None]:
        """The estimate, and the watches that it counted (None for what is not a counted write).

        `max_seats` is what the priority level allows one request, 0 where it says nothing.
        """
        verb = info.verb
        if verb in ("list", "watch"):
            return self._list(info, max_seats), None
        if verb in ("create", "update", "patch", "delete"):
            return self._write(info, max_seats)
        return ONE_SEAT, None

    def _list(self, info: Info, max_seats: int) -> WorkEstimate:
        query = info.query
        watch = info.verb == "watch"
        if not 0 < max_seats <= MAX_LIST_SEATS:
            max_seats = MAX_LIST_SEATS
        if not _decodes(query):  # will be refused, and is presumed the worst until then
            return WorkEstimate(max_seats)
        if (
            watch
            and not _is_true(query.get("sendInitialEvents"))
            and query.get("resourceVersion", "") not in ("", "0")
        ):
            return ONE_SEAT
        stats = self.counts.get(info.group, info.resource)
        if stats is None:
            return ONE_SEAT
        from_cache = watch or not _lists_from_etcd(query)
        seats = math.ceil(_list_bytes(info, stats, from_cache) / BYTES_PER_SEAT)
        return WorkEstimate(max(1, min(seats, max_seats)))

    def _write(self, info: Info, max_seats: int) -> tuple[WorkEstimate, int | None]:
        if info.subresource == "token" and info.resource == "serviceaccounts":
            return ONE_SEAT, None  # makes no event
        watches = self.watches.interested(info)
        if watches < WATCHES_PER_SEAT:
            return ONE_SEAT, watches
        if not 0 < max_seats <= MAX_WRITE_SEATS:
            max_seats = MAX_WRITE_SEATS
        wanted = math.ceil(watches / WATCHES_PER_SEAT)
        seats = min(wanted, max_seats)
        # Narrower and longer, the same work.
        return WorkEstimate(1, seats, wanted * SECONDS_PER_WATCH_SEAT / seats), watches


def _list_bytes(info: Info, stats: ObjectStats, from_cache: bool) -> int:
    size = stats.average_bytes
    if size <= 0 and stats.objects:
        size = MAX_OBJECT_BYTES
    limit = _limit(info.query)
    objects = min(limit, stats.objects) if limit > 0 else stats.objects
    if info.name:
        objects = 1
    elif not from_cache and (info.query.get("fieldSelector") or info.query.get("labelSelector")):
        objects = max(objects, stats.objects // 2)
    return min(objects * size, STREAMED_LIST_BYTES) if from_cache else objects * size


def _lists_from_etcd(query: dict[str, str]) -> bool:
    """Whether a list goes past the cache, by its parameters and as if there were no snapshots.

    k8s.io/apiserver pkg/storage/cacher/delegator/interface.go:40: continuations, exact versions, and pages that do not
    start at version 0.
    """
    version = query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    if match:
        return match != "NotOlderThan"
    return bool(query.get("continue")) or (_limit(query) > 0 and version not in ("", "0"))


def _decodes(query: dict[str, str]) -> bool:
    """Whether the whole numbers among the list options are some; all else decodes (Convert_url_Values_To_...)."""
    for key in ("limit", "timeoutSeconds"):
        text = query.get(key)
        if text and parse_int(text) is None:
            return False
    return True


def _limit(query: dict[str, str]) -> int:
    text = query.get("limit", "")
    return max(0, parse_int(text) or 0)


def _is_true(value: str | None) -> bool:
    return value is not None and is_true(value)
