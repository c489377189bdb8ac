"""Outgoing frames and flow control (RFC 9113, 5.2): what may go out now, what waits, in which order it follows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from harness.wire.http2 import frames
from harness.wire.http2.settings import DEFAULT_WINDOW, MIN_FRAME_SIZE

LOCAL_ENDED, REMOTE_ENDED, ANSWERED, ENDING = 1, 2, 4, 8
"""Flags of a stream. ANSWERED: its final head went out (server) or came in (client). ENDING: END_STREAM follows what
waits, nothing more may be queued."""


class Stream(msgspec.Struct, gc=False, eq=False):
    """What one open stream needs; 64 bytes, which 35 watches a kubelet make worth counting.

    `credit` is what WINDOW_UPDATEs gave less what was sent, so the send window is the peer's initial window plus it:
    a SETTINGS change then moves every window at once, below 0 too (6.9.2). `owed` is what came and was not yet given
    back, `taken` the part of it that the caller has acknowledged (manual windows).
    """

    flags: int
    credit: int = 0
    owed: int = 0
    taken: int = 0
    unsent: int = 0
    pending: deque[memoryview] | None = None


class Sender:
    """Queued output, and the streams whose data waits for a window.

    Every stream in `ready` has data and an open window of its own; it waits for the connection's window. So `ready`
    is empty or the connection's window is. A stream with data that is not in `ready` waits for its own.
    """

    __slots__ = ("frame_size", "initial_window", "out", "ready", "window")

    def __init__(self) -> None:
        self.out: list[bytes | memoryview] = []
        self.window = DEFAULT_WINDOW
        self.initial_window = DEFAULT_WINDOW
        self.frame_size = MIN_FRAME_SIZE
        self.ready: dict[int, Stream] = {}

    def take(self) -> bytes:
        out = self.out
        if not out:
            return b""
        self.out = []
        return b"".join(out)

    def frame(self, kind: int, flags: int, stream_id: int, payload: bytes = b"") -> None:
        self.out.append(frames.pack_frame(kind, flags, stream_id, payload))

    def header_block(self, stream_id: int, block: bytes, end_stream: bool) -> None:
        """HEADERS, and CONTINUATIONs where the block is longer than the peer's frame size."""
        flags = frames.END_STREAM if end_stream else 0
        size = self.frame_size
        if len(block) <= size:
            self.frame(frames.HEADERS, flags | frames.END_HEADERS, stream_id, block)
            return
        self.frame(frames.HEADERS, flags, stream_id, block[:size])
        for start in range(size, len(block), size):
            last = frames.END_HEADERS if start + size >= len(block) else 0
            self.frame(frames.CONTINUATION, last, stream_id, block[start : start + size])

    def data(self, stream_id: int, stream: Stream, data: bytes, end_stream: bool) -> bool:
        """Send or queue; True when all of it, END_STREAM included, is framed."""
        length = len(data)
        if (
            stream.pending is None
            and length <= self.frame_size
            and length <= self.window
            and length <= self.initial_window + stream.credit
        ) or (not length and stream.pending is None):
            if length or end_stream:
                self.out.append(
                    frames.HEADER.pack(length >> 8, length & 0xFF, frames.DATA, end_stream, stream_id)
                )
                self.out.append(data)
                self.window -= length
                stream.credit -= length
            return True
        return self._queue(stream_id, stream, data, end_stream)

    def _queue(self, stream_id: int, stream: Stream, data: bytes, end_stream: bool) -> bool:
        if end_stream:
            stream.flags |= ENDING
        waiting = stream.pending
        if waiting is None:
            waiting = stream.pending = deque()
        if data:
            waiting.append(memoryview(data))
            stream.unsent += len(data)
        self.wake(stream_id, stream)
        while stream_id in self.ready and self.window > 0:
            self._next_frame(stream_id, stream)
        return stream.pending is None

    def wake(self, stream_id: int, stream: Stream) -> None:
        """Line the stream up, where it has data and its own window is open."""
        if stream.pending is not None and self.initial_window + stream.credit > 0:
            self.ready.setdefault(stream_id, stream)

    def forget(self, stream_id: int, stream: Stream) -> None:
        """Drop what waits."""
        if stream.pending is not None:
            self.ready.pop(stream_id, None)
            stream.pending = None
            stream.unsent = 0

    def pump(self, on_drained: Callable[[int, Stream], None]) -> None:
        """Send what the windows admit now, one frame a stream in turn."""
        ready = self.ready
        while ready and self.window > 0:
            stream_id = next(iter(ready))
            stream = ready.pop(stream_id)
            ready[stream_id] = stream
            self._next_frame(stream_id, stream)
            if stream.pending is None:
                on_drained(stream_id, stream)

    def _next_frame(self, stream_id: int, stream: Stream) -> None:
        """One DATA frame of a ready stream, as large as windows and frame size allow."""
        waiting = stream.pending
        assert waiting, "a ready stream has data"
        room = min(self.window, self.initial_window + stream.credit, self.frame_size)
        length = 0
        parts: list[memoryview] = []
        while waiting and length < room:
            part = waiting.popleft()
            if len(part) > room - length:
                waiting.appendleft(part[room - length :])
                part = part[: room - length]
            parts.append(part)
            length += len(part)
        end = not waiting and bool(stream.flags & ENDING)
        self.out.append(frames.HEADER.pack(length >> 8, length & 0xFF, frames.DATA, end, stream_id))
        self.out.extend(parts)
        self.window -= length
        stream.credit -= length
        stream.unsent -= length
        if not waiting:
            stream.pending = None
        if not waiting or self.initial_window + stream.credit <= 0:
            del self.ready[stream_id]
