"""A member's connection to the store process: `storeclient.Store` over a Unix-domain socket, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from harness.apiserver.clock import Promise
from harness.apiserver.store.client import StoreSink, Subscription
from harness.apiserver.store.core import (
    Compacted,
    GetResult,
    HistoryResult,
    RangeResult,
    StoreError,
    StoreEvent,
    StoreUnavailable,
    Txn,
    TxnResult,
)
from harness.apiserver.store.frames import (
    VERSION,
    Answer,
    AskCompact,
    AskDelay,
    AskGet,
    AskHistory,
    AskRange,
    AskRevision,
    AskTxn,
    Events,
    Failure,
    Follow,
    FrameReader,
    FromMember,
    Hello,
    MemberFrame,
    Unfollow,
    Welcome,
    decode_store_frame,
    encode,
    error_of,
    framed,
)
from harness.wire.errors import ConfigError

T = TypeVar("T")

RETRY_LEAST_S = 0.05  # until the first attempt to connect again; each that fails doubles it
RETRY_MOST_S = 1.0

BACKLOG_STEP_S = 0.0005  # a change of less than this does not make a frame of its own

_decode_txn = msgspec.msgpack.Decoder(TxnResult).decode
_decode_get = msgspec.msgpack.Decoder(GetResult).decode
_decode_range = msgspec.msgpack.Decoder(RangeResult).decode
_decode_revision = msgspec.msgpack.Decoder(int).decode
_decode_nothing = msgspec.msgpack.Decoder(None).decode
_decode_history = msgspec.msgpack.Decoder(HistoryResult).decode
_decode_event = msgspec.msgpack.Decoder(StoreEvent).decode


class SocketStore(asyncio.Protocol):
    """Made by `connect`. While the connection is lost every call fails with StoreUnavailable. It is made again where
    the store keeps what was written, and the subscription goes on; else that ends, and so it stays."""

    modelled = True

    def __init__(self, path: str, member: str, loop: asyncio.AbstractEventLoop) -> None:
        self.member = member
        self._path = path
        self._loop = loop
        self._identity = ""
        self._retry_s = RETRY_LEAST_S
        self._connecting: asyncio.Task[None] | None = None
        self._previous_for: tuple[str, ...] = ()
        self._position = 0  # the subscription has got so far
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader()
        self._error: StoreError | None = None
        self._asked: dict[int, tuple[Promise[Any], Callable[[Any], Any]]] = {}
        self._last_id = 0
        self._out: list[FromMember] = []
        self._backlog_s = 0.0
        self._reported_s = 0.0
        self._flushing = False
        self._sink: StoreSink | None = None
        self._closed = False

    # ---- Store
    def txn(self, txn: Txn) -> Promise[TxnResult]:
        return self._ask(lambda id_: AskTxn(id_, txn), _decode_txn)

    def get(self, key: str) -> Promise[GetResult]:
        return self._ask(lambda id_: AskGet(id_, key), _decode_get)

    def range(
        self, prefix: str, start_key: str = "", limit: int = 0, revision: int = 0
    ) -> Promise[RangeResult]:
        return self._ask(lambda id_: AskRange(id_, prefix, start_key, limit, revision), _decode_range)

    def current_revision(self) -> Promise[int]:
        return self._ask(AskRevision, _decode_revision)

    def history(self, prefix: str, after: int) -> Promise[HistoryResult]:
        return self._ask(lambda id_: AskHistory(id_, prefix, after), _decode_history)

    def subscribe(
        self, sink: StoreSink, from_revision: int = 0, previous_for: Sequence[str] = ()
    ) -> Subscription:
        self._sink = sink
        self._previous_for = tuple(previous_for)
        self._position = from_revision - 1 if from_revision else 0
        if self._error is None:
            self._send(Follow(from_revision, self._previous_for))
        elif self._identity:
            self._loop.call_soon(sink.on_interrupted, self._error)
        else:
            self._loop.call_soon(self._end_subscription, self._error)
        return _SocketSubscription(self, sink)

    def report_backlog(self, seconds: float) -> None:
        self._backlog_s = seconds
        if abs(seconds - self._reported_s) > BACKLOG_STEP_S:
            self._flush_soon()

    def compact(self, revision: int = 0) -> Promise[int]:
        return self._ask(lambda id_: AskCompact(id_, revision), _decode_revision)

    def set_delay(self, write_s: float, read_s: float) -> Promise[None]:
        return self._ask(lambda id_: AskDelay(id_, write_s, read_s), _decode_nothing)

    def close(self) -> None:
        self._closed = True
        self._sink = None
        if self._connecting is not None:
            self._connecting.cancel()
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def unsubscribe(self, sink: StoreSink) -> None:
        if self._sink is sink:
            self._sink = None
            if self._error is None and not self._closed:
                self._send(Unfollow())

    # ---- asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._transport = transport
        self._frames = FrameReader()
        self._out = [Hello(VERSION, self.member)]
        self._flush()

    def data_received(self, data: bytes) -> None:
        for body in self._frames.feed(data):
            for item in decode_store_frame(body):
                if isinstance(item, Events):
                    if self._sink is not None:
                        events = [_decode_event(event) for event in item.events]
                        self._position = events[-1].revision
                        self._sink.on_events(events)
                elif isinstance(item, Answer):
                    promise, decode = self._asked.pop(item.id)
                    promise.resolve(decode(item.result))
                elif isinstance(item, Failure):
                    self._failed(item)
                elif isinstance(item, Welcome):
                    self._welcomed(item.identity)
                elif self._position == 0:  # from now on: this is where that was
                    self._position = item.revision
                    if self._sink is not None:
                        self._sink.on_progress(item.revision)

    def connection_lost(self, exc: Exception | None) -> None:
        reason = str(exc) if exc else "closed"
        self._error = StoreUnavailable(
            f'rpc error: code = Unavailable desc = error reading from server: "{reason}"'
        )
        self._transport = None
        asked, self._asked = self._asked, {}
        for promise, _ in asked.values():
            promise.fail(self._error)
        if self._closed:
            return
        if not self._identity:
            self._end_subscription(self._error)
            return
        if self._sink is not None:
            self._sink.on_interrupted(self._error)
        self._connecting = self._loop.create_task(self._connect_again())

    # ---- connecting
    async def _connect_again(self) -> None:
        """Try until somebody listens; whoever that is says who he is, or ends the connection."""
        while True:
            await asyncio.sleep(self._retry_s)
            self._retry_s = min(self._retry_s * 2, RETRY_MOST_S)
            try:
                await self._loop.create_unix_connection(lambda: self, self._path)
                return
            except OSError:
                continue

    def _welcomed(self, identity: str) -> None:
        before, self._identity = self._identity, identity
        if self._error is None:  # the first connection
            return
        self._error = None
        self._reported_s = 0.0
        self._retry_s = RETRY_LEAST_S
        if self._sink is None:
            return
        self._sink.on_resumed()
        if identity == before:
            self._send(Follow(self._position + 1, self._previous_for))
        else:  # what it was told so far is of another store
            self._end_subscription(Compacted(self._position, 0))

    # ---- helpers
    def _failed(self, failure: Failure) -> None:
        if failure.id:
            self._asked.pop(failure.id)[0].fail(error_of(failure))
        else:
            self._end_subscription(error_of(failure))

    def _end_subscription(self, error: StoreError) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.on_lost(error)

    def _ask(self, make: Callable[[int], FromMember], decode: Callable[[Any], T]) -> Promise[T]:
        promise: Promise[T] = Promise()
        if self._error is not None or self._closed:
            promise.fail(self._error or StoreUnavailable("store: connection closed"))
            return promise
        self._last_id += 1
        self._asked[self._last_id] = (promise, decode)
        self._send(make(self._last_id))
        return promise

    def _send(self, item: FromMember) -> None:
        self._out.append(item)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """One frame for all that this turn of the loop has asked."""
        self._flushing = False
        if self._transport is None:
            return
        out, self._out = self._out, []
        if out or abs(self._backlog_s - self._reported_s) > BACKLOG_STEP_S:
            self._reported_s = self._backlog_s
            self._transport.write(framed(encode(MemberFrame(self._backlog_s, out))))


class _SocketSubscription:
    def __init__(self, store: SocketStore, sink: StoreSink) -> None:
        self._store = store
        self._sink = sink

    def stop(self) -> None:
        self._store.unsubscribe(self._sink)


async def connect(path: str, member: str) -> SocketStore:
    """Connect to the store process that listens at `path`. Raises ConfigError where none does."""
    loop = asyncio.get_running_loop()
    try:
        _, store = await loop.create_unix_connection(lambda: SocketStore(path, member, loop), path)
    except OSError as error:
        raise ConfigError(f"store: cannot connect to {path}: {error}") from None
    return store
