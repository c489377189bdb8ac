"""What a member does for its caches beside serving them: checks against the store, news of compactions.

Mirrors k8s.io/apiserver pkg/storage/cacher/compactor.go (the compaction revision is looked for each 15 s) and the
checker of delegator.go. Upstream learns of compactions by a watch of the key `compact_rev_key`, which the apiserver
that compacts writes; here the store compacts by itself, and is asked whether it still has a revision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.consistency import ConsistencyChecker, Verdict
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.clock import Clock, Promise, Timer, spawn
from harness.apiserver.featuregates import FeatureGates
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.store.core import StoreError
from harness.apiserver.store.storage import Storage

POLL_PERIOD_S = 15.0  # compactor.go: compactorPollPeriod


class Upkeep:
    """Of all caches of one member: those it starts with, and those that come with custom resources."""

    def __init__(
        self,
        cachers: Sequence[Cacher],
        clock: Clock,
        host: Host,
        storage: Storage,
        metrics: Metrics,
        gates: FeatureGates,
        random: Callable[[str], Random],
    ) -> None:
        """`random` makes a source of its own for a purpose."""
        self._clock = clock
        self._host = host
        self._metrics = metrics
        self._random = random
        self._storage = storage
        self._gates = gates
        self._compacted = 0
        self._timer: Timer | None = None
        self._started = False
        self._checkers = {cacher: self._checker(cacher) for cacher in cachers}

    def _checker(self, cacher: Cacher) -> ConsistencyChecker:
        return ConsistencyChecker(
            cacher,
            StoreLister(cacher.resource, self._storage, self._metrics),
            self._clock,
            self._host,
            self._metrics,
            self._random(f"checks of {cacher.resource.group_resource}"),
        )

    def keep(self, cacher: Cacher) -> None:
        """One more cache, from now on."""
        checker = self._checkers[cacher] = self._checker(cacher)
        if self._started and self._gates.detect_cache_inconsistency:
            checker.start()

    def leave(self, cacher: Cacher) -> None:
        """A cache that is no longer kept."""
        self._checkers.pop(cacher).stop()

    def start(self) -> None:
        self._started = True
        if self._gates.list_from_cache_snapshot:
            self._arm()
        if self._gates.detect_cache_inconsistency:
            for checker in self._checkers.values():
                checker.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for checker in self._checkers.values():
            checker.stop()

    def verify(self) -> Promise[list[Verdict]]:
        """Check every cache now, one after another."""
        return spawn(self._verify()).outcome

    async def _verify(self) -> list[Verdict]:
        return [await checker.check() for checker in list(self._checkers.values())]

    # ---- compaction
    def _arm(self) -> None:
        self._timer = self._clock.call_at(self._clock.now() + POLL_PERIOD_S, lambda: spawn(self._poll()))

    async def _poll(self) -> None:
        try:
            compacted = await self._storage.compacted_after(self._compacted)
        except StoreError:
            compacted = self._compacted  # it will be asked again
        if compacted > self._compacted:
            self._compacted = compacted
            for cacher in self._checkers:
                cacher.compact(compacted)
        if self._timer is not None:
            self._arm()
