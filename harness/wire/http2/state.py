"""What one side of a connection knows, and the endings that all of its parts share."""

from __future__ import annotations

from harness.wire.http2 import frames, limits
from harness.wire.http2.errors import ErrorCode, ProtocolError
from harness.wire.http2.events import Event, Reset
from harness.wire.http2.hpack_coder import new_coder
from harness.wire.http2.sending import ANSWERED, LOCAL_ENDED, REMOTE_ENDED, Sender, Stream
from harness.wire.http2.settings import DEFAULT_WINDOW, PROTOCOL_DEFAULTS, Role, Settings

_STREAMS_BEFORE_SETTINGS = 100
"""What a client opens at most before the server's SETTINGS came (x/net/http2 transport.go,
``initialMaxConcurrentStreams``)."""


NOTHING_NEXT, SETTINGS_NEXT, CONTINUATION_NEXT = range(3)
"""What the next frame has to be."""


class ConnectionState:
    """State and stream bookkeeping; above it come `MessageReceiver`, `FrameReceiver`, `Connection`."""

    __slots__ = (
        "_block",
        "_block_flags",
        "_block_frames",
        "_block_stream",
        "_chunks",
        "_coder",
        "_connection_window",
        "_error",
        "_events",
        "_expect",
        "_goaway_last",
        "_have",
        "_idle_frames",
        "_manual",
        "_need",
        "_next_id",
        "_owed",
        "_peer_last_id",
        "_preface",
        "_sender",
        "_server",
        "_settings_acked",
        "_stream_limit",
        "_streams",
        "_taken",
        "_unanswered_resets",
        "goaway_received",
        "peer_settings",
        "role",
        "settings",
    )

    def __init__(
        self,
        role: Role,
        settings: Settings = PROTOCOL_DEFAULTS,
        connection_window: int = DEFAULT_WINDOW,
        *,
        manual_window: bool = False,
    ) -> None:
        assert DEFAULT_WINDOW <= connection_window <= limits.MAX_WINDOW, connection_window
        self.role = role
        self.settings = settings
        self.peer_settings = PROTOCOL_DEFAULTS
        self.goaway_received = False
        self._server = role is Role.SERVER
        self._sender = Sender()
        self._coder = new_coder()
        self._streams: dict[int, Stream] = {}
        self._stream_limit = _STREAMS_BEFORE_SETTINGS
        self._next_id = 1
        self._peer_last_id = 0
        self._goaway_last: int | None = None
        self._error: ProtocolError | None = None
        # Receiving: bytes of an incomplete frame, what must come next, the header block under way.
        self._chunks: list[bytes] | None = None
        self._have = 0
        self._need = 0
        self._preface = frames.PREFACE if self._server else b""
        self._expect = SETTINGS_NEXT
        self._events: list[Event] = []
        self._block: bytearray | None = None
        self._block_stream = self._block_flags = self._block_frames = 0
        self._settings_acked = False
        self._connection_window = connection_window
        self._owed = self._taken = 0
        self._manual = manual_window
        self._idle_frames = self._unanswered_resets = 0

    def __repr__(self) -> str:
        state = (
            "failed"
            if self._error
            else "draining"
            if self.goaway_received or self._goaway_last is not None
            else "open"
        )
        return f"<http2 {self.role.value} {state}, {len(self._streams)} streams>"

    def _is_idle(self, stream_id: int) -> bool:
        """Never opened; streams of the even kind never are, as nobody pushes."""
        if stream_id % 2 == 0:
            return True
        return stream_id > self._peer_last_id if self._server else stream_id >= self._next_id

    def _end_local(self, stream_id: int, stream: Stream) -> None:
        stream.flags |= LOCAL_ENDED
        if stream.flags & REMOTE_ENDED:
            self._streams.pop(stream_id, None)

    def _end_remote(self, stream_id: int, stream: Stream) -> None:
        stream.flags |= REMOTE_ENDED
        if stream.flags & LOCAL_ENDED:
            self._streams.pop(stream_id, None)

    def _drop_stream(self, stream_id: int, code: int) -> None:
        """Send RST_STREAM and forget the stream, if it is open."""
        stream = self._streams.pop(stream_id, None)
        if stream is not None:
            self._sender.forget(stream_id, stream)
            self._sender.out.append(frames.pack_u32_frame(frames.RST_STREAM, stream_id, code))

    def _fail_stream(self, stream_id: int, code: int) -> None:
        """A stream error (5.4.2) of the peer."""
        self._count_idle_frame()
        stream = self._streams[stream_id]
        self._drop_stream(stream_id, code)
        self._tell_broken(stream_id, stream, code, by_peer=False)

    def _tell_broken(self, stream_id: int, stream: Stream, code: int, by_peer: bool) -> None:
        if not self._server:
            if not stream.flags & REMOTE_ENDED:  # an answer that is complete needs no more of our request
                self._events.append(Reset(stream_id, code, by_peer))
            return
        self._events.append(Reset(stream_id, code, by_peer))
        if not stream.flags & ANSWERED:
            self._count_unanswered()

    def _count_idle_frame(self) -> None:
        self._idle_frames += 1
        if self._idle_frames > limits.MAX_IDLE_FRAMES:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, f"{limits.MAX_IDLE_FRAMES} frames without use")

    def _count_unanswered(self) -> None:
        """One more stream that ended before we answered; answers count it down again."""
        self._unanswered_resets += 1
        if self._unanswered_resets > limits.MAX_UNANSWERED_RESETS:
            raise ProtocolError(ErrorCode.ENHANCE_YOUR_CALM, "too many streams ended before an answer")

    def _give_back(self, count: int) -> None:
        """Bytes of the connection's window that are used up."""
        self._taken += count
        if self._taken * 2 >= self._connection_window:
            self._sender.out.append(frames.pack_u32_frame(frames.WINDOW_UPDATE, 0, self._taken))
            self._owed -= self._taken
            self._taken = 0
