"""Lives of streams: limits, resets, GOAWAY, what is forgotten."""

from __future__ import annotations

import h2.errors
import h2.events
import h2.settings
import pytest

from harness.wire.http2 import (
    KUBE_APISERVER_SETTINGS,
    ErrorCode,
    GoAway,
    Headers,
    PingAck,
    ProtocolError,
    Reset,
    Role,
    Settings,
    Trailers,
)
from harness.wire.http2 import frames as wire
from harness.wire.http2.connection import Connection
from harness.wire.http2.settings import encode_settings
from tests.wire.http2.http2_peer import REQUEST, RESPONSE, link, pair, raw_frames, settle

CODES = h2.settings.SettingCodes


def test_a_client_stops_at_the_servers_stream_limit() -> None:
    connection = link(Role.CLIENT, peer_settings={CODES.MAX_CONCURRENT_STREAMS: 2})
    connection.ours.request(REQUEST)
    assert connection.ours.can_open()
    connection.ours.request(REQUEST)
    assert not connection.ours.can_open()
    with pytest.raises(RuntimeError, match="no more streams"):
        connection.ours.request(REQUEST)
    connection.ours.reset(1)
    assert connection.ours.can_open()


def test_a_client_opens_at_most_100_streams_before_the_servers_settings_and_1000_without_a_limit() -> None:
    client = Connection(Role.CLIENT)
    client.initiate()
    for _ in range(100):
        client.request(REQUEST)
    assert not client.can_open()
    client.feed(wire.pack_frame(wire.SETTINGS, 0, 0))
    for _ in range(900):
        client.request(REQUEST)
    assert not client.can_open()


def test_identifiers_run_out() -> None:
    client, _ = pair()
    client._next_id = 2**31 - 1
    assert client.request(REQUEST) == 2**31 - 1
    assert not client.can_open()


@pytest.mark.parametrize("acknowledged", [True, False])
def test_a_server_refuses_streams_above_its_limit(acknowledged: bool) -> None:
    server = Connection(Role.SERVER, Settings(max_concurrent_streams=1))
    server.initiate()
    client = Connection(Role.CLIENT)
    client.initiate()
    if acknowledged:
        settle(client, server)
        client._stream_limit = 10  # a client that does not keep to the limit
    client.request(REQUEST)
    client.request(REQUEST)
    events = server.feed(client.take_output())
    assert [e.stream_id for e in events if isinstance(e, Headers)] == [1]
    code = ErrorCode.PROTOCOL_ERROR if acknowledged else ErrorCode.REFUSED_STREAM
    assert client.feed(server.take_output())[-1] == Reset(3, code)
    server.respond(1, RESPONSE, end_stream=True)
    settle(client, server)
    client.request(REQUEST)
    assert [type(e) for e in server.feed(client.take_output())] == [Headers]


def test_a_stream_is_forgotten_once_both_sides_have_ended_it() -> None:
    client, server = pair()
    client.request(REQUEST, end_stream=False)
    settle(client, server)
    server.respond(1, RESPONSE, b"early", end_stream=True)
    settle(client, server)
    assert (client.open_streams, server.open_streams) == (1, 1)
    client.send_data(1, b"late", end_stream=True)
    settle(client, server)
    assert (client.open_streams, server.open_streams) == (0, 0)


def test_a_clients_reset_reaches_the_server_as_cancel() -> None:
    connection = link(Role.SERVER)
    connection.theirs.h2.send_headers(1, REQUEST, end_stream=True)
    connection.run()
    connection.theirs.h2.reset_stream(1, h2.errors.ErrorCodes.CANCEL)
    assert connection.run() == [Reset(1, ErrorCode.CANCEL)]
    connection.ours.respond(1, RESPONSE, b"too late", end_stream=True)
    connection.ours.send_data(1, b"too late")
    connection.ours.reset(1)
    assert not connection.ours.has_output


def test_a_servers_reset_reaches_the_client() -> None:
    connection = link(Role.CLIENT)
    connection.ours.request(REQUEST)
    connection.run()
    connection.theirs.h2.send_headers(1, RESPONSE)
    connection.theirs.h2.reset_stream(1, h2.errors.ErrorCodes.INTERNAL_ERROR)
    assert connection.run()[-1] == Reset(1, ErrorCode.INTERNAL_ERROR)
    assert connection.ours.open_streams == 0


def test_a_client_hears_nothing_of_a_reset_after_the_whole_answer() -> None:
    client, server = pair()
    client.request(REQUEST, end_stream=False)
    settle(client, server)
    server.respond(1, RESPONSE, end_stream=True)
    server.reset(1, ErrorCode.NO_ERROR)
    events, _ = settle(client, server)
    assert [type(e) for e in events] == [Headers]
    assert client.open_streams == 0


def test_our_resets_are_understood_by_h2() -> None:
    connection = link(Role.CLIENT)
    connection.ours.request(REQUEST)
    connection.ours.reset(1, ErrorCode.CANCEL)
    connection.run()
    (reset,) = connection.theirs.seen(h2.events.StreamReset)
    assert reset.error_code == ErrorCode.CANCEL


def test_a_goaway_ends_unprocessed_streams_and_keeps_the_others() -> None:
    connection = link(Role.CLIENT)
    for _ in range(3):
        connection.ours.request(REQUEST)
    connection.run()
    connection.theirs.h2.close_connection(last_stream_id=3, additional_data=b"bye")
    goaway = connection.theirs.h2.data_to_send()
    assert connection.ours.feed(goaway) == [GoAway(0, 3, b"bye"), Reset(5, ErrorCode.REFUSED_STREAM)]
    assert connection.ours.goaway_received
    assert not connection.ours.can_open()
    assert connection.ours.open_streams == 2


def test_after_our_goaway_open_streams_go_on_and_new_ones_stay_unanswered() -> None:
    client, server = pair()
    client.request(REQUEST)
    settle(client, server)
    server.goaway()
    client.request(REQUEST, b"body")  # crosses the GOAWAY
    assert server.feed(client.take_output()) == []
    server.respond(1, RESPONSE, end_stream=True)
    events = client.feed(server.take_output())
    assert events[0] == GoAway(0, 1, b"")
    assert events[1] == Reset(3, ErrorCode.REFUSED_STREAM)
    assert isinstance(events[2], Headers)


def test_the_last_stream_of_a_second_goaway_does_not_rise() -> None:
    client, server = pair()
    server.goaway(last_stream_id=0)
    client.request(REQUEST)
    server.feed(client.take_output())
    server.take_output()
    server.goaway()
    assert raw_frames(server.take_output())[0][3][:4] == wire.U32.pack(0)


def test_pings_are_answered_and_their_answers_told() -> None:
    connection = link(Role.SERVER)
    connection.theirs.h2.ping(b"12345678")
    connection.ours.ping(b"abcdefgh")
    assert connection.run() == [PingAck(b"abcdefgh")]
    (answer,) = connection.theirs.seen(h2.events.PingAckReceived)
    assert answer.ping_data == b"12345678"


def test_interim_answers_are_passed_over() -> None:
    connection = link(Role.CLIENT)
    connection.ours.request(REQUEST)
    connection.run()
    connection.theirs.h2.send_headers(1, [(b":status", b"100")])
    connection.theirs.h2.send_headers(1, [(b":status", b"103"), (b"x", b"y")])
    assert connection.run() == []
    connection.theirs.h2.send_headers(1, RESPONSE, end_stream=True)
    assert connection.run() == [Headers(1, RESPONSE, True)]


def test_trailers_end_a_request() -> None:
    connection = link(Role.SERVER)
    connection.theirs.h2.send_headers(1, REQUEST)
    connection.theirs.h2.send_headers(1, [(b"x-sum", b"1")], end_stream=True)
    assert connection.run() == [Headers(1, REQUEST, False), Trailers(1, [(b"x-sum", b"1")])]


def test_a_header_list_at_the_limit_passes_and_one_above_is_answered_431() -> None:
    limit = sum(len(name) + len(value) + 32 for name, value in REQUEST) + 32 + 4 + 1000
    connection = link(Role.SERVER, Settings(max_header_list_size=limit))
    connection.theirs.h2.remote_settings.update({CODES.MAX_HEADER_LIST_SIZE: 1 << 20})
    connection.theirs.h2.send_headers(1, [*REQUEST, (b"x-ab", b"v" * 1000)], end_stream=True)
    assert [type(e) for e in connection.run()] == [Headers]
    connection.theirs.h2.send_headers(3, [*REQUEST, (b"x-ab", b"v" * 1001)], end_stream=True)
    assert connection.run() == []
    assert connection.theirs.headers_of(3)[0] == (b":status", b"431")
    assert connection.ours.open_streams == 1


def test_an_answer_with_too_long_a_header_list_breaks_its_stream_only() -> None:
    connection = link(Role.CLIENT, Settings(max_header_list_size=1000))
    connection.ours.request(REQUEST)
    connection.ours.request(REQUEST)
    connection.run()
    connection.theirs.h2.send_headers(1, [*RESPONSE, (b"x-ab", b"v" * 1001)], end_stream=True)
    connection.theirs.h2.send_headers(3, RESPONSE, end_stream=True)
    events = connection.run()
    assert events == [Reset(1, ErrorCode.ENHANCE_YOUR_CALM, by_peer=False), Headers(3, RESPONSE, True)]


def test_the_measured_settings_of_a_kube_apiserver_are_sent() -> None:
    payload = encode_settings(KUBE_APISERVER_SETTINGS, Role.SERVER)
    entries = {payload[i + 1]: int.from_bytes(payload[i + 2 : i + 6]) for i in range(0, len(payload), 6)}
    assert entries == {3: 100, 4: 262_144, 5: 262_144, 6: 1_048_896, 9: 1}


def test_data_after_the_end_of_a_stream_breaks_it() -> None:
    client, server = pair()
    client.request(REQUEST)
    settle(client, server)
    (reset,) = server.feed(wire.pack_frame(wire.DATA, 0, 1, b"more"))
    assert (reset.code, reset.by_peer) == (ErrorCode.STREAM_CLOSED, False)


def test_an_error_carries_what_was_understood_before_it() -> None:
    client, server = pair()
    client.request(REQUEST)
    with pytest.raises(ProtocolError) as caught:
        server.feed(client.take_output() + wire.pack_frame(wire.PING, 0, 0, b"short"))
    assert [type(e) for e in caught.value.events] == [Headers]
    assert raw_frames(server.take_output())[-1][3][4:8] == wire.U32.pack(ErrorCode.FRAME_SIZE_ERROR)
    with pytest.raises(ProtocolError) as again:
        server.feed(b"")
    assert again.value.events == []
