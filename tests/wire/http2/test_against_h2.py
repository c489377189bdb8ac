"""Whole exchanges with h2 as the peer in either role, over arbitrary splits of the byte stream."""

from __future__ import annotations

import h2.events
import h2.settings
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire.http2 import Data, Headers, Role, Settings, Trailers
from tests.wire.http2.http2_peer import REQUEST, RESPONSE, Link, link, pieces_of

CODES = h2.settings.SettingCodes
sizes = st.lists(st.integers(1, 40_000), min_size=1, max_size=6)
bodies = st.integers(0, 100_000).map(
    lambda length: bytes(length % 251 for length in range(256)) * (length // 256)
)
extra_headers = st.lists(
    st.tuples(
        st.from_regex(rb"x-[a-z0-9-]{1,20}", fullmatch=True),
        st.from_regex(rb"[!-~]([ -~]{0,60}[!-~])?", fullmatch=True),
    ),
    max_size=8,
)
huge_header = st.sampled_from([(), ((b"x-huge", bytes(range(33, 127)) * 400),)])


def body_of(link: Link, stream_id: int) -> bytes:
    return b"".join(e.data for e in link.events if isinstance(e, Data) and e.stream_id == stream_id)


def head_of(link: Link, stream_id: int) -> list[tuple[bytes, bytes]]:
    return next(e.headers for e in link.events if isinstance(e, Headers) and e.stream_id == stream_id)


def ended(link: Link, stream_id: int) -> bool:
    return any(
        e.stream_id == stream_id and (isinstance(e, Trailers) or e.end_stream)
        for e in link.events
        if isinstance(e, (Headers, Data, Trailers))
    )


@settings(deadline=None, max_examples=20)
@given(
    cut=sizes,
    exchanges=st.lists(st.tuples(extra_headers, huge_header, bodies, bodies), min_size=1, max_size=4),
    window=st.sampled_from([1, 1000, 65_535, 1 << 20]),
    frame=st.sampled_from([16_384, 262_144]),
    padding=st.sampled_from([None, 0, 255]),
)
def test_our_client_and_h2s_server_agree_on_every_exchange(cut, exchanges, window, frame, padding) -> None:
    if window == 1:  # one DATA frame a byte: keep it short
        exchanges = [(headers, huge, up[:20], down[:20]) for headers, huge, up, down in exchanges]
        padding = None  # a padded frame never fits
    our_settings = Settings(initial_window_size=max(window, 1), max_frame_size=frame, enable_push=False)
    its_settings = {CODES.INITIAL_WINDOW_SIZE: window, CODES.MAX_FRAME_SIZE: frame}
    connection = link(
        Role.CLIENT, our_settings, peer_settings=its_settings, pieces=pieces_of(cut), padding=padding
    )
    sent = []
    for headers, huge, up, down in exchanges:
        sent.append((connection.ours.request([*REQUEST, *headers, *huge], up), headers, huge, up, down))
    connection.run()
    for stream_id, headers, huge, up, down in sent:
        assert connection.theirs.headers_of(stream_id) == [*REQUEST, *headers, *huge]
        assert connection.theirs.body_of(stream_id) == up
        connection.theirs.h2.send_headers(stream_id, [*RESPONSE, *headers, *huge])
        connection.theirs.send_body(stream_id, down, trailers=[(b"x-last", b"1")] if huge else None)
    connection.run()
    for stream_id, headers, huge, _up, down in sent:
        assert head_of(connection, stream_id) == [*RESPONSE, *headers, *huge]
        assert body_of(connection, stream_id) == down
        assert ended(connection, stream_id)
    assert connection.ours.open_streams == 0


@settings(deadline=None, max_examples=20)
@given(
    cut=sizes,
    exchanges=st.lists(st.tuples(extra_headers, huge_header, bodies, bodies), min_size=1, max_size=4),
    window=st.sampled_from([1, 1000, 65_535, 1 << 20]),
    frame=st.sampled_from([16_384, 262_144]),
    padding=st.sampled_from([None, 0, 255]),
)
def test_our_server_and_h2s_client_agree_on_every_exchange(cut, exchanges, window, frame, padding) -> None:
    if window == 1:
        exchanges = [(headers, huge, up[:20], down[:20]) for headers, huge, up, down in exchanges]
        padding = None
    our_settings = Settings(initial_window_size=window, max_frame_size=frame)
    its_settings = {CODES.INITIAL_WINDOW_SIZE: window, CODES.MAX_FRAME_SIZE: frame}
    connection = link(
        Role.SERVER, our_settings, peer_settings=its_settings, pieces=pieces_of(cut), padding=padding
    )
    sent = []
    for headers, huge, up, down in exchanges:
        stream_id = connection.theirs.h2.get_next_available_stream_id()
        connection.theirs.h2.send_headers(stream_id, [*REQUEST, *headers, *huge])
        connection.theirs.send_body(stream_id, up, trailers=[(b"x-last", b"1")] if huge else None)
        sent.append((stream_id, headers, huge, up, down))
    connection.run()
    for stream_id, headers, huge, up, down in sent:
        assert head_of(connection, stream_id) == [*REQUEST, *headers, *huge]
        assert body_of(connection, stream_id) == up
        assert ended(connection, stream_id)
        connection.ours.respond(stream_id, [*RESPONSE, *headers, *huge])
        connection.ours.send_data(stream_id, down[:1000])
        connection.ours.send_data(stream_id, down[1000:], end_stream=True)
    connection.run()
    for stream_id, headers, huge, _up, down in sent:
        assert connection.theirs.headers_of(stream_id) == [*RESPONSE, *headers, *huge]
        assert connection.theirs.body_of(stream_id) == down
    assert len(connection.theirs.seen(h2.events.StreamEnded)) == len(sent)
    assert connection.ours.open_streams == 0


def test_a_byte_at_a_time_gives_the_same_events() -> None:
    whole, dripped = link(Role.SERVER), link(Role.SERVER, pieces=pieces_of([1]))
    for connection in (whole, dripped):
        connection.theirs.h2.send_headers(1, REQUEST)
        connection.theirs.send_body(1, b"body" * 100)
        connection.run()
    assert whole.events == dripped.events


@pytest.mark.parametrize("count", [1, 300])
def test_header_tables_stay_in_step_over_many_requests(count: int) -> None:
    connection = link(Role.CLIENT)
    for number in range(count):
        stream_id = connection.ours.request([*REQUEST, (b"x-number", b"%d" % number)])
        connection.run()
        connection.theirs.h2.send_headers(
            stream_id, [*RESPONSE, (b"x-number", b"%d" % number)], end_stream=True
        )
        (answer,) = connection.run()
        assert isinstance(answer, Headers)
        assert answer.headers[-1] == (b"x-number", b"%d" % number)
        assert connection.theirs.headers_of(stream_id)[-1] == (b"x-number", b"%d" % number)
        connection.theirs.events.clear()


@pytest.mark.parametrize("size", [0, 100, 65_536])
def test_header_table_size_is_honoured_both_ways(size: int) -> None:
    ours = Settings(header_table_size=size)
    connection = link(Role.SERVER, ours, peer_settings={CODES.HEADER_TABLE_SIZE: size})
    for _ in range(3):
        stream_id = connection.theirs.h2.get_next_available_stream_id()
        extra = [(b"x-%d" % number, b"v" * 50) for number in range(200)]
        connection.theirs.h2.send_headers(stream_id, [*REQUEST, *extra], end_stream=True)
        connection.run()
        assert head_of(connection, stream_id) == [*REQUEST, *extra]
        connection.ours.respond(stream_id, [*RESPONSE, *extra], end_stream=True)
        connection.run()
        assert connection.theirs.headers_of(stream_id) == [*RESPONSE, *extra]
