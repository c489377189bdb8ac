"""Backoff grows, is jittered, and is reset by time alone."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harness.client.backoff import REFLECTOR, Backoff, BackoffPolicy


def test_a_reflector_s_delays_double_up_to_the_cap(middle: Any) -> None:
    backoff = Backoff(REFLECTOR, 0.0)
    delays = [backoff.next_s(1.0, middle) for _ in range(8)]
    assert delays == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 45.0, 45.0])


def test_jitter_adds_up_to_the_delay_itself() -> None:
    rng = Random(1)
    for _ in range(100):
        assert 0.8 <= Backoff(REFLECTOR, 0.0).next_s(0.0, rng) < 1.6


def test_it_begins_again_two_minutes_after_the_last_reset_whatever_happened(middle: Any) -> None:
    backoff = Backoff(REFLECTOR, 0.0)
    assert [
        backoff.next_s(now, middle) for now in (60.0, 119.0, 120.0, 120.1, 121.0, 240.1, 240.2)
    ] == pytest.approx([1.2, 2.4, 4.8, 1.2, 2.4, 4.8, 1.2])


def test_without_jitter_delays_are_exact() -> None:
    backoff = Backoff(BackoffPolicy(1.0, 3.0, 5.0, 0.0, 10.0), 0.0)
    assert [backoff.next_s(0.0, Random(0)) for _ in range(3)] == [1.0, 3.0, 5.0]
