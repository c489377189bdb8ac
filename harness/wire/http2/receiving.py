"""Bytes into frames, and what each kind of frame does, header blocks aside (RFC 9113, 4 to 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from harness.wire.http2 import frames, limits
from harness.wire.http2.errors import ErrorCode, ProtocolError
from harness.wire.http2.events import Data, Drained, Event, GoAway, PingAck, SettingsReceived
from harness.wire.http2.messages import MessageReceiver
from harness.wire.http2.sending import ANSWERED, ENDING, REMOTE_ENDED, Stream
from harness.wire.http2.settings import DEFAULT_WINDOW, PROTOCOL_DEFAULTS, apply_settings
from harness.wire.http2.state import NOTHING_NEXT, SETTINGS_NEXT

_STREAMS_UNSTATED = 1000
"""What a client opens at most where the server's SETTINGS state no limit (x/net/http2 transport.go,
``defaultMaxConcurrentStreams``)."""

_ENCODER_TABLE_LIMIT = 4096
"""Bytes of header table that we use however many the peer allows (x/net/http2, ``initialHeaderTableSize``)."""


class FrameReceiver(MessageReceiver):
    """Takes everything that comes."""

    __slots__ = ()

    def feed(self, data: bytes) -> list[Event]:
        """Take bytes from the peer; raises `ProtocolError` (its `events` hold what was understood before)."""
        if self._error is not None:
            raise ProtocolError(self._error.code, self._error.detail)
        events = self._events = []
        try:
            if self._preface:
                data = self._take_preface(data)
            self._take_frames(data)
        except ProtocolError as error:
            # Not the error itself: its traceback holds our callers, and a connection that holds these is never freed
            # but by the garbage collector.
            self._error = ProtocolError(error.code, error.detail)
            error.events = events
            self._events = []
            self._send_goaway(error.code, error.detail.encode()[:200])
            raise
        self._events = []
        return events

    def _take_preface(self, data: bytes) -> bytes:
        expected = self._preface[: len(data)]
        if not data.startswith(expected):
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "the client did not begin with the HTTP/2 preface")
        self._preface = self._preface[len(expected) :]
        return data[len(expected) :]

    def _take_frames(self, data: bytes) -> None:
        if self._chunks is not None:
            # A large frame arrives in many reads; joining only when it is complete keeps that linear.
            self._chunks.append(data)
            self._have += len(data)
            if self._have < self._need:
                return
            data = b"".join(self._chunks)
            self._chunks = None
        position, end = 0, len(data)
        unpack, limit = frames.HEADER.unpack_from, self.settings.max_frame_size
        while end - position >= 9:
            high, low, kind, flags, stream_id = unpack(data, position)
            length = high << 8 | low
            if length > limit:
                raise ProtocolError(
                    ErrorCode.FRAME_SIZE_ERROR, f"a frame of {length} bytes, allowed are {limit}"
                )
            start = position + 9
            position = start + length
            if position > end:
                position = start - 9
                self._keep(data, position, 9 + length)
                return
            stream_id &= limits.MAX_STREAM_ID
            if self._expect:
                self._check_expected(kind, flags, stream_id)
            if kind == 0 and stream_id:
                self._on_data(flags, stream_id, data[start:position])
            else:
                self._on_frame(kind, flags, stream_id, data[start:position])
        if position < end:
            self._keep(data, position, 9)

    def _keep(self, data: bytes, position: int, need: int) -> None:
        rest = data[position:]
        self._chunks = [rest]
        self._have = len(rest)
        self._need = need

    def _check_expected(self, kind: int, flags: int, stream_id: int) -> None:
        if self._expect == SETTINGS_NEXT:
            if kind != frames.SETTINGS or flags & frames.ACK:
                raise ProtocolError(
                    ErrorCode.PROTOCOL_ERROR, f"the first frame is of kind {kind}, not SETTINGS"
                )
            self._expect = NOTHING_NEXT
        elif kind != frames.CONTINUATION or stream_id != self._block_stream:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "a header block interrupted by another frame")

    def _on_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        frames.check_shape(kind, stream_id, len(payload))
        handler = self._HANDLERS.get(kind)
        if handler is None:
            self._count_idle_frame()  # a kind that we do not know is ignored (4.1)
        else:
            handler(self, flags, stream_id, payload)

    # ---- DATA and windows ---------------------------------------------------------------------------------------
    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        length = len(payload)
        self._owed += length
        if self._owed > self._connection_window:
            raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "DATA beyond the connection's window")
        stream = self._streams.get(stream_id)
        if stream is None or stream.flags & REMOTE_ENDED or not (self._server or stream.flags & ANSWERED):
            self._on_misplaced_data(stream_id, stream, length)
            return
        stream.owed += length
        window = self.settings.initial_window_size
        if stream.owed > window and not self._window_unsettled(stream):
            self._fail_stream(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
            self._give_back(length)
            return
        end_stream = bool(flags & frames.END_STREAM)
        data = frames.strip_padding(payload) if flags & frames.PADDED else payload
        if not self._manual:
            self._give_back(length)
            if stream.owed * 2 >= window and not end_stream and stream.owed:
                self._sender.out.append(frames.pack_u32_frame(frames.WINDOW_UPDATE, stream_id, stream.owed))
                stream.owed = 0
        elif len(data) < length:
            self._acknowledge(stream_id, length - len(data))  # the caller never sees the padding
        if data or end_stream:
            self._idle_frames = 0
            self._events.append(Data(stream_id, data, end_stream))
            if end_stream:
                self._end_remote(stream_id, stream)
        else:
            self._count_idle_frame()

    def _window_unsettled(self, stream: Stream) -> bool:
        """Whether a peer that does not know our SETTINGS yet may have sent this much (6.9.3)."""
        return not self._settings_acked and stream.owed <= DEFAULT_WINDOW

    def _on_misplaced_data(self, stream_id: int, stream: Stream | None, length: int) -> None:
        self._give_back(length)
        if stream is None:
            if self._is_idle(stream_id):
                raise ProtocolError(ErrorCode.PROTOCOL_ERROR, f"DATA on stream {stream_id}, which is idle")
            self._count_idle_frame()
        elif stream.flags & REMOTE_ENDED:
            self._fail_stream(stream_id, ErrorCode.STREAM_CLOSED)
        else:
            self._fail_stream(stream_id, ErrorCode.PROTOCOL_ERROR)  # DATA before the answer's head

    def _acknowledge(self, stream_id: int, count: int) -> None:
        self._give_back(count)
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.flags & REMOTE_ENDED:
            stream.taken += count
            if stream.taken and stream.taken * 2 >= self.settings.initial_window_size:
                self._sender.out.append(frames.pack_u32_frame(frames.WINDOW_UPDATE, stream_id, stream.taken))
                stream.owed -= stream.taken
                stream.taken = 0

    def _on_window_update(self, _flags: int, stream_id: int, payload: bytes) -> None:
        increment = frames.U32.unpack(payload)[0] & limits.MAX_WINDOW
        sender = self._sender
        if stream_id == 0:
            if not increment:
                raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0 on the connection")
            if sender.window + increment > limits.MAX_WINDOW:
                raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, "the connection's window exceeds 2^31-1")
            sender.window += increment
        else:
            stream = self._streams.get(stream_id)
            if stream is None:
                self._expect_not_idle(stream_id, "WINDOW_UPDATE")
                return
            if not increment:
                self._fail_stream(stream_id, ErrorCode.PROTOCOL_ERROR)
                return
            if sender.initial_window + stream.credit + increment > limits.MAX_WINDOW:
                self._fail_stream(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
                return
            stream.credit += increment
            sender.wake(stream_id, stream)
        if sender.ready:
            sender.pump(self._on_drained)

    def _on_drained(self, stream_id: int, stream: Stream) -> None:
        self._events.append(Drained(stream_id))
        if stream.flags & ENDING:
            self._end_local(stream_id, stream)

    # ---- other frames -------------------------------------------------------------------------------------------
    def _on_priority(self, _flags: int, stream_id: int, payload: bytes) -> None:
        self._count_idle_frame()
        if len(payload) != 5 and stream_id in self._streams:
            self._fail_stream(stream_id, ErrorCode.FRAME_SIZE_ERROR)

    def _on_rst_stream(self, _flags: int, stream_id: int, payload: bytes) -> None:
        stream = self._streams.pop(stream_id, None)
        if stream is None:
            self._expect_not_idle(stream_id, "RST_STREAM")
            return
        self._sender.forget(stream_id, stream)
        self._tell_broken(stream_id, stream, frames.U32.unpack(payload)[0], by_peer=True)

    def _expect_not_idle(self, stream_id: int, frame: str) -> None:
        if self._is_idle(stream_id):
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, f"{frame} on stream {stream_id}, which is idle")
        self._count_idle_frame()

    def _on_settings(self, flags: int, _stream_id: int, payload: bytes) -> None:
        if flags & frames.ACK:
            self._on_settings_ack(payload)
            return
        self._count_idle_frame()
        old = self.peer_settings
        new = self.peer_settings = apply_settings(old, payload, self.role)
        sender = self._sender
        sender.frame_size = new.max_frame_size
        stated = new.max_concurrent_streams
        self._stream_limit = _STREAMS_UNSTATED if stated is None else stated
        if new.header_table_size != old.header_table_size:
            self._coder.set_encoder_table_size(min(new.header_table_size, _ENCODER_TABLE_LIMIT))
        if new.initial_window_size != old.initial_window_size:
            self._move_windows(new.initial_window_size)
        sender.frame(frames.SETTINGS, frames.ACK, 0)
        self._events.append(SettingsReceived())
        sender.pump(self._on_drained)

    def _move_windows(self, initial_window: int) -> None:
        """6.9.2: the change applies to open streams too, whose windows may become negative."""
        sender = self._sender
        sender.initial_window = initial_window
        for stream_id, stream in self._streams.items():
            if initial_window + stream.credit > limits.MAX_WINDOW:
                raise ProtocolError(
                    ErrorCode.FLOW_CONTROL_ERROR, f"SETTINGS make stream {stream_id}'s window exceed 2^31-1"
                )
            if initial_window + stream.credit <= 0:
                sender.ready.pop(stream_id, None)
            else:
                sender.wake(stream_id, stream)

    def _on_settings_ack(self, payload: bytes) -> None:
        if payload:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a SETTINGS acknowledgement with a payload")
        self._count_idle_frame()
        if not self._settings_acked:
            self._settings_acked = True
            if self.settings.header_table_size < PROTOCOL_DEFAULTS.header_table_size:
                self._coder.set_decoder_table_size(self.settings.header_table_size)

    def _on_ping(self, flags: int, _stream_id: int, payload: bytes) -> None:
        self._count_idle_frame()
        if flags & frames.ACK:
            self._events.append(PingAck(payload))
        else:
            self._sender.frame(frames.PING, frames.ACK, 0, payload)

    def _on_goaway(self, _flags: int, _stream_id: int, payload: bytes) -> None:
        if len(payload) < 8:
            raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, f"GOAWAY of {len(payload)} bytes")
        self._count_idle_frame()
        self.goaway_received = True
        last = frames.U32.unpack_from(payload)[0] & limits.MAX_STREAM_ID
        code = frames.U32.unpack_from(payload, 4)[0]
        self._events.append(GoAway(code, last, payload[8:]))
        if not self._server:
            for stream_id in [number for number in self._streams if number > last]:
                stream = self._streams.pop(stream_id)
                self._sender.forget(stream_id, stream)
                self._tell_broken(stream_id, stream, ErrorCode.REFUSED_STREAM, by_peer=True)

    def _send_goaway(self, code: int, debug: bytes, last_stream_id: int | None = None) -> None:
        """The last stream never rises from one GOAWAY to the next (6.8)."""
        last = self._peer_last_id if last_stream_id is None else last_stream_id
        if self._goaway_last is not None:
            last = min(last, self._goaway_last)
        self._goaway_last = last
        payload = frames.U32.pack(last) + frames.U32.pack(code) + debug
        self._sender.frame(frames.GOAWAY, 0, 0, payload)

    def _on_push_promise(self, _flags: int, stream_id: int, _payload: bytes) -> None:
        raise ProtocolError(ErrorCode.PROTOCOL_ERROR, f"PUSH_PROMISE on stream {stream_id}")

    _HANDLERS: ClassVar[dict[int, Callable[[FrameReceiver, int, int, bytes], None]]] = {
        frames.HEADERS: MessageReceiver._on_headers,
        frames.PRIORITY: _on_priority,
        frames.RST_STREAM: _on_rst_stream,
        frames.SETTINGS: _on_settings,
        frames.PUSH_PROMISE: _on_push_promise,
        frames.PING: _on_ping,
        frames.GOAWAY: _on_goaway,
        frames.WINDOW_UPDATE: _on_window_update,
        frames.CONTINUATION: MessageReceiver._on_continuation,
    }
