"""How a member speaks to the store: the interface, and the implementation for members in the store's own process.

Every call returns at once; answers come through promises, on the clock's thread. Nothing here charges modelled CPU
time or keeps metrics: `storage.Storage`, which members use, does both on top of any `Store`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from harness.apiserver.clock import Clock, Promise
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

    def on_lost(self, error: StoreError) -> None:
        """The subscription has ended: the store has gone, or `from_revision` was compacted. Nothing follows."""
        ...


class Subscription(Protocol):
    def stop(self) -> None: ...


class Store(Protocol):
    """One member's connection. Promises fail with a `StoreError`; no call raises for what the store does."""

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
        """The events under `prefix` with a revision greater than `after`, as far as the member's replica has got.
        Fails with Compacted."""
        ...

    def subscribe(
        self, sink: StoreSink, from_revision: int = 0, previous_for: Sequence[str] = ()
    ) -> Subscription:
        """Every event from `from_revision` on (0: from now), in order of revision; `previous` only for keys under the
        prefixes `previous_for` for sure. A member has one subscription at a time."""
        ...

    def report_backlog(self, seconds: float) -> None:
        """CPU time that the etcd member on this member's host is behind with: it delays the quorum."""
        ...

    def close(self) -> None:
        """No further call; the subscription ends without `on_lost`."""
        ...


class LocalStore:
    """A member's store in the same process as `ReplicatedStore`: tests and virtual runs."""

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
        return following

    def report_backlog(self, seconds: float) -> None:
        self._replicated.model.report(self.member, seconds)

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
