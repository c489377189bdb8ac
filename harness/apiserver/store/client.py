"""How a member speaks to the store: the interface, and the implementation for members in the store's own process.

Every call returns at once; answers come through promises, on the clock's thread. Nothing here charges modelled CPU
time or keeps metrics: `storage.Storage`, which members use, does both on top of any `Store`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from harness.apiserver.clock import Clock, Promise, resolved
from harness.apiserver.store.core import (
    GetResult,
    HistoryResult,
    RangeResult,
    StoreError,
    StoreEvent,
    Txn,
    TxnResult,
)
from harness.apiserver.store.replicated import ReplicatedStore

T = TypeVar("T")


class StoreSink(Protocol):
    """Where a subscription's events go."""

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        """Some events, all with greater revisions than any before."""
        ...

    def on_progress(self, revision: int) -> None:
        """No event up to and including `revision` is outstanding."""
        ...

    def on_interrupted(self, error: StoreError) -> None:
        """The store cannot be reached: calls fail with `error` until `on_resumed`. No event is lost by it."""
        ...

    def on_resumed(self) -> None:
        """The store can be reached again; events go on behind the last one."""
        ...

    def on_lost(self, error: StoreError) -> None:
        """The subscription has ended. Compacted: events have been missed, and another subscription may be begun; else
        the store has gone for good, and every call fails. Nothing follows."""
        ...


class Subscription(Protocol):
    def stop(self) -> None: ...


class Store(Protocol):
    """One member's connection. Promises fail with a `StoreError`; no call raises for what the store does.

    `modelled`: the store takes none of its CPU time from this machine that counts; the modelled host is to be charged
    for it."""

    modelled: bool

    def txn(self, txn: Txn) -> Promise[TxnResult]:
        """Settles when the member's own replica has applied the write. A condition that does not hold is no error."""
        ...

    def get(self, key: str) -> Promise[GetResult]:
        """Linearizable."""
        ...

    def range(
        self, prefix: str, start_key: str = "", limit: int = 0, revision: int = 0
    ) -> Promise[RangeResult]:
        """Keys in order from `start_key` on; linearizable at revision 0, else as of that revision. Fails with
        Compacted or FutureRevision."""
        ...

    def current_revision(self) -> Promise[int]:
        """The newest revision, linearizable; a subscription reaches it without further writes."""
        ...

    def history(self, prefix: str, after: int) -> Promise[HistoryResult]:
        """The events under `prefix` with a revision greater than `after`, as far as the member's replica has got: with
        a real etcd as far as its subscription has, which a write may settle before. Fails with Compacted."""
        ...

    def subscribe(
        self, sink: StoreSink, from_revision: int = 0, previous_for: Sequence[str] = ()
    ) -> Subscription:
        """Every event from `from_revision` on (0: from now on; `on_progress` says from where), in order of revision;
        `previous` only for keys under the prefixes `previous_for` for sure. A member has one subscription at a time."""
        ...

    def report_backlog(self, seconds: float) -> None:
        """CPU time that the etcd member on this member's host is behind with: it delays the quorum."""
        ...

    def compact(self, revision: int = 0) -> Promise[int]:
        """Forget, for all members, what is needed only to read before `revision` (0: before now); settles with it.
        Fails with FutureRevision, or Compacted where that has been done."""
        ...

    def set_delay(self, write_s: float, read_s: float) -> Promise[None]:
        """A slow store: each write and each linearizable read takes so much longer, until it is set again."""
        ...

    def close(self) -> None:
        """No further call; the subscription ends without `on_lost`."""
        ...


class LocalStore:
    """A member's store in the same process as `ReplicatedStore`: tests and virtual runs."""

    modelled = True

    def __init__(self, replicated: ReplicatedStore, member: str, clock: Clock) -> None:
        self.member = member
        self._replicated = replicated
        self._clock = clock
        self._error: StoreError | None = None
        self._following: _Following | None = None

    def txn(self, txn: Txn) -> Promise[TxnResult]:
        return self._ask(lambda: self._replicated.propose(self.member, txn))

    def get(self, key: str) -> Promise[GetResult]:
        return self._ask(lambda: self._replicated.get(self.member, key))

    def range(
        self, prefix: str, start_key: str = "", limit: int = 0, revision: int = 0
    ) -> Promise[RangeResult]:
        return self._ask(lambda: self._replicated.range(self.member, prefix, start_key, limit, revision))

    def current_revision(self) -> Promise[int]:
        return self._ask(lambda: self._replicated.current_revision(self.member))

    def history(self, prefix: str, after: int) -> Promise[HistoryResult]:
        return self._ask(lambda: self._replicated.history(self.member, prefix, after))

    def subscribe(
        self, sink: StoreSink, from_revision: int = 0, previous_for: Sequence[str] = ()
    ) -> Subscription:
        following = self._following = _Following(self, sink)
        applied = self._replicated.follow(self.member, following)
        if from_revision and from_revision <= applied:
            following.hold()
            history = self._replicated.history(self.member, "", from_revision - 1)
            self._clock.call_at(self._clock.now(), following.release, history)
        elif not from_revision:
            self._clock.call_at(self._clock.now(), following.begin, applied)
        return following

    def report_backlog(self, seconds: float) -> None:
        self._replicated.model.report(self.member, seconds)

    def compact(self, revision: int = 0) -> Promise[int]:
        return self._ask(lambda: self._replicated.compact(self.member, revision))

    def set_delay(self, write_s: float, read_s: float) -> Promise[None]:
        def set_it() -> Promise[None]:
            self._replicated.model.set_delay(write_s, read_s)
            return resolved(None)

        return self._ask(set_it)

    def close(self) -> None:
        if self._following is not None:
            self._following.stop()

    def unfollow(self) -> None:
        self._replicated.follow(self.member, None)

    def lose(self, error: StoreError) -> None:
        """The store is gone, as far as this member can tell: for tests of just that."""
        self._error = error
        self.unfollow()
        if self._following is not None:
            self._following.lose(error)

    def _ask(self, request: Callable[[], Promise[T]]) -> Promise[T]:
        if self._error is None:
            return request()
        promise: Promise[T] = Promise()
        promise.fail(self._error)
        return promise


class _Following:
    """The one subscription of a `LocalStore`; holds back what comes before the history it began with."""

    def __init__(self, store: LocalStore, sink: StoreSink) -> None:
        self._store = store
        self._sink = sink
        self._held: list[StoreEvent] | None = None
        self._stopped = False

    def hold(self) -> None:
        self._held = []

    def begin(self, revision: int) -> None:
        if not self._stopped:
            self._sink.on_progress(revision)

    def release(self, answer: Promise[HistoryResult]) -> None:
        held, self._held = self._held or [], None
        try:
            events = answer.result().events
        except StoreError as error:
            self._store.unfollow()
            self.lose(error)
            return
        self.on_events([*events, *held])

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        if self._held is not None:
            self._held.extend(events)
        elif events and not self._stopped:
            self._sink.on_events(events)

    def lose(self, error: StoreError) -> None:
        if not self._stopped:
            self._stopped = True
            self._sink.on_lost(error)

    def stop(self) -> None:
        self._stopped = True
        self._store.unfollow()
