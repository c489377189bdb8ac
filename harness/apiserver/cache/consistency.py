"""Whether a watch cache holds what the store holds: a hash of both at one revision.

Mirrors the consistencyChecker of k8s.io/apiserver pkg/storage/cacher/delegator.go (v1.36): the cache is listed as it
is, the store at that revision in pages; each five to seven and a half minutes. Where they differ, past states are no
longer listed from the cache until a check succeeds. Upstream hashes namespace, name and resourceVersion of each object
with 64-bit FNV-1; here the objects' bytes are in the hash too (BLAKE2b: FNV is slow in Python), so that a byte that has
changed is found, which upstream leaves aside on purpose (KEP-4988, non-goals).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from random import Random

import msgspec

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.cacher import CacheNotReady, Cacher
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.clock import Clock, Timer, sleep, spawn
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.store.core import StoreError

PERIOD_S = 300.0
JITTER = 0.5
PAGE = 1000  # upstream 10000; less holds up this process's loop for less long

SUCCESS, FAILURE, ERROR = "success", "failure", "error"


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of one resource. `cache` and `store` are digests at `revision`, `objects` how many the cache has; `difference` is
    the first one in order of key, or why nothing could be said."""

    resource: str
    status: str
    revision: int = 0
    objects: int = 0
    cache: str = ""
    store: str = ""
    difference: str = ""


class _Digest:
    """A hash over objects in order of key."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=8)

    def add(self, objects: Sequence[CachedObject]) -> None:
        for obj in objects:
            self._hash.update(b"%b/%d/%b" % (obj.key.encode(), obj.revision, obj.body))

    def __str__(self) -> str:
        return self._hash.hexdigest()


class ConsistencyChecker:
    """Checks one cache, now and then from `start()` on, and whenever it is asked to."""

    def __init__(
        self, cacher: Cacher, store: StoreLister, clock: Clock, host: Host, metrics: Metrics, rng: Random
    ) -> None:
        self._cacher = cacher
        self._store = store
        self._clock = clock
        self._host = host
        self._rng = rng
        self._timer: Timer | None = None
        self._stopped = False
        resource = cacher.resource
        self._count = {
            status: metrics.apiserver_storage_consistency_checks_total.labels(
                resource.group, resource.resource, status
            )
            for status in (SUCCESS, FAILURE, ERROR)
        }

    def start(self) -> None:
        """The first check comes after a period, each further one a period after the one before has ended."""
        delay_s = PERIOD_S * (1 + JITTER * self._rng.random())
        self._timer = self._clock.call_at(self._clock.now() + delay_s, lambda: spawn(self._turn()))

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def _turn(self) -> None:
        await self.check()
        if not self._stopped:
            self.start()

    async def check(self) -> Verdict:
        """Compare, count, and tell the cache. Never raises."""
        name = self._cacher.resource.group_resource
        try:
            verdict = await self._compare(name)
        except (CacheNotReady, StoreError) as error:
            verdict = Verdict(name, ERROR, difference=str(error))
        self._count[verdict.status].inc()
        if verdict.status != ERROR:
            self._cacher.mark_consistent(verdict.status == SUCCESS)
        return verdict

    async def _compare(self, name: str) -> Verdict:
        self._cacher.check_ready()
        listing = self._cacher.list()
        await self._host.work(self._host.costs.list_us)
        cached, stored = _Digest(), _Digest()
        difference = ""
        at = 0
        start_key = ""
        while True:
            page = await self._store.list(limit=PAGE, start_key=start_key, revision=listing.revision)
            await self._host.work(self._host.costs.check_per_object_us * len(page.items))
            beside = listing.items[at : at + len(page.items)] if page.more else listing.items[at:]
            cached.add(beside)
            stored.add(page.items)
            difference = difference or _first_difference(beside, page.items)
            at += len(page.items)
            if not page.more:
                break
            start_key = page.items[-1].key + "\0"
            await sleep(self._clock, 0.0)  # requests come in between
        same = str(cached) == str(stored)
        return Verdict(
            name,
            SUCCESS if same else FAILURE,
            listing.revision,
            len(listing.items),
            str(cached),
            str(stored),
            difference,
        )


def _first_difference(cached: Sequence[CachedObject], stored: Sequence[CachedObject]) -> str:
    """In words; "" where there is none."""
    for ours, theirs in _pairs(cached, stored):
        if ours is None or theirs is None:
            there = ours or theirs
            assert there is not None
            return f"{there.key} is in the {'cache' if ours else 'store'} only"
        if ours.key != theirs.key:
            if ours.key < theirs.key:
                return f"{ours.key} is in the cache only"
            return f"{theirs.key} is in the store only"
        if ours.revision != theirs.revision:
            return f"{ours.key} is at {ours.revision} in the cache, at {theirs.revision} in the store"
        if ours.body != theirs.body:
            return f"{ours.key} at {ours.revision} has other bytes in the cache than in the store"
    return ""


def _pairs(
    cached: Sequence[CachedObject], stored: Sequence[CachedObject]
) -> Iterator[tuple[CachedObject | None, CachedObject | None]]:
    for at in range(max(len(cached), len(stored))):
        yield cached[at] if at < len(cached) else None, stored[at] if at < len(stored) else None
