"""The sockets of a link, on an asyncio loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import cast

from harness.pool.network.config import LinkConfig, LinkState
from harness.pool.network.shaping import END, OPEN, Lane, Wire
from harness.wire.draws import SmallDraws
from harness.wire.pace import REAL, Pace

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: closing sends RST and drops what was not sent
CONNECT_WITHIN_S = 10.0


class Link:
    """Listens once `start` was awaited; `port` is where. Times of its shape are at `pace`."""

    def __init__(self, config: LinkConfig, pace: Pace = REAL) -> None:
        self.name = config.name
        self.port = 0
        self.state = LinkState()
        self._config = config
        self._pace = pace
        self._out = Wire(SmallDraws(f"{config.seed}/out"))
        self._back = Wire(SmallDraws(f"{config.seed}/back"))
        self._ends: set[_End] = set()
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """Open ones, each counted once."""
        return (len(self._ends) + 1) // 2

    async def start(self) -> None:
        """Raises OSError where the address is taken."""
        loop, listen = asyncio.get_running_loop(), self._config.listen
        if listen.path:
            self._server = await loop.create_unix_server(self._accepted, listen.path)
            return
        self._server = await loop.create_server(self._accepted, listen.host, listen.port, backlog=1024)
        self.port = int(self._server.sockets[0].getsockname()[1])

    def become(self, state: LinkState) -> None:
        """From now on; what is on its way is sent anew as the link is now."""
        now = self._pace.seconds(asyncio.get_running_loop().time)()
        self.state = state
        for wire in (self._out, self._back):
            wire.reshape(state.shape, now)
        for end in tuple(self._ends):
            if state.reset:
                end.reset()
            else:
                end.reshaped()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for end in tuple(self._ends):
            end.abort()

    # ---- connections -----------------------------------------------------------------------------------------------
    def _accepted(self) -> asyncio.Protocol:
        near = _End(self._out, self._ends, self._connect, self._pace)
        near.other = _End(self._back, self._ends, None, self._pace)
        near.other.other = near
        return near

    def _connect(self, near: _End) -> None:
        """The other side of a connection that has come."""
        if self.state.reset:
            near.reset()
            return
        near.task = asyncio.ensure_future(self._reach(near))

    async def _reach(self, near: _End) -> None:
        loop, to, far = asyncio.get_running_loop(), self._config.to, near.other
        assert far is not None
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                if to.path:
                    await loop.create_unix_connection(lambda: far, to.path)
                else:
                    await loop.create_connection(lambda: far, to.host, to.port)
        except OSError:  # nobody is there, TimeoutError included: whoever has come hears it as a reset
            near.reset()
            return
        near.join()


class _End(asyncio.Protocol):
    """One of a connection's two sockets: what comes in here goes over `lane` and out at `other`."""

    def __init__(
        self, wire: Wire, ends: set[_End], on_connected: Callable[[_End], None] | None, pace: Pace
    ) -> None:
        self.other: _End | None = None
        self.task: asyncio.Future[None] | None = None
        self._wire = wire
        self._lane = Lane(wire)
        self._ends = ends
        self._on_connected = on_connected
        self._loop = asyncio.get_running_loop()
        self._pace = pace
        self._now = pace.seconds(self._loop.time)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._joined = on_connected is None  # has somebody to pass on to
        self._waits = False  # has stopped reading
        self._crowded = False  # the other's socket takes no more
        self._ended = False  # its peer has said all, and that has gone out

    # ---- asyncio's callbacks ---------------------------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = stream = cast(asyncio.Transport, transport)  # uvloop's are of no class of asyncio's
        self._ends.add(self)
        beneath = stream.get_extra_info("socket")
        if beneath is not None and beneath.family != socket.AF_UNIX:
            beneath.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._on_connected is not None:
            self._on_connected(self)
        elif self.other is None or self.other._transport is None:
            self.abort()  # who had come has gone

    def data_received(self, data: bytes) -> None:
        if self._wire.shape is OPEN and self._joined and self._lane.next_s is None:
            assert self.other is not None
            self.other.write(data)
            return
        self._lane.put(data, self._now())
        self._pass_on()

    def eof_received(self) -> bool:
        self._lane.put(END, self._now())
        self._pass_on()
        return True  # the other direction goes on

    def connection_lost(self, error: Exception | None) -> None:
        self._ends.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self.task is not None:
            self.task.cancel()
        other, self.other = self.other, None
        if other is not None and not (self._ended and other._ended):
            other.reset()

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other._crowded = True
            self.other._read_or_wait()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other._crowded = False
            self.other._read_or_wait()

    # ---- what the link and the other end do with it ----------------------------------------------------------------
    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def write_end(self) -> None:
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()

    def join(self) -> None:
        """There is another side now."""
        self._joined = True
        self._pass_on()

    def reshaped(self) -> None:
        self._lane.reshaped(self._now())
        self._pass_on()

    def reset(self) -> None:
        """Close it so that its peer gets RST."""
        if self._transport is not None:
            beneath = self._transport.get_extra_info("socket")
            if beneath is not None and beneath.family != socket.AF_UNIX:
                beneath.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self._transport.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ---- passing on ------------------------------------------------------------------------------------------------
    def _pass_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        other = self.other
        if other is None or not self._joined:
            self._read_or_wait()
            return
        for data in self._lane.due(self._now()):
            if data == END:
                self._ended = True
                other.write_end()
            else:
                other.write(data)
        next_s = self._lane.next_s
        if next_s is not None:
            self._timer = self._loop.call_at(self._pace.real_s(next_s), self._pass_on)
        self._read_or_wait()
        if self._ended and other._ended:
            self._finish(other)

    def _finish(self, other: _End) -> None:
        """Both have said all."""
        for end in (self, other):
            if end._transport is not None:
                end._transport.close()

    def _read_or_wait(self) -> None:
        waits = self._lane.full or self._crowded
        if waits == self._waits or self._transport is None or self._ended:
            return
        self._waits = waits
        if waits:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
