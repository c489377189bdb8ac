"""A member's connection to the store process: `storeclient.Store` over a Unix-domain socket, on asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from harness.apiserver.clock import Promise
from harness.apiserver.store.client import StoreSink, Subscription
from harness.apiserver.store.core import (
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
    decode_store_frame,
    encode,
    error_of,
    framed,
)
from harness.wire.errors import ConfigError

T = TypeVar("T")

BACKLOG_STEP_S = 0.0005  # a change of less than this does not make a frame of its own

_decode_txn = msgspec.msgpack.Decoder(TxnResult).decode
_decode_get = msgspec.msgpack.Decoder(GetResult).decode
_decode_range = msgspec.msgpack.Decoder(RangeResult).decode
_decode_revision = msgspec.msgpack.Decoder(int).decode
_decode_history = msgspec.msgpack.Decoder(HistoryResult).decode
_decode_event = msgspec.msgpack.Decoder(StoreEvent).decode


class SocketStore(asyncio.Protocol):
    """Made by `connect`. Once the connection is lost every call fails with StoreUnavailable; it is not made again:
    the store keeps nothing that would outlive it."""

    def __init__(self, member: str, loop: asyncio.AbstractEventLoop) -> None:
        self.member = member
        self._loop = loop
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
        if self._error is not None:
            self._loop.call_soon(self._end_subscription, self._error)
        else:
            self._send(Follow(from_revision, tuple(previous_for)))
        return _SocketSubscription(self, sink)

    def report_backlog(self, seconds: float) -> None:
        self._backlog_s = seconds
        if abs(seconds - self._reported_s) > BACKLOG_STEP_S:
            self._flush_soon()

    def close(self) -> None:
        self._closed = True
        self._sink = None
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
        self._send(Hello(VERSION, self.member))

    def data_received(self, data: bytes) -> None:
        for body in self._frames.feed(data):
            for item in decode_store_frame(body):
                if isinstance(item, Events):
                    if self._sink is not None:
                        self._sink.on_events([_decode_event(event) for event in item.events])
                elif isinstance(item, Answer):
                    promise, decode = self._asked.pop(item.id)
                    promise.resolve(decode(item.result))
                else:
                    self._failed(item)

    def connection_lost(self, exc: Exception | None) -> None:
        reason = str(exc) if exc else "closed"
        self._error = StoreUnavailable(
            f'rpc error: code = Unavailable desc = error reading from server: "{reason}"'
        )
        asked, self._asked = self._asked, {}
        for promise, _ in asked.values():
            promise.fail(self._error)
        if not self._closed:
            self._end_subscription(self._error)

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
        if self._error is not None or self._transport is None:
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
        _, store = await loop.create_unix_connection(lambda: SocketStore(member, loop), path)
    except OSError as error:
        raise ConfigError(f"store: cannot connect to {path}: {error}") from None
    return store
