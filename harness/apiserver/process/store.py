"""The store process: one for all members of a pool, on asyncio and uvloop.

``python -m harness.apiserver.process.store`` is told what to do as `child` says, with a `config.StoreConfig`. A
member's etcd replica lives and dies with the member's connection.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec

from harness.apiserver.clock import Promise, resolved
from harness.apiserver.process import child
from harness.apiserver.process.config import StoreConfig
from harness.apiserver.process.durable import DurableStore
from harness.apiserver.process.loopclock import LoopClock
from harness.apiserver.store.core import StoreCore, StoreError, StoreEvent
from harness.apiserver.store.etcd import EtcdModel, EtcdOptions
from harness.apiserver.store.frames import (
    VERSION,
    Answer,
    Ask,
    AskCompact,
    AskDelay,
    AskGet,
    AskHistory,
    AskRange,
    AskRevision,
    AskTxn,
    Events,
    Follow,
    Following,
    FrameReader,
    FromMember,
    FromStore,
    Hello,
    Unfollow,
    Welcome,
    decode_member_frame,
    encode,
    failure,
    framed,
)
from harness.apiserver.store.replicated import ReplicatedStore
from harness.wire.errors import ConfigError

REMEMBERED_EVENTS = 256  # encoded events kept for the members that have yet to hear of them


class EventEncoder:
    """Encodes each event once, however many members it goes to; `previous` only under the prefixes asked for."""

    def __init__(self) -> None:
        self.previous_for: tuple[str, ...] = ()
        self._encoded: dict[int, msgspec.Raw] = {}

    def __call__(self, event: StoreEvent) -> msgspec.Raw:
        encoded = self._encoded.get(event.revision)
        if encoded is None:
            if event.previous is not None and not event.key.startswith(self.previous_for):
                event = StoreEvent(event.revision, event.key, event.value, event.create_revision)
            encoded = self._encoded[event.revision] = msgspec.Raw(encode(event))
            if len(self._encoded) > REMEMBERED_EVENTS:
                del self._encoded[next(iter(self._encoded))]
        return encoded

    def want_previous(self, prefixes: Sequence[str]) -> None:
        wanted = tuple(sorted({*self.previous_for, *prefixes}))
        if wanted != self.previous_for:
            self.previous_for = wanted
            self._encoded.clear()


class MemberConnection(asyncio.Protocol):
    """One member: questions in, answers and events out, a frame for each turn of the loop."""

    def __init__(
        self,
        server: StoreServer,
        replicated: ReplicatedStore,
        encode_event: EventEncoder,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.member = ""
        self._server = server
        self._replicated = replicated
        self._encode_event = encode_event
        self._loop = loop
        self._frames = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._out: list[FromStore] = []
        self._flushing = False

    # ---- asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for body in self._frames.feed(data):
                frame = decode_member_frame(body)
                for item in frame.items:
                    self._take(item)
                if self.member:
                    self._replicated.model.report(self.member, frame.backlog_s)
        except (ValueError, msgspec.MsgspecError) as error:
            print(f"store: {self.member or 'a client'} does not speak our protocol: {error}", file=sys.stderr)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self.member:
            self._server.left(self)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # ---- replicated.ReplicaSink
    def on_events(self, events: Sequence[StoreEvent]) -> None:
        self._send(Events([self._encode_event(event) for event in events]))

    # ---- requests
    def _take(self, item: FromMember) -> None:
        if isinstance(item, Hello):
            self._hello(item)
        elif not self.member:
            raise ValueError(f"{type(item).__name__} before Hello")
        elif isinstance(item, Follow):
            self._follow(item)
        elif isinstance(item, Unfollow):
            self._replicated.follow(self.member, None)
        else:
            self._ask(item).then(partial(self._answer, item.id))

    def _hello(self, hello: Hello) -> None:
        if hello.version != VERSION:
            raise ValueError(f"version {hello.version}, not {VERSION}")
        if self.member or not self._server.joined(hello.member, self):
            raise ValueError(f"member {hello.member!r} is unknown or connected already")
        self.member = hello.member
        self._send(Welcome(self._server.identity))

    def _follow(self, follow: Follow) -> None:
        self._encode_event.want_previous(follow.previous_for)
        applied = self._replicated.follow(self.member, self)
        self._send(Following(applied))
        if follow.from_revision and follow.from_revision <= applied:
            try:
                self.on_events(self._replicated.core.events(follow.from_revision - 1, applied))
            except StoreError as error:
                self._replicated.follow(self.member, None)
                self._send(failure(0, error))

    def _ask(self, ask: Ask) -> Promise[Any]:
        replicated, member = self._replicated, self.member
        match ask:
            case AskTxn():
                return replicated.propose(member, ask.txn)
            case AskGet():
                return replicated.get(member, ask.key)
            case AskRange():
                return replicated.range(member, ask.prefix, ask.start_key, ask.limit, ask.revision)
            case AskRevision():
                return replicated.current_revision(member)
            case AskHistory():
                return replicated.history(member, ask.prefix, ask.after)
            case AskCompact():
                return replicated.compact(member, ask.revision)
            case AskDelay():
                replicated.model.set_delay(ask.write_s, ask.read_s)
                return resolved(None)

    def _answer(self, id_: int, promise: Promise[Any]) -> None:
        try:
            self._send(Answer(id_, msgspec.Raw(encode(promise.result()))))
        except StoreError as error:
            self._send(failure(id_, error))

    def _send(self, item: FromStore) -> None:
        self._out.append(item)
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        out, self._out = self._out, []
        if self._transport is not None:
            self._transport.write(framed(encode(out)))


class StoreServer:
    """The store and the members that are connected to it."""

    def __init__(
        self, config: StoreConfig, loop: asyncio.AbstractEventLoop, disk: DurableStore | None
    ) -> None:
        model = EtcdModel(config.members, Random(config.seed), EtcdOptions.parse(config.etcd))
        core, journal = (disk.core, disk.journal) if disk else (StoreCore(), None)
        self.identity = disk.identity if disk else ""
        self._loop = loop
        clock = LoopClock(loop, config.pace)
        self._replicated = ReplicatedStore(core, model, clock, clock.slack_s, journal)
        self._encode_event = EventEncoder()
        self._members: dict[str, MemberConnection] = {}

    def connection(self) -> MemberConnection:
        return MemberConnection(self, self._replicated, self._encode_event, self._loop)

    def joined(self, member: str, connection: MemberConnection) -> bool:
        """A member says who it is; False if that is nobody we know, or somebody who is here already."""
        if member not in self._replicated.model.members or member in self._members:
            return False
        self._members[member] = connection
        self._replicated.member_back(member)
        return True

    def left(self, connection: MemberConnection) -> None:
        del self._members[connection.member]
        self._replicated.member_lost(connection.member)

    def close(self) -> None:
        self._replicated.close()
        for connection in tuple(self._members.values()):
            connection.close()


async def serve(config: StoreConfig, stop: asyncio.Event) -> None:
    """Listen at the socket of `config` until `stop` is set. Raises ConfigError."""
    loop = asyncio.get_running_loop()
    disk = DurableStore(Path(config.data_dir), loop) if config.data_dir else None
    try:
        await _listen(config, StoreServer(config, loop, disk), disk, stop)
    finally:
        if disk is not None:
            disk.close()


async def _listen(
    config: StoreConfig, store: StoreServer, disk: DurableStore | None, stop: asyncio.Event
) -> None:
    loop = asyncio.get_running_loop()
    path = Path(config.socket)
    path.unlink(missing_ok=True)  # of a store process that was killed
    mask = os.umask(0o077)  # nobody else may connect
    try:
        server = await loop.create_unix_server(store.connection, str(path))
    except OSError as error:
        raise ConfigError(f"store: cannot listen at {path}: {error}") from None
    finally:
        os.umask(mask)
    try:
        gc.freeze()  # what is there now stays; what comes lives by reference counts
        recovered = {"recovered": disk.describe()} if disk else {}
        child.say({"ready": True, "socket": config.socket, "pid": os.getpid(), **recovered})
        await stop.wait()
    finally:
        server.close()
        store.close()
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    child.main(StoreConfig, serve)
