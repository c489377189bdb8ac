"""A connected socket, with or without TLS, whose reads and writes never block."""

from __future__ import annotations

import errno
import ssl
from contextlib import suppress
from typing import Any, Protocol

from gevent import get_hub

from harness.transport.dialing import READ, WRITE, Dialled, describe_tls
from harness.transport.dispatch import Dispatcher
from harness.wire.request import Failure, TransportError

PLAIN_READ_BYTES = 65_536
TLS_READ_BYTES = 16_384
"""The largest TLS record: one read returns no more than one record."""

FULL_RECORD_BYTES = 8_192
"""A TLS record longer than this is one of a long answer, so more of them are worth a look."""

READS_A_TURN = 8
"""A connection with more to read than this many reads lets others go first."""


class Owner(Protocol):
    """The protocol on top; called in the dispatcher's greenlet."""

    def received(self, data: bytes) -> None: ...

    def writable(self) -> None:
        """All that a blocked write had left over has been taken; more may be written."""
        ...

    def lost(self, error: TransportError | None) -> None:
        """The peer closed (None) or the connection broke. The channel is closed already."""
        ...


class Channel:
    """Bytes to and from one peer.

    The watcher for reading is started once: its callback only queues the read with the dispatcher. `write` tries at
    once; what the socket does not take is kept and `blocked` is True until it has been taken. The byte counts are
    those of HTTP, before TLS.
    """

    __slots__ = (
        "_dispatcher", "_left_over", "_owner", "_paused", "_queued", "_reader", "_sock", "_tls", "_writer",
        "closed", "member", "received_bytes", "sent_bytes",
    )  # fmt: skip

    def __init__(self, dialled: Dialled, dispatcher: Dispatcher, owner: Owner) -> None:
        self.member = dialled.endpoint.member
        self._sock = dialled.sock
        self._tls = dialled.tls
        self._dispatcher = dispatcher
        self._owner: Owner | None = owner
        self._left_over: memoryview | None = None
        self._queued = False
        self._paused = False
        self._writer: Any = None
        self.closed = False
        self.received_bytes = 0
        self.sent_bytes = 0
        self._reader = get_hub().loop.io(self._sock.fileno(), READ)
        self._reader.start(self._readable)
        # TLS may have read bytes that the socket no longer announces.
        self._readable()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "blocked" if self.blocked else "open"
        return f"<Channel {self.member} {state}>"

    @property
    def blocked(self) -> bool:
        return self._left_over is not None

    def write(self, data: bytes) -> None:
        """Write or keep; not to be called while `blocked`. A broken connection is reported through `lost`."""
        assert self._left_over is None
        if not self.closed:
            self._write(data)

    def close(self, *, killed: bool = False) -> None:
        """Close without waiting; what is left over is dropped. Does nothing the second time. `killed`: as the kernel
        closes what a process leaves that was killed, without a word of TLS."""
        if self.closed:
            return
        self.closed = True
        self._owner = None
        self._left_over = None
        # Watchers before the descriptor: libev must not watch a number that is reused (gevent issue 2100).
        for watcher in (self._reader, self._writer):
            if watcher is not None:
                watcher.stop()
                watcher.close()
        self._reader = self._writer = None
        if self._tls is not None:
            if not killed:
                with suppress(OSError):  # SSLError too: the peer's close_notify is not waited for
                    self._tls.shutdown()
            self._tls = None
        self._sock.close()

    # ---- reading -------------------------------------------------------------------------------------------------
    def _readable(self) -> None:
        """From the hub. The loop reports a socket again and again until it is read; it is queued once, and one that is
        reported while it is queued is not watched until then: reporting thousands of them again at every turn would
        take what is left of a process that has fallen behind."""
        if not self._queued:
            self._queued = True
            self._dispatcher.push(self._read)
        elif not self._paused:
            self._paused = True
            self._reader.stop()

    def _read(self) -> None:
        self._queued = False
        if self._paused and not self.closed:
            self._paused = False
            self._reader.start(self._readable)
        for _ in range(READS_A_TURN):
            if self.closed:
                return
            try:
                data = (
                    self._sock.recv(PLAIN_READ_BYTES) if self._tls is None else self._tls.read(TLS_READ_BYTES)
                )
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                data = b""
            except OSError as error:
                self._lose(self._describe(error))
                return
            if not data:
                self._lose(None)
                return
            self.received_bytes += len(data)
            assert self._owner is not None
            self._owner.received(data)
            if not self._more(len(data)):
                return
        self._readable()

    def _more(self, count: int) -> bool:
        """Whether another read is likely to find something; a wrong guess costs a system call or a turn."""
        if self._tls is None:
            return count == PLAIN_READ_BYTES
        return count > FULL_RECORD_BYTES or (not self.closed and self._tls.pending() > 0)

    # ---- writing -------------------------------------------------------------------------------------------------
    def _write(self, data: bytes | memoryview) -> None:
        send = self._sock.send if self._tls is None else self._tls.write
        try:
            while True:
                count = send(data)
                self.sent_bytes += count
                if count == len(data):
                    return
                data = memoryview(data)[count:]
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            self._left_over = memoryview(data)
            self._await_writable()
        except OSError as error:
            # Reported by the dispatcher, not from inside a write: callers are in the middle of something.
            failure = self._describe(error)
            self._dispatcher.push(lambda: self._lose(failure))

    def _await_writable(self) -> None:
        if self._writer is None:
            self._writer = get_hub().loop.io(self._sock.fileno(), WRITE)
        self._writer.start(self._writable)

    def _writable(self) -> None:
        """From the hub."""
        self._writer.stop()
        self._dispatcher.push(self._write_left_over)

    def _write_left_over(self) -> None:
        data, self._left_over = self._left_over, None
        if data is None or self.closed:
            return
        self._write(data)
        if self._left_over is None and self._owner is not None:
            self._owner.writable()

    # ---- the end -------------------------------------------------------------------------------------------------
    def _lose(self, error: TransportError | None) -> None:
        owner = self._owner
        if owner is not None:
            self.close()
            owner.lost(error)

    def _describe(self, error: OSError) -> TransportError:
        if isinstance(error, ssl.SSLError):
            return TransportError(Failure.TLS, describe_tls(error), self.member)
        kind = Failure.TIMEOUT if error.errno == errno.ETIMEDOUT else Failure.RESET
        return TransportError(kind, (error.strerror or str(error)).lower(), self.member)
