"""Watch streams are framed by lines, whatever way the bytes are split."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.watching import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    WatchDecoder,
    WatchError,
    encode_event,
    encode_events,
)

POD = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"}}'


def test_an_event_is_one_line() -> None:
    line = b'{"type":"ADDED","object":' + POD + b"}\n"
    assert encode_event(ADDED, POD) == line
    assert encode_event(ADDED, POD + b"\n") == line
    assert encode_event("CUSTOM", b"{}") == b'{"type":"CUSTOM","object":{}}\n'


def test_several_events_are_as_many_lines() -> None:
    bodies = [POD, b"{}", POD]
    assert encode_events(MODIFIED, bodies) == b"".join(encode_event(MODIFIED, body) for body in bodies)
    assert encode_events(ADDED, []) == b""


def test_whole_lines_leave_nothing_behind() -> None:
    decoder = WatchDecoder()
    events = decoder.feed(encode_event(ADDED, POD) + encode_event(MODIFIED, POD))
    assert events == [(ADDED, POD), (MODIFIED, POD)]
    assert decoder.pending_bytes == 0
    assert decoder.feed(b"\n") == []


def test_a_cut_line_waits_for_its_end() -> None:
    decoder = WatchDecoder()
    line = encode_event(DELETED, POD)
    assert decoder.feed(line[:30]) == []
    assert decoder.feed(line[30:40]) == []
    assert decoder.pending_bytes == 40
    assert decoder.feed(line[40:] + line[:3]) == [(DELETED, POD)]
    assert decoder.pending_bytes == 3


def test_other_spellings_of_json_are_read_too() -> None:
    decoder = WatchDecoder()
    events = decoder.feed(
        b'{"object": {"a":1}, "type": "MODIFIED"}\r\n'
        b'{"type":"BOOKMARK","object":{"a":1} }\n'
        b'{"type":"NEW","object":{"a":1}}\n'
    )
    assert events == [(MODIFIED, b'{"a":1}'), (BOOKMARK, b'{"a":1}'), ("NEW", b'{"a":1}')]
    assert events[0][0] is MODIFIED


@pytest.mark.parametrize(
    "line", [b"{bad}\n", b'{"type":"ADDED"}\n', b"[]\n", b'{"type":"ADDED","object":5\n', b"\xff\n"]
)
def test_a_line_that_is_no_event_is_an_error(line: bytes) -> None:
    with pytest.raises(WatchError, match="unable to decode an event from the watch stream"):
        WatchDecoder().feed(line)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([ADDED, MODIFIED, DELETED, BOOKMARK, ERROR]),
            st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3),
        ),
        max_size=6,
    ),
    st.lists(st.integers(min_value=0, max_value=400), max_size=12),
)
def test_any_split_gives_the_same_events(events: list[tuple[str, dict[str, str]]], cuts: list[int]) -> None:
    wire = [(kind, json.dumps(body, separators=(",", ":")).encode()) for kind, body in events]
    stream = b"".join(encode_event(kind, body) for kind, body in wire)
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    decoder = WatchDecoder()
    found = [event for a, b in pairwise(places) for event in decoder.feed(stream[a:b])]
    assert found == wire
    assert decoder.pending_bytes == 0
