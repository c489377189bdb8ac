"""h2 as the independent peer of our codec, and the wire between them in arbitrary pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import h2.config
import h2.connection
import h2.events
import h2.settings

from harness.wire.http2 import Connection, Event, Role, Settings
from harness.wire.http2 import frames as wire
from harness.wire.http2.settings import PROTOCOL_DEFAULTS

REQUEST = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":authority", b"127.0.0.1:6443"),
    (b":path", b"/api/v1/nodes/node-17?resourceVersion=0"),
    (b"user-agent", b"kubelet/v1.36.2 (linux/amd64) kubernetes/abcdef"),
    (b"authorization", b"Bearer abc"),
]
RESPONSE = [
    (b":status", b"200"),
    (b"content-type", b"application/json"),
    (b"date", b"Sun, 29 Nov 2026 14:32:16 GMT"),
]

Pieces = Callable[[bytes], Iterator[bytes]]


def whole(data: bytes) -> Iterator[bytes]:
    if data:
        yield data


def pieces_of(sizes: list[int]) -> Pieces:
    """Cut in pieces of these sizes, over and over."""

    def cut(data: bytes) -> Iterator[bytes]:
        position = turn = 0
        while position < len(data):
            size = sizes[turn % len(sizes)]
            yield data[position : position + size]
            position += size
            turn += 1

    return cut


class H2Peer:
    """An h2 connection that gives windows back at once and sends queued bodies as our windows allow."""

    def __init__(
        self, role: Role, settings: dict[int, int] | None = None, padding: int | None = None
    ) -> None:
        config = h2.config.H2Configuration(client_side=role is Role.CLIENT, header_encoding=None)
        self.h2 = h2.connection.H2Connection(config)
        self.events: list[h2.events.Event] = []
        self.padding = padding
        self._bodies: dict[int, tuple[bytes, list[tuple[bytes, bytes]] | None]] = {}
        if settings:
            self.h2.local_settings = h2.settings.Settings(
                client=role is Role.CLIENT, initial_values={**dict(self.h2.local_settings), **settings}
            )
            self.h2.decoder.max_allowed_table_size = self.h2.local_settings.header_table_size
            self.h2.max_inbound_frame_size = self.h2.local_settings.max_frame_size
        self.h2.initiate_connection()

    def send_body(
        self, stream_id: int, body: bytes, trailers: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        """Send and end the stream; what the window does not admit follows."""
        self._bodies[stream_id] = (body, trailers)
        self.pump()

    def pump(self) -> None:
        for stream_id, (body, trailers) in list(self._bodies.items()):
            overhead = 0 if self.padding is None else self.padding + 1
            while True:
                room = (
                    min(self.h2.local_flow_control_window(stream_id), self.h2.max_outbound_frame_size)
                    - overhead
                )
                part, body = body[: max(room, 0)], body[max(room, 0) :]
                if not body and (part or room >= 0):
                    self.h2.send_data(stream_id, part, end_stream=trailers is None, pad_length=self.padding)
                    if trailers is not None:
                        self.h2.send_headers(stream_id, trailers, end_stream=True)
                    del self._bodies[stream_id]
                    break
                if not part:
                    self._bodies[stream_id] = (body, trailers)
                    break
                self.h2.send_data(stream_id, part, pad_length=self.padding)

    def receive(self, data: bytes) -> list[h2.events.Event]:
        events = self.h2.receive_data(data)
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamReset):
                self._bodies.pop(event.stream_id, None)
        self.events += events
        self.pump()
        return events

    def body_of(self, stream_id: int) -> bytes:
        return b"".join(
            event.data
            for event in self.events
            if isinstance(event, h2.events.DataReceived) and event.stream_id == stream_id
        )

    def headers_of(self, stream_id: int) -> list[tuple[bytes, bytes]]:
        for event in self.events:
            if (
                isinstance(event, (h2.events.RequestReceived, h2.events.ResponseReceived))
                and event.stream_id == stream_id
            ):
                return [(bytes(name), bytes(value)) for name, value in event.headers]
        raise AssertionError(f"no headers on stream {stream_id}: {self.events}")

    def seen(self, kind: type[h2.events.Event]) -> list[h2.events.Event]:
        return [event for event in self.events if isinstance(event, kind)]


class Link:
    """Our connection and an h2 peer; `run()` moves bytes both ways until both are silent."""

    def __init__(self, ours: Connection, theirs: H2Peer, pieces: Pieces = whole) -> None:
        self.ours = ours
        self.theirs = theirs
        self.pieces = pieces
        self.events: list[Event] = []

    def run(self) -> list[Event]:
        """Returns our events of this run."""
        fresh: list[Event] = []
        while True:
            outgoing, incoming = self.ours.take_output(), self.theirs.h2.data_to_send()
            if not outgoing and not incoming:
                break
            for piece in self.pieces(outgoing):
                self.theirs.receive(piece)
            for piece in self.pieces(incoming):
                fresh += self.ours.feed(piece)
        self.events += fresh
        return fresh


def link(
    role: Role,
    settings: Settings = PROTOCOL_DEFAULTS,
    *,
    peer_settings: dict[int, int] | None = None,
    window: int = 65_535,
    pieces: Pieces = whole,
    padding: int | None = None,
    manual_window: bool = False,
) -> Link:
    """Our side in `role` with h2 on the other, SETTINGS exchanged."""
    ours = Connection(role, settings, window, manual_window=manual_window)
    ours.initiate()
    other = Role.SERVER if role is Role.CLIENT else Role.CLIENT
    connected = Link(ours, H2Peer(other, peer_settings, padding), pieces)
    connected.run()
    return connected


def pair(
    client: Settings = PROTOCOL_DEFAULTS, server: Settings = PROTOCOL_DEFAULTS, window: int = 65_535
) -> tuple[Connection, Connection]:
    """Two of ours, SETTINGS exchanged."""
    ours = Connection(Role.CLIENT, client, window), Connection(Role.SERVER, server, window)
    for side in ours:
        side.initiate()
    settle(*ours)
    return ours


def settle(client: Connection, server: Connection) -> tuple[list[Event], list[Event]]:
    """Move bytes between two of ours until both are silent; the client's and the server's events."""
    to_client: list[Event] = []
    to_server: list[Event] = []
    while client.has_output or server.has_output:
        to_server += server.feed(client.take_output())
        to_client += client.feed(server.take_output())
    return to_client, to_server


def raw_frames(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """(kind, flags, stream, payload) of what was sent."""
    found = []
    while data:
        high, low, kind, flags, stream_id = wire.HEADER.unpack_from(data)
        length = high << 8 | low
        found.append((kind, flags, stream_id, data[9 : 9 + length]))
        data = data[9 + length :]
    return found


def data_frames(data: bytes) -> list[tuple[int, int]]:
    """(stream, bytes) of the DATA frames."""
    return [(stream, len(payload)) for kind, _, stream, payload in raw_frames(data) if kind == wire.DATA]
