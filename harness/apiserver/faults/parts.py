"""Faults that are done to parts of a member: its store, its caches, its informer, its clock."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol, TypeVar

from harness.apiserver.auth.nodelag import Lag
from harness.apiserver.cache.watchcache import Corruption
from harness.apiserver.clock import Clock, Promise, Timer
from harness.apiserver.faults.active import Faults, Running
from harness.apiserver.faults.kinds import (
    ClockSkew,
    Compact,
    CorruptCache,
    LagInformer,
    SlowStore,
    StallInformer,
)
from harness.apiserver.faults.spec import MAX_FOR_S
from harness.apiserver.store.core import Compacted, StoreError
from harness.wire.errors import ConfigError

T = TypeVar("T")


# ---- the store -----------------------------------------------------------------------------------------------------
class DisturbedStore(Protocol):
    """What is needed of a `Storage`."""

    def compact(self, revision: int = 0) -> Promise[int]: ...
    def set_delay(self, write_s: float, read_s: float) -> Promise[None]: ...


def disturb_store(faults: Faults, store: DisturbedStore) -> None:
    """Provide the faults of etcd. They are the whole store's, whichever member is asked."""

    def slow(fault: SlowStore, running: Running) -> Callable[[], None]:
        _tell_failure(faults, running, store.set_delay(fault.write_s, fault.read_s))
        return lambda: _tell_failure(faults, running, store.set_delay(0.0, 0.0))

    def compact(_: Compact, running: Running) -> None:
        _tell_failure(faults, running, store.compact())

    faults.provide(SlowStore, slow)
    faults.provide(Compact, compact)


def _tell_failure(faults: Faults, running: Running, promise: Promise[T]) -> None:
    """The store answers after the fault was begun; that it cannot do it is an event of its own."""

    def settled(source: Promise[T]) -> None:
        try:
            source.result()
        except Compacted:
            pass  # nothing was written since the last time
        except StoreError as error:
            faults.tell_failure(running, str(error))

    promise.then(settled)


# ---- caches and informers ------------------------------------------------------------------------------------------
class Corruptible(Protocol):
    """What is needed of a `Cacher`."""

    def corrupt(self, how: Corruption, rng: Random) -> str: ...


def disturb_caches(faults: Faults, find: Callable[[str], Corruptible | None]) -> None:
    """`find` gives the cache of a resource as ``pods`` or ``deployments.apps``; None where there is none."""

    def corrupt(fault: CorruptCache, running: Running) -> None:
        cache = find(fault.resource)
        if cache is None:
            raise ConfigError(f"fault corrupt-cache: there is no watch cache of {fault.resource!r}")
        if not cache.corrupt(fault.how, running.rng):
            raise ConfigError(f"fault corrupt-cache: the cache of {fault.resource} is empty")
        running.hit()

    faults.provide(CorruptCache, corrupt)


class Informer(Protocol):
    """What is needed of the node authorizer."""

    def stall(self, seconds: float, relist: bool = False) -> None: ...
    def set_lag(self, lag: Lag | None) -> None: ...


def disturb_informer(faults: Faults, informer: Informer) -> None:
    def stall(fault: StallInformer, running: Running) -> Callable[[], None]:
        informer.stall(running.for_s or MAX_FOR_S, fault.relist)
        return lambda: informer.stall(0.0)

    def lag(fault: LagInformer, _: Running) -> Callable[[], None]:
        informer.set_lag(fault.drawn)
        return lambda: informer.set_lag(None)

    faults.provide(StallInformer, stall)
    faults.provide(LagInformer, lag)


# ---- the clock -----------------------------------------------------------------------------------------------------
class SkewedClock:
    """A clock whose time of day may be wrong. Everything else is the clock's that it wraps."""

    __slots__ = ("_wall", "call_at", "now", "skew_s")

    def __init__(self, clock: Clock) -> None:
        self.now: Callable[[], float] = clock.now
        self.call_at: Callable[..., Timer] = clock.call_at
        self.skew_s = 0.0
        self._wall = clock.wall

    def wall(self) -> float:
        return self._wall() + self.skew_s


def disturb_clock(faults: Faults, clock: SkewedClock) -> None:
    def skew(fault: ClockSkew, _: Running) -> Callable[[], None]:
        clock.skew_s += fault.by_s

        def end() -> None:
            clock.skew_s -= fault.by_s

        return end

    faults.provide(ClockSkew, skew)
