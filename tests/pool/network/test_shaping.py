"""When bytes come out of a link: exact times."""

from __future__ import annotations

import math
from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.pool.network.shaping import (
    END,
    HELD_BYTES,
    PIECE_BYTES,
    RTO_MAX_S,
    SEGMENT_BYTES,
    Lane,
    Shape,
    Wire,
)


class Draws:
    """Numbers that were written down."""

    def __init__(self, numbers: Iterable[float]) -> None:
        self._numbers = iter(numbers)

    def random(self) -> float:
        return next(self._numbers)


def lane(shape: Shape, numbers: Iterable[float] = ()) -> Lane:
    wire = Wire(Draws(numbers))
    wire.reshape(shape, 0.0)
    return Lane(wire)


def came(lane: Lane, until_s: float = math.inf) -> list[tuple[float, bytes]]:
    """What comes out, and when."""
    found: list[tuple[float, bytes]] = []
    while lane.next_s is not None and lane.next_s <= until_s:
        now = lane.next_s
        assert lane.due(math.nextafter(now, -math.inf)) == [], "not before"
        found += [(now, data) for data in lane.due(now)]
        lane.validate()
    return found


def test_an_open_link_keeps_nothing_back() -> None:
    open_ = lane(Shape())
    open_.put(b"a", 1.0)
    assert came(open_) == [(1.0, b"a")]


def test_latency_is_added_to_each_and_order_is_kept() -> None:
    late = lane(Shape(latency_s=0.5))
    late.put(b"a", 1.0)
    late.put(b"b", 1.25)
    late.put(END, 1.25)
    assert came(late) == [(1.5, b"a"), (1.75, b"b"), (1.75, END)]


def test_jitter_delays_but_nothing_overtakes() -> None:
    jittery = lane(Shape(latency_s=1.0, jitter_s=1.0), (0.5, 0.0, 0.75))
    for data in (b"a", b"b", b"c"):
        jittery.put(data, 0.0)
    assert came(jittery) == [(1.5, b"a"), (1.5, b"b"), (1.75, b"c")]


def test_a_rate_is_shared_by_all_lanes_of_a_wire() -> None:
    wire = Wire(Draws(()))
    wire.reshape(Shape(latency_s=0.5, rate_bit_s=8000.0), 0.0)
    one, other = Lane(wire), Lane(wire)
    one.put(b"x" * 1000, 0.0)
    other.put(b"y" * 500, 0.0)
    one.put(b"z" * 1000, 10.0)  # the wire has been idle for long
    assert [at for at, _ in came(one)] == [1.5, 11.5]
    assert [at for at, _ in came(other)] == [2.0]


def test_large_data_passes_in_pieces_where_there_is_a_rate() -> None:
    narrow = lane(Shape(rate_bit_s=8.0 * PIECE_BYTES))
    narrow.put(b"x" * (2 * PIECE_BYTES + 1), 0.0)
    times = [(at, len(data)) for at, data in came(narrow)]
    assert times == [(1.0, PIECE_BYTES), (2.0, PIECE_BYTES), (2.0 + 1 / PIECE_BYTES, 1)]
    wide = lane(Shape(latency_s=1.0))
    wide.put(b"x" * (2 * PIECE_BYTES + 1), 0.0)
    assert len(came(wide)) == 1


def test_a_lost_segment_comes_after_its_retransmission_and_holds_up_what_is_behind() -> None:
    lossy = lane(Shape(latency_s=0.05, drop=0.1), (0.05, 0.5, 0.9))  # lost once; then not; the next one not
    lossy.put(b"a", 0.0)
    lossy.put(b"b", 0.01)
    assert came(lossy) == [(pytest.approx(0.25), b"a"), (pytest.approx(0.25), b"b")]


def test_the_time_out_is_a_round_trip_where_that_is_longer_and_doubles() -> None:
    far = lane(Shape(latency_s=0.5, drop=0.5), (0.0, 0.0, 0.0, 0.9))
    far.put(b"a", 0.0)
    assert came(far) == [(0.5 + 1 + 2 + 4, b"a")]
    unlucky = lane(Shape(drop=0.5), [0.0] * 12 + [0.9])
    unlucky.put(b"a", 0.0)
    doubled = sum(min(0.2 * 2**n, RTO_MAX_S) for n in range(12))
    assert came(unlucky)[0][0] == pytest.approx(doubled)


def test_several_segments_are_lost_more_easily_than_one() -> None:
    three = lane(Shape(drop=0.1), (0.27, 0.99))  # 1 - 0.9 ** 3 = 0.271
    three.put(b"x" * (2 * SEGMENT_BYTES + 1), 0.0)
    assert came(three)[0][0] == 0.2
    whole = lane(Shape(drop=0.1), (0.272,))
    whole.put(b"x" * (2 * SEGMENT_BYTES + 1), 0.0)
    assert came(whole)[0][0] == 0.0


def test_a_cut_holds_everything_until_it_is_over() -> None:
    wire = Wire(Draws(()))
    wire.reshape(Shape(latency_s=1.0), 0.0)
    cut = Lane(wire)
    cut.put(b"a", 0.0)
    wire.reshape(Shape(cut=True), 0.5)
    cut.reshaped(0.5)
    cut.put(b"b", 0.6)
    assert (cut.next_s, cut.due(100.0)) == (None, [])
    wire.reshape(Shape(), 100.0)
    cut.reshaped(100.0)
    assert came(cut) == [(100.0, b"a"), (100.0, b"b")]


def test_what_waits_on_a_narrow_wire_comes_at_once_when_it_is_wide_again() -> None:
    wire = Wire(Draws(()))
    wire.reshape(Shape(rate_bit_s=1.0), 0.0)
    held = Lane(wire)
    held.put(b"x" * 100, 0.0)
    assert held.next_s == 800.0
    wire.reshape(Shape(), 5.0)
    held.reshaped(5.0)
    assert came(held) == [(5.0, b"x" * 100)]


def test_a_lane_is_full_at_its_limit_and_not_below() -> None:
    late = lane(Shape(latency_s=1.0))
    late.put(b"x" * (HELD_BYTES - 1), 0.0)
    assert not late.full
    late.put(b"x", 0.0)
    assert late.full
    came(late)
    assert not late.full


shapes = st.builds(
    Shape,
    latency_s=st.sampled_from([0.0, 0.05]),
    jitter_s=st.sampled_from([0.0, 0.02]),
    rate_bit_s=st.sampled_from([0.0, 1e6]),
    drop=st.sampled_from([0.0, 0.2]),
    cut=st.booleans(),
)


@given(st.lists(st.one_of(st.integers(1, 40_000), shapes), max_size=30), st.integers(0, 9))
def test_whatever_a_wire_becomes_a_lane_gives_what_it_got(steps: list[int | Shape], seed: int) -> None:
    wire = Wire(Random(seed))
    lane, now, got, given_ = Lane(wire), 0.0, b"", b""
    for number, step in enumerate(steps):
        now += 0.01
        if isinstance(step, Shape):
            wire.reshape(step, now)
            lane.reshaped(now)
        else:
            data = bytes([number]) * step
            given_ += data
            lane.put(data, now)
        got += b"".join(lane.due(now))
        lane.validate()
    wire.reshape(Shape(), now)
    lane.reshaped(now)
    assert got + b"".join(lane.due(now)) == given_
