"""Small random sources."""

from __future__ import annotations

import sys

from harness.wire.draws import SmallDraws


def test_a_seed_gives_the_same_numbers_whatever_else_draws() -> None:
    first, other, again = SmallDraws("1/0/n1"), SmallDraws("1/0/n2"), SmallDraws("1/0/n1")
    drawn = [first.random() for _ in range(5)]
    assert [other.random() for _ in range(5)] != drawn
    assert [again.random() for _ in range(5)] == drawn


def test_numbers_are_uniform_in_0_to_1() -> None:
    draws = SmallDraws("uniform")
    counts = [0] * 10
    for _ in range(10_000):
        number = draws.random()
        assert 0.0 <= number < 1.0
        counts[int(number * 10)] += 1
    assert all(900 < count < 1100 for count in counts), counts


def test_neighbouring_seeds_begin_apart() -> None:
    firsts = {SmallDraws(f"1/0/swarmlet-0-{number}").random() for number in range(1000)}
    assert len(firsts) == 1000
    assert 0.4 < sum(firsts) / 1000 < 0.6


def test_a_source_is_small() -> None:
    draws = SmallDraws("size")
    assert sys.getsizeof(draws) < 64
