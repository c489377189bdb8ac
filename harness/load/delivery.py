"""Writes that are followed to those who watch: what one worker notes, and how the master joins it.

When a write is committed only the server knows. Its writer knows two moments around that: when it sent the write and
when the answer came, and both are kept. ``watch_delivery_ms`` and its like count from the answer (an event that was
faster than the answer counts as 0), ``..._since_sent_ms`` from the sending: the truth lies between. It needs nothing of
the server, so it is the same measure on an emulated member and on a real one; what it needs is that the writer is one
of ours. Events about other writes are counted as unmatched.

Times are the machine's monotonic clock, which its processes share. A worker on another machine is placed on the
master's clock by the fastest of its reports, so its times are late by that report's way, about half a round trip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from math import ceil
from pathlib import Path
from platform import node
from typing import Any

import msgspec

from harness.client.delivery import binding_key, followed, revision_key
from harness.client.machine import Seen
from harness.client.store import decode_object_view
from harness.observe.histogram import bucket_of
from harness.wire.request import Request, Response

FOLLOW_ALL_UP_TO = 200
"""Kubelets of a fleet whose every write is followed; of a larger one a part, so that as much is noted."""
HELD_AT_MOST = 20_000
"""Notes of one worker between two reports; what exceeds it is counted and dropped."""
WRITES_KEPT_S = 120.0
SEEN_KEPT_S = 20.0  # a worker reports each 3 s; the one process of a run without workers each 10 s

_WRITES = frozenset(("POST", "PUT", "PATCH"))
_UNWATCHED = frozenset(("events", "leases", "serviceaccounts/token", "pods/eviction"))
_VERSION = b'"resourceVersion":"'

SampleRow = tuple[float, str, str, str, int, int]
"""As `record.SAMPLES` has it."""


def follow_one_of(kubelets: int) -> int:
    """One write in how many a fleet of this size follows."""
    return max(1, ceil(kubelets / FOLLOW_ALL_UP_TO))


@cache
def machine_id() -> str:
    """Equal for all processes that share a monotonic clock."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return node()


class Deliveries:
    """What one worker's shells note. `clock` gives monotonic seconds of the machine; `one_of` 0 follows nothing."""

    def __init__(self, one_of: int, clock: Callable[[], float]) -> None:
        self._one_of = one_of
        self._clock = clock
        self._writes: list[tuple[str, float, float]] = []
        self._seen: list[tuple[str, str, str, str, float]] = []
        self._dropped = 0

    def wrote(self, request: Request, response: Response, took_s: float) -> None:
        """A request was answered by 2xx, so long after it was sent."""
        if not self._one_of or request.method not in _WRITES or request.name in _UNWATCHED:
            return
        key = _key_of(request, response, self._one_of)
        if key and self._room():
            now = self._clock()
            self._writes.append((key, now - took_s, now))

    def seen(self, user: str, seen: Seen) -> None:
        if self._room():
            labels = ",".join(f"{key}={value}" for key, value in seen.labels)
            self._seen.append((seen.write, user, seen.name, labels, self._clock()))

    def take(self) -> dict[str, Any]:
        """What is new, in plain values that Locust's messages can carry."""
        notes = {
            "machine": machine_id(),
            "at": self._clock(),
            "writes": self._writes,
            "seen": self._seen,
            "dropped": self._dropped,
        }
        self._writes, self._seen, self._dropped = [], [], 0
        return notes

    def _room(self) -> bool:
        if len(self._writes) + len(self._seen) < HELD_AT_MOST:
            return True
        self._dropped += 1
        return False


def _key_of(request: Request, response: Response, one_of: int) -> str:
    """Under which a write is followed, "" where it is not."""
    if request.name == "pods/binding":
        uid = _view(request.body).uid
        return binding_key(uid) if uid and followed(uid, one_of) else ""
    version = _version_of(response.body)
    if not version or not followed(version, one_of):
        return ""
    return revision_key(request.name.partition("/")[0], version)


def _version_of(body: bytes) -> str:
    """The revision in an object's metadata, the first that its JSON names; "" where there is none."""
    found = body.find(_VERSION)
    if found >= 0:
        start = found + len(_VERSION)
        return body[start : body.find(b'"', start)].decode("latin-1")
    return "" if body[:1] == b"{" else _view(body).resource_version


def _view(body: bytes) -> Any:
    try:
        return decode_object_view(body).metadata
    except (msgspec.MsgspecError, ValueError):
        return decode_object_view(b"{}").metadata


class DeliveryJoin:
    """The master's side. `clock` is its own machine's monotonic time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._writes: dict[str, tuple[float, float]] = {}
        self._waiting: list[tuple[str, str, str, str, float]] = []
        self._offsets: dict[str, float] = {}
        self._buckets: Counter[tuple[str, str, str, int]] = Counter()
        self._counts: Counter[str] = Counter()

    def take(self, notes: dict[str, Any]) -> None:
        """A worker's `Deliveries.take`, as soon as it comes."""
        offset = self._offset(notes["machine"], notes["at"])
        for key, sent, answered in notes["writes"]:
            self._writes.setdefault(key, (sent + offset, answered + offset))
        self._waiting += [(*rest, t + offset) for *rest, t in notes["seen"]]
        self._counts["dropped"] += notes["dropped"]

    def rows(self, now_s: float, *, last: bool = False) -> list[SampleRow]:
        """Samples since the last call; `now_s` is wall-clock time. What has no write yet waits, unless it is `last`."""
        now = self._clock()
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            key, user, name, labels, at = item
            write = self._writes.get(key)
            if write is not None and at >= write[0]:
                self._add(user, name, labels, at, *write)
            elif write is None and now - at < SEEN_KEPT_S and not last:
                self._waiting.append(item)
            else:  # another's write; or an earlier one, where ours changed nothing and was answered with its revision
                self._counts["unmatched"] += 1
        self._forget(now)
        rows = [
            (now_s, user, name, labels, bucket, n)
            for (user, name, labels, bucket), n in self._buckets.items()
        ]
        self._buckets.clear()
        return rows

    def counts(self) -> dict[str, int]:
        """Since the last call: sightings that were matched, unmatched, dropped."""
        counts, self._counts = dict(self._counts), Counter()
        return counts

    @property
    def offsets_ms(self) -> dict[str, float]:
        """Of each other machine's clock to this one's, as far as reports tell."""
        return {machine: offset * 1e3 for machine, offset in self._offsets.items()}

    def _add(self, user: str, name: str, labels: str, at: float, sent: float, answered: float) -> None:
        self._counts["matched"] += 1
        self._buckets[user, name, labels, bucket_of(max(0.0, at - answered) * 1e6)] += 1
        bounded = name.removesuffix("_ms") + "_since_sent_ms"
        self._buckets[user, bounded, labels, bucket_of((at - sent) * 1e6)] += 1

    def _offset(self, machine: str, at: float) -> float:
        if machine == machine_id():
            return 0.0
        offset = self._clock() - at
        self._offsets[machine] = min(offset, self._offsets.get(machine, offset))
        return self._offsets[machine]

    def _forget(self, now: float) -> None:
        """Writes are in the order of their notes, near enough to that of their times."""
        for key in list(self._writes):
            if now - self._writes[key][1] < WRITES_KEPT_S:
                break
            del self._writes[key]
