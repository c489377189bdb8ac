"""One side of an HTTP/2 connection; the package's docstring says how it works."""

from __future__ import annotations

from collections.abc import Sequence

from harness.wire.http2 import frames, limits
from harness.wire.http2.errors import ErrorCode
from harness.wire.http2.events import Event
from harness.wire.http2.receiving import FrameReceiver
from harness.wire.http2.sending import ANSWERED, ENDING, LOCAL_ENDED, Stream
from harness.wire.http2.settings import DEFAULT_WINDOW, PROTOCOL_DEFAULTS, encode_settings
from harness.wire.http2.state import SETTINGS_NEXT

_HELD = 1 << 32
"""More than any window, so that it is closed whatever the peer gives."""


class Connection(FrameReceiver):
    """One side; sans I/O. Not safe for use by several threads at once.

    `connection_window` is how many bytes the peer may have under way on all streams together (at least 65535). With
    `manual_window`, windows are given back as the caller calls `acknowledge()`; otherwise as data arrives. The
    constructor is `ConnectionState`'s, `feed()` stands in `FrameReceiver`.
    """

    __slots__ = ()

    def initiate(self) -> None:
        """Queue the preface. Both sides call this once, before anything else."""
        if not self._server:
            self._sender.out.append(frames.PREFACE)
        self._sender.frame(frames.SETTINGS, 0, 0, encode_settings(self.settings, self.role))
        more = self._connection_window - DEFAULT_WINDOW
        if more:
            self._sender.out.append(frames.pack_u32_frame(frames.WINDOW_UPDATE, 0, more))
        if self.settings.header_table_size > PROTOCOL_DEFAULTS.header_table_size:
            self._coder.set_decoder_table_size(self.settings.header_table_size)

    def request(
        self, headers: Sequence[tuple[bytes, bytes]], body: bytes = b"", end_stream: bool = True
    ) -> int:
        """Open a stream (client) and return its identifier; `headers` begin with the pseudo-headers.

        Raises RuntimeError where `can_open()` is False.
        """
        if not self.can_open():
            raise RuntimeError(f"no more streams on {self!r}")
        stream_id = self._next_id
        self._next_id += 2
        stream = self._streams[stream_id] = Stream(0)
        self._send_head(stream_id, stream, headers, body, end_stream)
        return stream_id

    def respond(
        self,
        stream_id: int,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes = b"",
        end_stream: bool = False,
    ) -> None:
        """Answer (server); `headers` begin with ``:status``."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.flags & (LOCAL_ENDED | ENDING):
            return
        if not headers[0][1].startswith(b"1"):
            stream.flags |= ANSWERED
            if self._unanswered_resets:
                self._unanswered_resets -= 1
        self._send_head(stream_id, stream, headers, body, end_stream)

    def _send_head(
        self,
        stream_id: int,
        stream: Stream,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
        end_stream: bool,
    ) -> None:
        self._idle_frames = 0
        ends_here = end_stream and not body
        self._sender.header_block(stream_id, self._coder.encode(headers), ends_here)
        if ends_here:
            self._end_local(stream_id, stream)
        elif body:
            self.send_data(stream_id, body, end_stream)

    def send_data(self, stream_id: int, data: bytes, end_stream: bool = False) -> None:
        """Send any amount; what the windows do not admit is kept and follows as they open."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.flags & (LOCAL_ENDED | ENDING):
            return
        self._idle_frames = 0
        if self._sender.data(stream_id, stream, data, end_stream) and end_stream:
            self._end_local(stream_id, stream)

    def reset(self, stream_id: int, code: int = ErrorCode.CANCEL) -> None:
        """Break the stream off; nothing more is heard of it."""
        self._drop_stream(stream_id, code)

    def ping(self, payload: bytes) -> None:
        """`payload` is 8 bytes; it comes back in a `PingAck`."""
        assert len(payload) == 8, payload
        self._sender.frame(frames.PING, 0, 0, payload)

    def goaway(
        self, code: int = ErrorCode.NO_ERROR, last_stream_id: int | None = None, debug: bytes = b""
    ) -> None:
        """Announce that no further stream is taken; None: those accepted so far are. Open streams go on.

        What comes on streams opened later is passed over unanswered, as a kube-apiserver does while it shuts down.
        """
        self._send_goaway(code, debug, last_stream_id)

    def acknowledge(self, stream_id: int, count: int) -> None:
        """The caller has used up `count` bytes of the stream's data (with `manual_window` only).

        To be called for all data that came, streams that have ended meanwhile included: the connection's window counts
        them too.
        """
        self._acknowledge(stream_id, count)

    def hold_data(self) -> None:
        """Send no DATA, as if the peer's windows were closed; everything else goes on. Not to be called twice."""
        self._sender.window -= _HELD

    def release_data(self) -> list[Event]:
        """Send what `hold_data` has held back; the `Drained` events of streams that waited for nothing else."""
        events = self._events = []
        self._sender.window += _HELD
        self._sender.pump(self._on_drained)
        self._events = []
        return events

    def take_output(self) -> bytes:
        """Everything queued for the socket, in order; b"" where nothing is."""
        return self._sender.take()

    @property
    def has_output(self) -> bool:
        return bool(self._sender.out)

    def unsent(self, stream_id: int) -> int:
        """Bytes given to `send_data` that flow control still holds back."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.unsent

    @property
    def unsent_answers(self) -> dict[int, int]:
        """Streams that have been given all of their data and wait to send it, with the bytes of each."""
        return {number: stream.unsent for number, stream in self._streams.items() if stream.flags & ENDING}

    @property
    def established(self) -> bool:
        """Whether the peer's preface has come, its SETTINGS included."""
        return not self._preface and self._expect != SETTINGS_NEXT

    def compact(self) -> None:
        """Give back what the table of streams has grown by; to be called now and then. A dictionary through which short
        streams pass beside those that stay is twice as large as it needs to be, and never shrinks by itself."""
        self._streams = dict(self._streams)

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def can_open(self) -> bool:
        """Whether the client may open a stream now: no GOAWAY either way, below the peer's limit, identifiers left."""
        return not (
            self._server
            or self.goaway_received
            or self._goaway_last is not None
            or self._error is not None
            or len(self._streams) >= self._stream_limit
            or self._next_id > limits.MAX_STREAM_ID
        )
