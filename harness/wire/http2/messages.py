"""Header blocks: requests, answers, trailers (RFC 9113, 4.3 and 8)."""

from __future__ import annotations

from harness.wire.http2 import fields, frames, limits
from harness.wire.http2.errors import ErrorCode, ProtocolError
from harness.wire.http2.events import Headers, Trailers
from harness.wire.http2.hpack_coder import HeaderList, HpackError
from harness.wire.http2.sending import ANSWERED, REMOTE_ENDED, Stream
from harness.wire.http2.state import CONTINUATION_NEXT, NOTHING_NEXT, ConnectionState


class MessageReceiver(ConnectionState):
    """Takes HEADERS and CONTINUATION frames."""

    __slots__ = ()

    def _on_headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if flags & frames.PADDED:
            payload = frames.strip_padding(payload)
        if flags & frames.PRIORITY_FLAG:
            payload = frames.strip_priority(payload)
        if flags & frames.END_HEADERS:
            self._on_block(stream_id, payload, bool(flags & frames.END_STREAM))
            return
        self._block = bytearray(payload)
        self._block_stream, self._block_flags, self._block_frames = stream_id, flags, 0
        self._expect = CONTINUATION_NEXT

    def _on_continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._block
        if block is None:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        block += payload
        self._block_frames += 1
        limit = self.settings.max_header_list_size
        if self._block_frames > limits.MAX_CONTINUATIONS or (limit is not None and len(block) > 2 * limit):
            raise ProtocolError(
                ErrorCode.ENHANCE_YOUR_CALM, f"a header block of more than {len(block)} bytes"
            )
        if flags & frames.END_HEADERS:
            self._block = None
            self._expect = NOTHING_NEXT
            self._on_block(stream_id, bytes(block), bool(self._block_flags & frames.END_STREAM))

    def _on_block(self, stream_id: int, block: bytes, end_stream: bool) -> None:
        try:
            headers = self._coder.decode(block)
        except HpackError as error:
            raise ProtocolError(ErrorCode.COMPRESSION_ERROR, str(error)) from error
        stream = self._streams.get(stream_id)
        if stream is None:
            self._on_unknown_headers(stream_id, headers, end_stream, len(block))
        elif stream.flags & REMOTE_ENDED:
            self._fail_stream(stream_id, ErrorCode.STREAM_CLOSED)
        elif self._too_long(headers, len(block)):
            self._fail_stream(stream_id, ErrorCode.ENHANCE_YOUR_CALM)
        elif self._server or stream.flags & ANSWERED:
            self._on_trailers(stream_id, stream, headers, end_stream)
        else:
            self._on_response(stream_id, stream, headers, end_stream)

    def _on_unknown_headers(
        self, stream_id: int, headers: HeaderList, end_stream: bool, block_bytes: int
    ) -> None:
        """HEADERS of a stream that is not open: a request, or the rest of a stream that we have forgotten."""
        if not self._is_idle(stream_id):
            self._count_idle_frame()
            return
        if not self._server or stream_id % 2 == 0:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, f"HEADERS on stream {stream_id}, which is not open")
        self._peer_last_id = stream_id
        if self._goaway_last is not None:
            self._count_idle_frame()
            return
        limit = self.settings.max_concurrent_streams
        if limit is not None and len(self._streams) >= limit:
            self._refuse(
                stream_id, ErrorCode.PROTOCOL_ERROR if self._settings_acked else ErrorCode.REFUSED_STREAM
            )
        elif fields.check_request(headers) is not None:
            self._refuse(stream_id, ErrorCode.PROTOCOL_ERROR)
        elif self._too_long(headers, block_bytes):
            self._answer_431(stream_id, end_stream)
        else:
            self._idle_frames = 0
            self._streams[stream_id] = Stream(REMOTE_ENDED if end_stream else 0)
            self._events.append(Headers(stream_id, headers, end_stream))

    def _refuse(self, stream_id: int, code: int) -> None:
        """Reset a stream of which the caller has heard nothing."""
        self._count_unanswered()
        self._sender.out.append(frames.pack_u32_frame(frames.RST_STREAM, stream_id, code))

    def _answer_431(self, stream_id: int, end_stream: bool) -> None:
        """Answer for the caller; the rest of the request is not wanted."""
        self._count_idle_frame()
        block = self._coder.encode([(b":status", b"431"), (b"content-length", b"0")])
        self._sender.header_block(stream_id, block, True)
        if not end_stream:
            self._sender.out.append(frames.pack_u32_frame(frames.RST_STREAM, stream_id, ErrorCode.NO_ERROR))

    def _on_response(self, stream_id: int, stream: Stream, headers: HeaderList, end_stream: bool) -> None:
        if fields.check_response(headers) is not None:
            self._fail_stream(stream_id, ErrorCode.PROTOCOL_ERROR)
        elif headers[0][1].startswith(b"1"):
            if end_stream:
                self._fail_stream(stream_id, ErrorCode.PROTOCOL_ERROR)
            else:
                self._count_idle_frame()
        else:
            self._idle_frames = 0
            stream.flags |= ANSWERED
            self._events.append(Headers(stream_id, headers, end_stream))
            if end_stream:
                self._end_remote(stream_id, stream)

    def _on_trailers(self, stream_id: int, stream: Stream, headers: HeaderList, end_stream: bool) -> None:
        if not end_stream or fields.check_fields(headers) is not None:
            self._fail_stream(stream_id, ErrorCode.PROTOCOL_ERROR)
        else:
            self._idle_frames = 0
            self._events.append(Trailers(stream_id, headers))
            self._end_remote(stream_id, stream)

    def _too_long(self, headers: HeaderList, block_bytes: int) -> bool:
        """Whether the list exceeds the announced limit; one byte of a block makes at most a table's worth of list."""
        limit = self.settings.max_header_list_size
        if limit is None or block_bytes * self.settings.header_table_size <= limit:
            return False
        return fields.list_size(headers) > limit
