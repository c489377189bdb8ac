"""Windows both ways: what goes out now, what waits, in which order it follows, and what we give back."""

from __future__ import annotations

import h2.events
import h2.settings
import pytest

from harness.wire.http2 import Connection, Data, Drained, ProtocolError, Role, Settings
from harness.wire.http2 import frames as wire
from tests.wire.http2.http2_peer import REQUEST, RESPONSE, Link, data_frames, link, pair, raw_frames, settle

CODES = h2.settings.SettingCodes


def window_update(stream_id: int, increment: int) -> bytes:
    return wire.pack_u32_frame(wire.WINDOW_UPDATE, stream_id, increment)


def initial_window(size: int) -> bytes:
    return wire.pack_frame(wire.SETTINGS, 0, 0, b"\0\4" + wire.U32.pack(size))


def serving(streams: int, client: Settings | None = None) -> Connection:
    """Our server with this many streams open and answered."""
    ours, served = pair(client or Settings())
    for _ in range(streams):
        ours.request(REQUEST)
    settle(ours, served)
    for number in range(streams):
        served.respond(1 + 2 * number, RESPONSE)
    settle(ours, served)
    return served


@pytest.mark.parametrize("length", [0, 1, 999, 1000])
def test_what_fits_the_window_goes_out_at_once(length: int) -> None:
    server = serving(1, client=Settings(initial_window_size=1000))
    server.send_data(1, b"x" * length, end_stream=True)
    assert data_frames(server.take_output()) == [(1, length)]
    assert server.unsent(1) == 0
    assert server.open_streams == 0


def test_what_exceeds_the_window_waits_and_follows() -> None:
    server = serving(1, client=Settings(initial_window_size=1000))
    server.send_data(1, b"x" * 1001)
    assert data_frames(server.take_output()) == [(1, 1000)]
    assert server.unsent(1) == 1
    assert server.feed(window_update(1, 1)) == [Drained(1)]
    assert data_frames(server.take_output()) == [(1, 1)]
    assert server.unsent(1) == 0


def test_order_is_kept_when_more_is_sent_behind_what_waits() -> None:
    server = serving(1, client=Settings(initial_window_size=3))
    for part in (b"abcd", b"ef", b"g"):
        server.send_data(1, part)
    server.send_data(1, b"", end_stream=True)
    assert server.unsent(1) == 4
    sent = b"".join(f[3] for f in raw_frames(server.take_output()))
    server.feed(window_update(1, 100))
    last = raw_frames(server.take_output())
    assert sent + last[-1][3] == b"abcdefg"
    assert last[-1][1] == wire.END_STREAM
    assert server.open_streams == 0


def test_an_end_without_data_needs_no_window() -> None:
    server = serving(1, client=Settings(initial_window_size=2))
    server.send_data(1, b"ab")
    server.send_data(1, b"", end_stream=True)
    assert data_frames(server.take_output()) == [(1, 2), (1, 0)]
    assert server.open_streams == 0


def test_a_settings_change_reopens_waiting_streams() -> None:
    server = serving(2, client=Settings(initial_window_size=10))
    for stream in (1, 3):
        server.send_data(stream, b"x" * 15)
    server.take_output()
    assert [type(e).__name__ for e in server.feed(initial_window(14))] == ["SettingsReceived"]
    assert data_frames(server.take_output()) == [(1, 4), (3, 4)]
    assert server.feed(initial_window(15))[1:] == [Drained(1), Drained(3)]


def test_a_settings_change_can_make_a_window_negative() -> None:
    server = serving(1, client=Settings(initial_window_size=1000))
    server.send_data(1, b"x" * 800)
    server.take_output()
    server.feed(initial_window(100))  # 100 - 800 = -700
    server.send_data(1, b"y" * 50)
    assert data_frames(server.take_output()) == []
    server.feed(window_update(1, 700))  # 0
    assert data_frames(server.take_output()) == []
    server.feed(window_update(1, 1))
    assert data_frames(server.take_output()) == [(1, 1)]
    assert server.unsent(1) == 49


def test_a_negative_window_takes_a_ready_stream_out_of_the_queue() -> None:
    server = serving(2, client=Settings(initial_window_size=200_000))
    server.send_data(1, b"x" * 65_535)  # the connection's window is used up
    server.send_data(1, b"x" * 10)
    server.send_data(3, b"y" * 10)
    server.take_output()
    server.feed(initial_window(100))
    server.feed(window_update(0, 1000))
    assert data_frames(server.take_output()) == [(3, 10)]


def test_streams_share_an_opening_connection_window_frame_by_frame() -> None:
    server = serving(3, client=Settings(initial_window_size=1 << 20))
    server.send_data(1, b"a" * 65_535)
    for stream in (1, 3, 5):
        server.send_data(stream, b"b" * 40_000)
    server.take_output()
    server.feed(window_update(0, 16_384 * 4))
    assert data_frames(server.take_output()) == [(1, 16_384), (3, 16_384), (5, 16_384), (1, 16_384)]
    server.feed(window_update(0, 16_384 * 2))
    assert data_frames(server.take_output()) == [(3, 16_384), (5, 16_384)]


def test_a_stream_with_a_closed_window_does_not_hold_up_others() -> None:
    server = serving(2, client=Settings(initial_window_size=10))
    server.send_data(1, b"a" * 20)
    server.send_data(3, b"b" * 5)
    assert data_frames(server.take_output()) == [(1, 10), (3, 5)]


def test_a_reset_drops_what_waits() -> None:
    server = serving(2, client=Settings(initial_window_size=1 << 20))
    server.send_data(1, b"a" * 100_000)
    server.send_data(3, b"b" * 10)
    server.take_output()
    server.feed(wire.pack_u32_frame(wire.RST_STREAM, 1, 8))
    assert server.unsent(1) == 0
    server.feed(window_update(0, 100))
    assert data_frames(server.take_output()) == [(3, 10)]


@pytest.mark.parametrize(("stream_id", "total"), [(0, 2**31 - 1), (1, 2**31 - 1)])
def test_windows_may_reach_2_to_31_less_1_and_not_exceed_it(stream_id: int, total: int) -> None:
    server = serving(1)
    server.feed(window_update(stream_id, total - 65_535))
    if stream_id:
        (reset,) = server.feed(window_update(stream_id, 1))
        assert (reset.stream_id, reset.code, reset.by_peer) == (1, 3, False)
        assert raw_frames(server.take_output())[-1][0] == wire.RST_STREAM
    else:
        with pytest.raises(ProtocolError, match="FLOW_CONTROL_ERROR"):
            server.feed(window_update(stream_id, 1))
        assert raw_frames(server.take_output())[-1][0] == wire.GOAWAY


def test_settings_that_overflow_a_window_end_the_connection() -> None:
    server = serving(1)
    server.feed(window_update(1, 2**31 - 1 - 65_535))
    with pytest.raises(ProtocolError, match="FLOW_CONTROL_ERROR"):
        server.feed(initial_window(65_536))


def test_a_window_update_of_0_is_an_error() -> None:
    server = serving(1)
    (reset,) = server.feed(window_update(1, 0))
    assert reset.code == 1
    with pytest.raises(ProtocolError, match="PROTOCOL_ERROR"):
        server.feed(window_update(0, 0))


# ---- inwards -------------------------------------------------------------------------------------------------------
def receiving(**options: bool) -> Link:
    connection = link(Role.CLIENT, Settings(initial_window_size=1000), **options)
    connection.ours.request(REQUEST)
    connection.run()
    connection.theirs.h2.send_headers(1, RESPONSE)
    connection.run()
    return connection


def give(connection: Link, length: int) -> list[tuple[int, int, int, bytes]]:
    """Let h2 send this much; what we answer to it."""
    connection.theirs.h2.send_data(1, b"x" * length)
    connection.ours.feed(connection.theirs.h2.data_to_send())
    output = connection.ours.take_output()
    connection.theirs.receive(output)
    return raw_frames(output)


def test_a_window_is_given_back_when_half_is_used() -> None:
    connection = receiving()
    assert give(connection, 499) == []
    assert give(connection, 1) == [(wire.WINDOW_UPDATE, 0, 1, wire.U32.pack(500))]
    assert connection.theirs.h2.local_flow_control_window(1) == 1000


def test_the_connections_window_is_given_back_when_half_is_used() -> None:
    connection = link(Role.CLIENT, Settings(initial_window_size=1 << 20))
    connection.ours.request(REQUEST)
    connection.run()
    connection.theirs.h2.send_headers(1, RESPONSE)
    connection.theirs.send_body(1, b"x" * 300_000)
    connection.run()
    assert connection.theirs.body_of(1) == b""
    assert sum(len(e.data) for e in connection.events if isinstance(e, Data)) == 300_000


def test_data_beyond_a_streams_window_breaks_the_stream() -> None:
    client, server = pair(Settings(initial_window_size=100))
    client.request(REQUEST)
    settle(client, server)
    server.respond(1, RESPONSE)
    settle(client, server)
    events = client.feed(wire.pack_frame(wire.DATA, 0, 1, b"x" * 101))
    assert (events[0].stream_id, events[0].code, events[0].by_peer) == (1, 3, False)
    assert client.open_streams == 0


def test_data_beyond_the_connections_window_ends_it() -> None:
    connection = link(
        Role.CLIENT, Settings(initial_window_size=1 << 20, max_frame_size=1 << 20), manual_window=True
    )
    connection.ours.request(REQUEST)
    connection.run()
    connection.theirs.h2.send_headers(1, RESPONSE)
    connection.run()
    connection.ours.feed(wire.pack_frame(wire.DATA, 0, 1, b"x" * 65_535))
    with pytest.raises(ProtocolError, match="FLOW_CONTROL_ERROR"):
        connection.ours.feed(wire.pack_frame(wire.DATA, 0, 1, b"x"))


def test_before_our_settings_are_acknowledged_the_default_window_holds() -> None:
    client = Connection(Role.CLIENT, Settings(initial_window_size=100))
    client.initiate()
    client.request(REQUEST)
    settings = wire.pack_frame(wire.SETTINGS, 0, 0)
    server = Connection(Role.SERVER)
    server.initiate()
    events = server.feed(client.take_output())
    server.respond(events[-1].stream_id, RESPONSE)
    output = server.take_output()
    ack = wire.pack_frame(wire.SETTINGS, wire.ACK, 0)
    head = next(f for f in raw_frames(output) if f[0] == wire.HEADERS)
    client.feed(settings + wire.pack_frame(*head))
    body = wire.pack_frame(wire.DATA, 0, 1, b"x" * 101)
    assert client.feed(body) == [Data(1, b"x" * 101, False)]
    assert client.feed(ack + body)[0].code == 3


def test_with_manual_windows_only_what_is_acknowledged_is_given_back() -> None:
    connection = receiving(manual_window=True)
    assert give(connection, 700) == []
    connection.ours.acknowledge(1, 499)
    assert not connection.ours.has_output
    connection.ours.acknowledge(1, 1)
    assert raw_frames(connection.ours.take_output()) == [(wire.WINDOW_UPDATE, 0, 1, wire.U32.pack(500))]


def test_with_manual_windows_padding_counts_as_used() -> None:
    connection = receiving(manual_window=True)
    for _ in range(2):
        connection.theirs.h2.send_data(1, b"x", pad_length=248)
    connection.ours.feed(connection.theirs.h2.data_to_send())
    assert not connection.ours.has_output  # 498 of 1000
    connection.ours.acknowledge(1, 2)
    assert raw_frames(connection.ours.take_output()) == [(wire.WINDOW_UPDATE, 0, 1, wire.U32.pack(500))]


def test_data_of_a_forgotten_stream_gives_the_connections_window_back() -> None:
    connection = link(Role.CLIENT, Settings(initial_window_size=1 << 20))
    for _ in range(2):
        connection.ours.request(REQUEST)
    connection.run()
    connection.theirs.h2.send_headers(1, RESPONSE)
    connection.theirs.h2.send_headers(3, RESPONSE)
    connection.run()
    for _ in range(2):
        connection.theirs.h2.send_data(1, b"x" * 16_384)
    connection.ours.reset(1)  # crosses the data
    connection.run()
    assert not any(isinstance(e, Data) for e in connection.events)
    connection.theirs.send_body(3, b"y" * 65_000)
    connection.run()
    assert sum(len(e.data) for e in connection.events if isinstance(e, Data)) == 65_000


def test_a_client_upload_waits_for_the_servers_window_and_goes_on() -> None:
    connection = link(Role.CLIENT, peer_settings={CODES.INITIAL_WINDOW_SIZE: 1000})
    stream_id = connection.ours.request(REQUEST, b"x" * 10_000)
    assert connection.ours.unsent(stream_id) == 9000
    connection.run()
    assert connection.theirs.body_of(stream_id) == b"x" * 10_000
    assert connection.theirs.seen(h2.events.StreamEnded)
    assert Drained(stream_id) in connection.events
