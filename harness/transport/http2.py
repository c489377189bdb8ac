"""HTTP/2 on one connection: streams and handles, GOAWAY, PING, the idle connection's end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.transport.channel import Channel
from harness.transport.dialing import Dialled
from harness.transport.handles import Handle
from harness.transport.options import TransportOptions
from harness.transport.timers import Timer, Timers
from harness.wire.http2 import (
    GO_CLIENT_CONNECTION_WINDOW,
    GO_CLIENT_SETTINGS,
    Connection,
    Data,
    ErrorCode,
    Event,
    GoAway,
    Headers,
    PingAck,
    ProtocolError,
    Reset,
    Role,
    SettingsReceived,
    Trailers,
)
from harness.wire.http2.errors import name_of
from harness.wire.request import Failure, Request, TransportError

if TYPE_CHECKING:
    from harness.transport.pool import Transport

RETRIED_CODES = frozenset((ErrorCode.REFUSED_STREAM, ErrorCode.PROTOCOL_ERROR))
"""RST_STREAM codes after which a request without an answer is sent again: golang.org/x/net/http2 transport.go,
``canRetryError`` (PROTOCOL_ERROR because of golang/go#47635)."""

_UNAUTHORIZED = 401


class Http2Connection:
    """Carries up to the peer's stream limit of requests.

    Output is written when the dispatcher has done the item that caused it; while the socket is blocked it stays in
    the codec. `draining` is True from GOAWAY on: what is open goes on, then the connection closes.
    """

    __slots__ = (
        "_channel", "_check", "_codec", "_flush_queued", "_idle_since", "_last_read", "_options", "_ping_sent",
        "_pings", "_streams", "_timers", "_transport", "authority", "draining", "member",
    )  # fmt: skip

    def __init__(
        self, transport: Transport, dialled: Dialled, timers: Timers, options: TransportOptions
    ) -> None:
        self.member = dialled.endpoint.member
        self.authority = dialled.endpoint.authority.encode()
        self.draining = False
        self._transport = transport
        self._timers = timers
        self._options = options
        self._streams: dict[int, Handle] = {}
        self._codec = Connection(Role.CLIENT, GO_CLIENT_SETTINGS, GO_CLIENT_CONNECTION_WINDOW)
        self._flush_queued = False
        self._last_read = self._idle_since = timers.now()
        self._pings = 0
        self._ping_sent: float | None = None
        self._channel = Channel(dialled, timers.dispatcher, self)
        self._check: Timer | None = None
        self._arm_check()
        self._codec.initiate()
        self._flush_soon()

    def __repr__(self) -> str:
        state = "closed" if self._channel.closed else "draining" if self.draining else "open"
        return f"<Http2Connection {self.member} {state} streams={len(self._streams)}>"

    # ---- what the transport asks ------------------------------------------------------------------------------------
    @property
    def open_streams(self) -> int:
        return len(self._streams)

    @property
    def received_bytes(self) -> int:
        return self._channel.received_bytes

    @property
    def sent_bytes(self) -> int:
        return self._channel.sent_bytes

    def can_take(self) -> bool:
        limit = self._options.streams_per_connection
        return (
            not self._channel.closed
            and self._codec.can_open()
            and (limit is None or len(self._streams) < limit)
        )

    def submit(self, handle: Handle, request: Request) -> None:
        """Open a stream; only where `can_take()`."""
        codec = self._codec
        handle.carrier = self
        handle.stream_id = codec.request(self._transport.head_of(request, self.authority), request.body)
        self._streams[handle.stream_id] = handle
        self._flush_soon()

    def abandon(self, handle: Handle) -> None:
        """RST_STREAM(CANCEL), as Go sends when a request's context ends."""
        if self._streams.pop(handle.stream_id, None) is not None:
            self._codec.reset(handle.stream_id, ErrorCode.CANCEL)
            self._flush_soon()
            self._stream_gone()

    def hang_up(self, *, killed: bool = False) -> None:
        """Take nothing more and hear nothing more; `close` is due."""
        self._channel.close(killed=killed)

    def close(self, error: TransportError) -> None:
        """Close at once; every stream ends in `error`."""
        self._channel.close()
        if self._check is not None:
            self._check.cancel()
            self._check = None
        streams, self._streams = self._streams, {}
        self._transport.connection_closed(self)
        for handle in streams.values():
            self._transport.end(handle, error)

    # ---- what the channel tells -------------------------------------------------------------------------------------
    def received(self, data: bytes) -> None:
        self._last_read = self._timers.now()
        fault: ProtocolError | None = None
        try:
            events = self._codec.feed(data)
        except ProtocolError as error:
            events, fault = error.events, error
        for event in events:
            try:
                self._handle(event)
            except Exception:
                self._sink_raised(event)
        if fault is not None:
            self._flush()
            self._break(TransportError(Failure.PROTOCOL, fault.detail, self.member))
        elif self._codec.has_output:
            self._flush_soon()

    def writable(self) -> None:
        self._flush()

    def lost(self, error: TransportError | None) -> None:
        detail = "the peer sent GOAWAY and closed" if self.draining else "the peer closed the connection"
        self._break(error or TransportError(Failure.RESET, detail, self.member))

    def _break(self, error: TransportError) -> None:
        """It ends, and not because we wanted it to."""
        if self._streams and not self.draining:
            self._transport.connection_lost(self.member)
        self.close(error)

    # ---- events of the codec ----------------------------------------------------------------------------------------
    def _handle(self, event: Event) -> None:
        if isinstance(event, Data):
            handle = self._streams.get(event.stream_id)
            if handle is not None and handle.sink is not None:
                if event.data:
                    handle.sink.on_data(event.data)
                if event.end_stream:
                    self._ended(event.stream_id)
        elif isinstance(event, Headers):
            handle = self._streams.get(event.stream_id)
            if handle is not None and handle.sink is not None:
                handle.request = None
                status, headers = _decode_head(event.headers)
                self._transport.heard_from(self.member)
                if status == _UNAUTHORIZED:
                    self._transport.refused()
                handle.sink.on_head(status, headers, self.member)
                if event.end_stream:
                    self._ended(event.stream_id)
        elif isinstance(event, Trailers):
            self._ended(event.stream_id)
        elif isinstance(event, Reset):
            self._reset(event)
        elif isinstance(event, GoAway):
            if not self.draining:
                self.draining = True
                self._transport.told_to_go_away(self.member)
            self._close_if_drained()
        elif isinstance(event, PingAck):
            self._ping_sent = None
            self._arm_check()
        elif isinstance(event, SettingsReceived):
            self._transport.place_waiting()

    def _ended(self, stream_id: int) -> None:
        """A clean end. The sink is called last: it may do anything, closing the transport included."""
        handle = self._streams.pop(stream_id, None)
        if handle is not None:
            self._stream_gone()
            self._transport.end(handle, None)

    def _reset(self, event: Reset) -> None:
        handle = self._streams.pop(event.stream_id, None)
        if handle is None:
            return
        if event.by_peer:
            self._transport.stream_reset(self.member)
        self._stream_gone()
        if event.by_peer and event.code in RETRIED_CODES and handle.request is not None:
            self._transport.retry(handle, f"stream reset: {name_of(event.code)}", self.member)
            return
        kind = Failure.RESET if event.by_peer else Failure.PROTOCOL
        detail = f"stream reset: {name_of(event.code)}"
        self._transport.end(handle, TransportError(kind, detail, self.member))

    def _sink_raised(self, event: Event) -> None:
        """The stream of a sink that raised is given up; the connection goes on."""
        stream_id = getattr(event, "stream_id", 0)
        handle = self._streams.get(stream_id)
        if handle is not None:
            self._transport.sink_raised(handle)
            self.abandon(handle)

    def _stream_gone(self) -> None:
        if not self._streams:
            self._idle_since = self._timers.now()
        if self.draining:
            # Not before the sink has heard of the end.
            self._timers.dispatcher.push(self._close_if_drained)
        else:
            self._transport.place_waiting()

    def _close_if_drained(self) -> None:
        if self.draining and not self._streams and not self._channel.closed:
            self._flush()
            self.close(TransportError(Failure.CLOSED, "drained after GOAWAY", self.member))

    # ---- writing ----------------------------------------------------------------------------------------------------
    def _flush_soon(self) -> None:
        if not self._flush_queued:
            self._flush_queued = True
            self._timers.dispatcher.flush_later(self._flush)

    def _flush(self) -> None:
        """The only place that writes. While the socket is blocked, `writable` comes back here."""
        self._flush_queued = False
        if self._channel.blocked or self._channel.closed:
            return
        output = self._codec.take_output()
        if output:
            self._channel.write(output)

    # ---- health -----------------------------------------------------------------------------------------------------
    def _arm_check(self) -> None:
        """One timer for PING, its answer and the idle end; reads only note the time, they arm nothing."""
        if self._check is not None:
            self._check.cancel()
        options = self._options
        due = float("inf")
        if self._ping_sent is not None:
            due = self._ping_sent + options.ping_timeout_s
        elif options.read_idle_s:
            due = self._last_read + options.read_idle_s
        if options.idle_timeout_s and not self._streams:
            due = min(due, self._idle_since + options.idle_timeout_s)
        elif options.idle_timeout_s:
            # Streams may end meanwhile: look again when the connection could have become idle.
            due = min(due, self._timers.now() + options.idle_timeout_s)
        self._check = None if due == float("inf") else self._timers.call_at(due, self._check_health)

    def _check_health(self) -> None:
        now, options = self._timers.now(), self._options
        if options.idle_timeout_s and not self._streams and now >= self._idle_since + options.idle_timeout_s:
            self.close(TransportError(Failure.CLOSED, "idle", self.member))
            return
        if self._ping_sent is not None and now >= self._ping_sent + options.ping_timeout_s:
            detail = f"no answer to PING within {options.ping_timeout_s:g} s"
            self._break(TransportError(Failure.LOST, detail, self.member))
            return
        if options.read_idle_s and self._ping_sent is None and now >= self._last_read + options.read_idle_s:
            self._pings += 1
            self._ping_sent = now
            self._codec.ping(self._pings.to_bytes(8, "big"))
            self._flush_soon()
        self._codec.compact()
        self._streams = dict(self._streams)
        self._arm_check()


def _decode_head(fields: list[tuple[bytes, bytes]]) -> tuple[int, dict[str, str]]:
    """Status and headers; values of a repeated name are joined by ", ". The codec has checked that ``:status``, the
    only pseudo-header of an answer, comes first and is a number."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in fields}
    status = int(headers.pop(":status"))
    if len(headers) != len(fields) - 1:
        headers = {}
        for raw_name, raw_value in fields[1:]:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return status, headers
