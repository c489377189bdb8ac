"""Whatever a peer sends, only `ProtocolError` comes out of `feed()`, and the same events in any split."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire.http2 import Connection, Event, ProtocolError, Role
from harness.wire.http2 import frames as wire
from harness.wire.http2.hpack_coder import new_coder
from harness.wire.http2.limits import MAX_WINDOW
from tests.wire.http2.http2_peer import REQUEST, RESPONSE, pair, pieces_of, settle

block = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [new_coder().encode(REQUEST), new_coder().encode(RESPONSE), new_coder().encode([(b"x", b"y")])]
    ),
)
payload = st.one_of(
    st.binary(max_size=40),
    block,
    st.integers(0, 2**32 - 1).map(wire.U32.pack),
    st.tuples(st.integers(0, 10), st.integers(0, 2**32 - 1)).map(
        lambda s: s[0].to_bytes(2) + s[1].to_bytes(4)
    ),
    st.just(b"12345678"),
)
frame = st.builds(
    wire.pack_frame,
    st.one_of(st.integers(0, 10), st.integers(0, 255)),
    st.sampled_from([0, 1, 4, 5, 8, 9, 12, 13, 37, 45, 255]),
    st.sampled_from([0, 1, 2, 3, 5, 7, 9, 1 << 31, MAX_WINDOW]),
    payload,
)
stream = st.one_of(
    st.lists(frame, max_size=12).map(b"".join),
    st.tuples(st.lists(frame, max_size=5).map(b"".join), st.binary(max_size=60)).map(b"".join),
)


def prepared(role: Role) -> Connection:
    """With three streams open: one answered, one with a body that waits, one fresh."""
    client, server = pair(window=70_000)
    for _ in range(3):
        client.request(REQUEST, b"x" * 100, end_stream=False)
    settle(client, server)
    server.respond(1, RESPONSE, b"x" * 100_000)
    server.respond(3, RESPONSE)
    client.send_data(5, b"x" * 100_000, end_stream=True)
    client.feed(server.take_output())
    client.take_output()
    server.take_output()
    return client if role is Role.CLIENT else server


def outcome(connection: Connection, pieces: list[bytes]) -> tuple[list[Event], object]:
    events: list[Event] = []
    try:
        for piece in pieces:
            events += connection.feed(piece)
    except ProtocolError as error:
        return events + error.events, (error.code, error.detail)
    return events, None


@pytest.mark.parametrize("role", list(Role))
@settings(deadline=None, max_examples=250)
@given(data=stream, sizes=st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_only_the_declared_error_escapes_and_splits_do_not_matter(
    role: Role, data: bytes, sizes: list[int]
) -> None:
    whole, split = prepared(role), prepared(role)
    first = outcome(whole, [data])
    second = outcome(split, list(pieces_of(sizes)(data)))
    assert first == second
    assert whole.take_output() == split.take_output()


@pytest.mark.parametrize("role", list(Role))
@settings(deadline=None, max_examples=50)
@given(data=st.binary(max_size=200))
def test_only_the_declared_error_escapes_at_the_start(role: Role, data: bytes) -> None:
    connection = Connection(role)
    connection.initiate()
    outcome(connection, [data])
