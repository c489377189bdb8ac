"""Peers that make work without end are told to calm down; those that merely talk much are not."""

from __future__ import annotations

import pytest

from harness.wire.http2 import Connection, ErrorCode, ProtocolError, Settings
from harness.wire.http2 import frames as wire
from harness.wire.http2.limits import MAX_CONTINUATIONS, MAX_IDLE_FRAMES, MAX_UNANSWERED_RESETS
from tests.wire.http2.http2_peer import REQUEST, RESPONSE, pair, settle

PING = wire.pack_frame(wire.PING, 0, 0, b"12345678")


@pytest.mark.parametrize(
    "frame",
    [
        PING,
        wire.pack_frame(wire.SETTINGS, 0, 0),
        wire.pack_frame(wire.DATA, 0, 1),
        wire.pack_frame(wire.PRIORITY, 0, 9, b"12345"),
        wire.pack_frame(200, 0, 0),
    ],
    ids=["ping", "settings", "empty data", "priority", "unknown"],
)
def test_frames_without_use_are_bounded(frame: bytes) -> None:
    client, server = pair()
    client.request(REQUEST, end_stream=False)
    settle(client, server)
    server.feed(frame * (MAX_IDLE_FRAMES - 2))
    with pytest.raises(ProtocolError) as caught:
        server.feed(frame * 3)
    assert caught.value.code == ErrorCode.ENHANCE_YOUR_CALM


def test_pings_between_requests_are_not_a_flood() -> None:
    client, server = pair()
    for _ in range(3):
        server.feed(PING * (MAX_IDLE_FRAMES - 10))
        client.request(REQUEST)
        server.feed(client.take_output())


def test_pings_while_we_send_are_not_a_flood() -> None:
    client, server = pair()
    client.request(REQUEST)
    settle(client, server)
    server.respond(1, RESPONSE)
    for _ in range(3):
        server.feed(PING * (MAX_IDLE_FRAMES - 10))
        server.send_data(1, b"event")


def cancelled(client: Connection, server: Connection, answered: bool) -> None:
    stream_id = client.request(REQUEST)
    server.feed(client.take_output())
    if answered:
        server.respond(stream_id, RESPONSE)
    client.reset(stream_id)
    server.feed(client.take_output())
    server.take_output()


def test_streams_reset_before_an_answer_are_bounded() -> None:
    client, server = pair()
    for _ in range(MAX_UNANSWERED_RESETS):
        cancelled(client, server, answered=False)
    with pytest.raises(ProtocolError) as caught:
        cancelled(client, server, answered=False)
    assert caught.value.code == ErrorCode.ENHANCE_YOUR_CALM


def test_watches_cancelled_after_an_answer_are_not_counted() -> None:
    client, server = pair()
    for _ in range(2 * MAX_UNANSWERED_RESETS):
        cancelled(client, server, answered=True)


def broken(client: Connection, server: Connection) -> None:
    """A request whose stream the server has to reset for the client's fault."""
    stream_id = client.request(REQUEST)
    server.feed(client.take_output())
    server.feed(wire.pack_u32_frame(wire.WINDOW_UPDATE, stream_id, 0))
    client.feed(server.take_output())


def test_streams_that_we_have_to_reset_for_the_peers_faults_are_bounded() -> None:
    client, server = pair()
    for _ in range(MAX_UNANSWERED_RESETS):
        broken(client, server)
    with pytest.raises(ProtocolError) as caught:
        broken(client, server)
    assert caught.value.code == ErrorCode.ENHANCE_YOUR_CALM


def test_an_endless_header_block_is_bounded() -> None:
    _, server = pair()
    server.feed(wire.pack_frame(wire.HEADERS, 0, 1, b""))
    server.feed(wire.pack_frame(wire.CONTINUATION, 0, 1, b"") * MAX_CONTINUATIONS)
    with pytest.raises(ProtocolError) as caught:
        server.feed(wire.pack_frame(wire.CONTINUATION, 0, 1, b""))
    assert caught.value.code == ErrorCode.ENHANCE_YOUR_CALM


def test_a_header_block_far_above_the_list_limit_is_cut_off() -> None:
    _, server = pair(server=Settings(max_header_list_size=10_000))
    server.feed(wire.pack_frame(wire.HEADERS, 0, 1, b"x" * 10_000))
    with pytest.raises(ProtocolError, match="ENHANCE_YOUR_CALM"):
        server.feed(wire.pack_frame(wire.CONTINUATION, 0, 1, b"x" * 10_001))
