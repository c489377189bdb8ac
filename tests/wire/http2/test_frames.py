"""Frames as such: shapes that are refused, kinds that are ignored, padding, CONTINUATION, the preface."""

from __future__ import annotations

import pytest

from harness.wire.http2 import Connection, Data, ErrorCode, Headers, ProtocolError, Reset, Role, Settings
from harness.wire.http2 import frames as wire
from harness.wire.http2.hpack_coder import new_coder
from tests.wire.http2.http2_peer import REQUEST, RESPONSE, pair, raw_frames, settle

PROTOCOL, SIZE = ErrorCode.PROTOCOL_ERROR, ErrorCode.FRAME_SIZE_ERROR


@pytest.fixture
def server() -> Connection:
    """With stream 1 open and its request's body under way."""
    client, server = pair()
    client.request(REQUEST, end_stream=False)
    settle(client, server)
    return server


@pytest.fixture
def client() -> Connection:
    """With stream 1 open and not yet answered."""
    client, server = pair()
    client.request(REQUEST)
    settle(client, server)
    return client


@pytest.mark.parametrize(
    ("kind", "flags", "stream", "payload", "code"),
    [
        (wire.DATA, 0, 0, b"x", PROTOCOL),
        (wire.HEADERS, 4, 0, b"", PROTOCOL),
        (wire.PRIORITY, 0, 0, b"12345", PROTOCOL),
        (wire.RST_STREAM, 0, 0, b"1234", PROTOCOL),
        (wire.RST_STREAM, 0, 1, b"123", SIZE),
        (wire.RST_STREAM, 0, 3, b"1234", PROTOCOL),
        (wire.SETTINGS, 0, 1, b"", PROTOCOL),
        (wire.SETTINGS, 0, 0, b"12345", SIZE),
        (wire.SETTINGS, 1, 0, b"123456", SIZE),
        (wire.PING, 0, 1, b"12345678", PROTOCOL),
        (wire.PING, 0, 0, b"1234567", SIZE),
        (wire.GOAWAY, 0, 1, b"12345678", PROTOCOL),
        (wire.GOAWAY, 0, 0, b"1234567", SIZE),
        (wire.WINDOW_UPDATE, 0, 1, b"123", SIZE),
        (wire.WINDOW_UPDATE, 0, 3, b"\0\0\0\1", PROTOCOL),
        (wire.CONTINUATION, 4, 1, b"", PROTOCOL),
        (wire.PUSH_PROMISE, 4, 1, b"\0\0\0\2", PROTOCOL),
        (wire.DATA, 0, 3, b"x", PROTOCOL),
        (wire.DATA, 8, 1, b"", SIZE),
        (wire.DATA, 8, 1, b"\1", PROTOCOL),
        (wire.HEADERS, 4 | 8, 3, b"\5abc", PROTOCOL),
        (wire.HEADERS, 4 | 32, 3, b"1234", SIZE),
        (wire.HEADERS, 4, 3, b"\x80", ErrorCode.COMPRESSION_ERROR),
        (wire.HEADERS, 4, 3, b"\x40", ErrorCode.COMPRESSION_ERROR),
        (wire.HEADERS, 4, 2, b"\x82", PROTOCOL),
        (99, 0, 0, b"x" * 16_385, SIZE),
    ],
)
def test_a_malformed_frame_ends_the_connection(server, kind, flags, stream, payload, code) -> None:
    with pytest.raises(ProtocolError) as caught:
        server.feed(wire.pack_frame(kind, flags, stream, payload))
    assert caught.value.code == code
    last = raw_frames(server.take_output())[-1]
    assert (last[0], last[2], last[3][4:8]) == (wire.GOAWAY, 0, wire.U32.pack(code))


@pytest.mark.parametrize("kind", [wire.PRIORITY, 10, 99, 255])
def test_priority_and_unknown_kinds_are_ignored(server: Connection, kind: int) -> None:
    assert server.feed(wire.pack_frame(kind, 0xFF, 1, b"12345")) == []
    assert not server.has_output


def test_a_priority_frame_of_a_wrong_length_breaks_its_stream(server: Connection) -> None:
    assert server.feed(wire.pack_frame(wire.PRIORITY, 0, 1, b"123")) == [Reset(1, SIZE, by_peer=False)]


def test_the_reserved_bit_of_a_stream_is_ignored(server: Connection) -> None:
    assert server.feed(wire.pack_frame(wire.DATA, 0, 1 | 1 << 31, b"x")) == [Data(1, b"x", False)]


@pytest.mark.parametrize("padding", [0, 1, 255])
def test_padding_is_taken_off(server: Connection, padding: int) -> None:
    payload = bytes([padding]) + b"body" + bytes(padding)
    assert server.feed(wire.pack_frame(wire.DATA, wire.PADDED, 1, payload)) == [Data(1, b"body", False)]


def test_padding_and_priority_of_headers_are_taken_off(server: Connection) -> None:
    block = new_coder().encode(REQUEST)
    flags = wire.PADDED | wire.PRIORITY_FLAG | wire.END_HEADERS | wire.END_STREAM
    frame = wire.pack_frame(wire.HEADERS, flags, 3, b"\2" + b"\0\0\0\0\x10" + block + b"\0\0")
    client, fresh = pair()
    settle(client, fresh)
    assert fresh.feed(frame) == [Headers(3, REQUEST, True)]


def test_an_empty_data_frame_makes_no_event_unless_it_ends_the_stream(server: Connection) -> None:
    assert server.feed(wire.pack_frame(wire.DATA, 0, 1)) == []
    assert server.feed(wire.pack_frame(wire.DATA, wire.END_STREAM, 1)) == [Data(1, b"", True)]


@pytest.mark.parametrize("length", [16_383, 16_384, 16_385, 3 * 16_384])
def test_a_header_block_longer_than_a_frame_is_continued(length: int) -> None:
    client, server = pair()
    # Its characters are 8 bits or more in HPACK's Huffman code, so the block is at least as long as the value.
    client.request([*REQUEST, (b"x-long", b"&" * length)])
    output = client.take_output()
    kinds = [kind for kind, *_ in raw_frames(output)]
    assert kinds[0] == wire.HEADERS
    assert set(kinds[1:]) <= {wire.CONTINUATION}
    assert all(len(payload) <= 16_384 for *_, payload in raw_frames(output))
    (event,) = server.feed(output)
    assert isinstance(event, Headers)
    assert event.headers[-1] == (b"x-long", b"&" * length)
    assert event.end_stream


@pytest.mark.parametrize(
    "frame",
    [wire.pack_frame(wire.PING, 0, 0, b"12345678"), wire.pack_frame(wire.CONTINUATION, 4, 5, b"")],
    ids=["another kind", "another stream"],
)
def test_a_header_block_may_not_be_interrupted(server: Connection, frame: bytes) -> None:
    server.feed(wire.pack_frame(wire.HEADERS, 0, 3, b""))
    with pytest.raises(ProtocolError, match="interrupted"):
        server.feed(frame)


def test_a_server_refuses_what_is_not_the_preface_at_its_first_wrong_byte() -> None:
    server = Connection(Role.SERVER)
    server.feed(b"PRI * HTTP")
    with pytest.raises(ProtocolError, match="preface"):
        server.feed(b"/1")


@pytest.mark.parametrize("flags", [0, wire.ACK])
def test_the_first_frame_must_be_settings(flags: int) -> None:
    client = Connection(Role.CLIENT)
    kind = wire.SETTINGS if flags else wire.PING
    with pytest.raises(ProtocolError, match="first frame"):
        client.feed(wire.pack_frame(kind, flags, 0, b"" if flags else b"12345678"))


@pytest.mark.parametrize(
    ("number", "value", "code"),
    [
        (2, 2, PROTOCOL),
        (4, 2**31, ErrorCode.FLOW_CONTROL_ERROR),
        (5, 16_383, PROTOCOL),
        (5, 2**24, PROTOCOL),
        (9, 2, PROTOCOL),
    ],
)
def test_settings_out_of_range_end_the_connection(
    server: Connection, number: int, value: int, code: int
) -> None:
    with pytest.raises(ProtocolError) as caught:
        server.feed(wire.pack_frame(wire.SETTINGS, 0, 0, number.to_bytes(2) + value.to_bytes(4)))
    assert caught.value.code == code


def test_a_server_may_not_announce_push(client: Connection) -> None:
    with pytest.raises(ProtocolError, match="enable_push"):
        client.feed(wire.pack_frame(wire.SETTINGS, 0, 0, b"\0\2\0\0\0\1"))


def test_settings_in_range_and_unknown_ones_are_taken(server: Connection) -> None:
    payload = b"".join(
        n.to_bytes(2) + v.to_bytes(4) for n, v in [(4, 2**31 - 1), (5, 2**24 - 1), (77, 1), (3, 7)]
    )
    server.feed(wire.pack_frame(wire.SETTINGS, 0, 0, payload))
    expected = Settings(
        initial_window_size=2**31 - 1, max_frame_size=2**24 - 1, max_concurrent_streams=7, enable_push=True
    )
    assert server.peer_settings == expected


def test_data_before_an_answers_head_breaks_the_stream(client: Connection) -> None:
    assert client.feed(wire.pack_frame(wire.DATA, 0, 1, b"x")) == [Reset(1, PROTOCOL, by_peer=False)]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b":status", b"20")],
        [(b":status", b"abc")],
        [(b"content-type", b"x"), (b":status", b"200")],
        [*RESPONSE, (b":status", b"200")],
        [*RESPONSE, (b"Upper", b"x")],
        [*RESPONSE, (b"connection", b"close")],
        [*RESPONSE, (b"x", b"a\r\nb")],
    ],
)
def test_a_malformed_answer_breaks_its_stream(client: Connection, headers: list[tuple[bytes, bytes]]) -> None:
    frame = wire.pack_frame(wire.HEADERS, wire.END_HEADERS, 1, new_coder().encode(headers))
    assert client.feed(frame) == [Reset(1, PROTOCOL, by_peer=False)]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        REQUEST[1:],
        [REQUEST[0], REQUEST[0], *REQUEST[1:]],
        [*REQUEST[:3], *REQUEST[4:]],
        [*REQUEST, (b":path", b"/")],
        [*REQUEST, (b"", b"x")],
        [*REQUEST, (b"te", b"gzip")],
        [*REQUEST, (b"x", b"a\0")],
        [(b":method", b"CONNECT"), (b":authority", b"x")],
        [(b":method", b""), *REQUEST[1:]],
    ],
)
def test_a_malformed_request_is_refused_and_the_next_one_taken(headers: list[tuple[bytes, bytes]]) -> None:
    client, server = pair()
    client.request(headers)
    client.request([*REQUEST, (b"te", b"trailers")])
    to_client, to_server = settle(client, server)
    assert to_client == [Reset(1, PROTOCOL)]
    assert [e.stream_id for e in to_server if isinstance(e, Headers)] == [3]
