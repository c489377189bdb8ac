"""A member's connection to a real etcd: the `Store` contract over etcd's API."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from harness.apiserver.clock import Promise
from harness.apiserver.store.client import StoreSink, Subscription
from harness.apiserver.store.core import (
    Compacted,
    FutureRevision,
    GetResult,
    HistoryResult,
    RangeResult,
    StoreError,
    StoreEvent,
    StoreUnavailable,
    Txn,
    TxnResult,
    prefix_end,
)
from harness.apiserver.store.etcd3 import messages
from harness.apiserver.store.etcd3.channel import Call, Channel, unavailable
from harness.apiserver.store.etcd3.client import EtcdClient
from harness.apiserver.store.etcd3.compaction import Compactor
from harness.apiserver.store.etcd3.endpoints import EtcdServers
from harness.apiserver.store.etcd3.leases import LeaseManager
from harness.apiserver.store.etcd3.messages import Versioned, WatchAnswer
from harness.wire.errors import ConfigError
from harness.wire.protobuf.wireformat import ProtobufError

T = TypeVar("T")

OURS = "/"
"""What every key of an apiserver begins with; the key that compactions are agreed on by does not (`compaction.KEY`)."""

REMEMBERED_EVENTS = 2000

_COMPACTED = "required revision has been compacted"
_FUTURE = "required revision is a future revision"


class EtcdStore:
    """Made by `connect`. One watch of everything feeds the subscription, so that every revision is an event and it
    reaches any revision without asking. When a connection is lost the watch goes on with the next, behind its last
    event."""

    modelled = False

    def __init__(self, servers: EtcdServers, first: int) -> None:
        self._client = EtcdClient(servers, first)
        self._client.on_connected = self._connected
        self._client.on_lost = self._lost
        self._watch: Call | None = None
        self._sink: StoreSink | None = None
        self._asked_early: list[Callable[[], object]] = []  # history, before the subscription has begun
        self._start = 0  # where the subscription is to begin
        self._position = 0  # how far it has got; 0 until it has begun
        self._recent: deque[StoreEvent] = deque(maxlen=REMEMBERED_EVENTS)
        self._recent_after = 0  # every event with a greater revision, up to the position, is in `_recent`
        self._delays_s = (0.0, 0.0)  # of writes and of reads
        loop = self._client.loop
        self._leases = LeaseManager(self._grant, loop.time)
        self._compactor = Compactor(self, loop.call_later, servers.compaction_s)
        if servers.compaction_s:
            self._compactor.start()

    # ---- Store
    def txn(self, txn: Txn) -> Promise[TxnResult]:
        promise: Promise[TxnResult] = Promise()
        if txn.ttl_s and txn.value is not None:
            self._leases.lease(txn.ttl_s).then(partial(self._leased, txn, promise))
        else:
            self._write(txn, 0).then(partial(_pass_on, promise))
        return promise

    def get(self, key: str) -> Promise[GetResult]:
        return self._read(messages.range_request(key), _got)

    def range(
        self, prefix: str, start_key: str = "", limit: int = 0, revision: int = 0
    ) -> Promise[RangeResult]:
        body = messages.range_request(max(prefix, start_key), prefix_end(prefix), limit, revision)
        return self._read(body, lambda data: messages.range_answer(data, revision), revision)

    def current_revision(self) -> Promise[int]:
        return self._read(messages.range_request(OURS), lambda data: messages.range_answer(data).revision)

    def history(self, prefix: str, after: int) -> Promise[HistoryResult]:
        promise: Promise[HistoryResult] = Promise()
        if after < 0:
            promise.fail(Compacted(after, 0))
        elif self._position and after >= self._recent_after:
            found = [event for event in self._recent if event.revision > after]
            promise.resolve(_history(prefix, found, max(after, self._position)))
        elif self._position:
            self._replay(prefix, after, self._position, promise)
        elif self._sink is not None:  # once it is known from where on the subscription has the events
            self._asked_early.append(lambda: self.history(prefix, after).then(partial(_pass_on, promise)))
        else:

            def known(answer: Promise[int]) -> None:
                try:
                    self._replay(prefix, after, answer.result(), promise)
                except StoreError as error:
                    promise.fail(error)

            self.current_revision().then(known)
        return promise

    def subscribe(
        self, sink: StoreSink, from_revision: int = 0, previous_for: Sequence[str] = ()
    ) -> Subscription:
        self._end_watch()
        self._sink = sink
        self._start = from_revision
        self._position = self._recent_after = 0
        self._recent.clear()
        if self._client.channel is not None:
            self._open_watch(self._client.channel)
        elif self._client.error is not None:
            self._client.loop.call_soon(sink.on_interrupted, self._client.error)
        return _EtcdSubscription(self, sink)

    def report_backlog(self, seconds: float) -> None:
        """The model's etcd has one; this one is real."""

    def compact(self, revision: int = 0) -> Promise[int]:
        promise: Promise[int] = Promise()

        def known(answer: Promise[int]) -> None:
            try:
                at = answer.result()
            except StoreError as error:
                promise.fail(error)
                return
            body = messages.compaction_request(at)
            self._call(messages.COMPACT, body, lambda _: at, at).then(partial(_pass_on, promise))

        if revision:
            answered: Promise[int] = Promise()
            answered.resolve(revision)
            known(answered)
        else:
            self.current_revision().then(known)
        return promise

    def set_delay(self, write_s: float, read_s: float) -> Promise[None]:
        """This member's calls alone: etcd itself cannot be told to be slow."""
        self._delays_s = (write_s, read_s)
        promise: Promise[None] = Promise()
        promise.resolve(None)
        return promise

    def close(self) -> None:
        self._sink = None
        self._compactor.stop()
        self._client.close()

    async def connect(self) -> None:
        """Try each member of etcd once. Raises StoreUnavailable with what the last one said."""
        await self._client.connect()

    # ---- what only etcd has
    def compare_and_put(self, key: str, version: int, value: bytes) -> Promise[tuple[bool, int, Versioned]]:
        """Put where the key has this version (0: where there is none): whether it was, the revision, what stands
        where it was not."""
        body = messages.compare_and_put(key, version, value)
        return self._call(messages.TXN, body, messages.versioned_answer)

    def unsubscribe(self, sink: StoreSink) -> None:
        if self._sink is sink:
            self._sink = None
            self._end_watch()

    def _grant(self, ttl_s: int) -> Promise[int]:
        return self._call(messages.GRANT, messages.grant_request(ttl_s), messages.grant_answer)

    def _leased(self, txn: Txn, promise: Promise[TxnResult], lease: Promise[int]) -> None:
        try:
            self._write(txn, lease.result()).then(partial(_pass_on, promise))
        except StoreError as error:
            promise.fail(error)

    # ---- calls
    def _write(self, txn: Txn, lease: int) -> Promise[TxnResult]:
        body = messages.txn_request(txn, lease)
        return self._call(messages.TXN, body, messages.txn_answer, delay_s=self._delays_s[0])

    def _read(self, body: bytes, decode: Callable[[bytes], T], revision: int = 0) -> Promise[T]:
        return self._call(messages.RANGE, body, decode, revision, repeatable=True, delay_s=self._delays_s[1])

    def _call(
        self,
        path: bytes,
        body: bytes,
        decode: Callable[[bytes], T],
        revision: int = 0,
        *,
        repeatable: bool = False,
        delay_s: float = 0.0,
    ) -> Promise[T]:
        """Ask etcd for what `decode` makes of its answer; `revision` is what was asked for, for errors."""
        promise: Promise[T] = Promise()

        def answered(answer: Promise[bytes]) -> None:
            try:
                promise.resolve(decode(answer.result()))
            except StoreError as error:
                promise.fail(self._at_revision(error, revision))
            except ProtobufError as error:
                promise.fail(StoreError(f"etcd: {error}"))

        self._client.call(path, body, repeatable=repeatable, delay_s=delay_s).then(answered)
        return promise

    def _at_revision(self, error: StoreError, revision: int) -> StoreError:
        if _COMPACTED in str(error):
            return Compacted(revision, 0)
        return FutureRevision(revision, self._position) if _FUTURE in str(error) else error

    # ---- connection
    def _connected(self, channel: Channel) -> None:
        if self._sink is not None:
            self._open_watch(channel)

    def _lost(self, error: StoreUnavailable) -> None:
        self._watch = None
        if self._sink is not None:
            self._sink.on_interrupted(error)

    # ---- the watch
    def _open_watch(self, channel: Channel) -> None:
        def opened(call: Call) -> None:
            self._watch = call
            call.send(messages.watch_everything(self._position + 1 if self._position else self._start))

        channel.stream(messages.WATCH, self._heard, self._watch_ended, opened)

    def _end_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _watch_ended(self, error: StoreError | None) -> None:
        """Alone, without its connection: this member has lost its leader, or is about to stop."""
        self._watch = None
        if not isinstance(error, StoreUnavailable):
            error = unavailable(str(error or "watch ended"))
        self._client.give_up(error)

    def _heard(self, data: bytes) -> None:
        try:
            answer = messages.watch_answer(data)
        except ProtobufError as error:
            self._client.give_up(unavailable(f"etcd: {error}"))
            return
        sink = self._sink
        if sink is None:
            return
        if answer.canceled:
            self._canceled(answer, sink)
        elif answer.created:
            self._client.proved()
            sink.on_resumed()
            if not self._position:
                self._begun(answer.revision, sink)
        elif answer.events:
            self._deliver(answer.events, sink)
        elif answer.revision > self._position:  # etcd's progress notification
            self._position = answer.revision
            sink.on_progress(answer.revision)

    def _begun(self, revision: int, sink: StoreSink) -> None:
        self._position = self._recent_after = self._start - 1 if self._start else revision
        sink.on_progress(self._position)
        early, self._asked_early = self._asked_early, []
        for ask in early:
            ask()

    def _deliver(self, events: list[StoreEvent], sink: StoreSink) -> None:
        newest = events[-1].revision
        self._position = newest
        ours = [event for event in events if event.key.startswith(OURS)]
        recent = self._recent
        for event in ours:
            if len(recent) == REMEMBERED_EVENTS:
                self._recent_after = recent[0].revision
            recent.append(event)
        if ours:
            sink.on_events(ours)
        if not ours or ours[-1].revision != newest:
            sink.on_progress(newest)

    def _canceled(self, answer: WatchAnswer, sink: StoreSink) -> None:
        self._watch = None
        if answer.compacted:
            self._sink = None
            requested = self._position or self._start - 1
            self._position = self._recent_after = 0
            sink.on_lost(Compacted(requested, answer.compacted))
        else:
            self._client.give_up(unavailable(answer.reason or "watch canceled"))

    def _replay(self, prefix: str, after: int, until: int, promise: Promise[HistoryResult]) -> None:
        """A watch of its own for what is no longer remembered: it has come whole with the event of `until`."""
        found: list[StoreEvent] = []
        calls: list[Call] = []

        def heard(data: bytes) -> None:
            answer = messages.watch_answer(data)
            found.extend(event for event in answer.events if event.revision <= until)
            if answer.canceled:
                error = Compacted(after, answer.compacted) if answer.compacted else StoreError(answer.reason)
                promise.fail(error)
            elif answer.events and answer.events[-1].revision >= until:
                promise.resolve(_history(prefix, found, until))
            if promise.done:
                calls[0].cancel()

        def opened(call: Call) -> None:
            calls.append(call)
            call.send(messages.watch_everything(after + 1))

        def ended(error: StoreError | None) -> None:
            promise.fail(error or unavailable("watch ended"))

        channel = self._client.channel
        if after >= until:
            promise.resolve(HistoryResult([], after))
        elif channel is None:
            ended(self._client.error)
        else:
            channel.stream(messages.WATCH, heard, ended, opened)


class _EtcdSubscription:
    def __init__(self, store: EtcdStore, sink: StoreSink) -> None:
        self._store = store
        self._sink = sink

    def stop(self) -> None:
        self._store.unsubscribe(self._sink)


def _pass_on(promise: Promise[T], settled: Promise[T]) -> None:
    try:
        promise.resolve(settled.result())
    except StoreError as error:
        promise.fail(error)


def _got(data: bytes) -> GetResult:
    found = messages.range_answer(data)
    return GetResult(found.kvs[0] if found.kvs else None, found.revision)


def _history(prefix: str, events: Sequence[StoreEvent], revision: int) -> HistoryResult:
    return HistoryResult([event for event in events if event.key.startswith(prefix)], revision)


async def connect(servers: EtcdServers, first: int = 0) -> EtcdStore:
    """Connect to etcd, to the member of this number if it answers. Raises ConfigError where none does."""
    store = EtcdStore(servers, first)
    try:
        await store.connect()
    except StoreUnavailable as error:
        store.close()
        raise ConfigError(f"etcd: cannot connect to {', '.join(servers.urls)}: {error}") from None
    return store
