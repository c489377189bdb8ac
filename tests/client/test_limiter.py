"""The token bucket hands out reservations as golang.org/x/time/rate does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.limiter import TokenBucket


def test_a_burst_passes_and_then_one_token_every_interval() -> None:
    bucket = TokenBucket(10, 3)
    assert [bucket.reserve(5.0) for _ in range(6)] == pytest.approx([0, 0, 0, 0.1, 0.2, 0.3])
    assert bucket.tokens(5.0) == pytest.approx(-3)
    assert bucket.reserve(5.3) == pytest.approx(0.1)


def test_tokens_come_back_up_to_the_burst() -> None:
    bucket = TokenBucket(10, 3)
    for _ in range(3):
        bucket.reserve(0.0)
    assert bucket.tokens(0.1) == pytest.approx(1)
    assert bucket.tokens(100.0) == 3
    assert bucket.reserve(50.0) == 0.0  # time does not run backwards


def test_a_cancelled_reservation_gives_its_token_back() -> None:
    bucket = TokenBucket(10, 1)
    assert bucket.reserve(0.0) == 0.0
    delay_s = bucket.reserve(0.0)
    bucket.cancel(0.0 + delay_s, 0.0)
    assert bucket.reserve(0.0) == pytest.approx(0.1)


def test_a_reservation_on_which_later_ones_rest_gives_nothing_back() -> None:
    bucket = TokenBucket(10, 1)
    bucket.reserve(0.0)
    first = bucket.reserve(0.0)
    second = bucket.reserve(0.0)
    bucket.cancel(first, 0.0)
    assert bucket.tokens(0.0) == pytest.approx(-2)
    bucket.cancel(second, 0.0)
    assert bucket.tokens(0.0) == pytest.approx(-1)


def test_a_reservation_that_has_acted_cannot_be_cancelled() -> None:
    bucket = TokenBucket(10, 1)
    bucket.reserve(0.0)
    bucket.cancel(0.0, 0.0)
    assert bucket.tokens(0.0) == 0


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (5, 0)])
def test_a_bucket_needs_a_rate_and_a_burst(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="token bucket needs"):
        TokenBucket(qps, burst)


@given(
    st.floats(min_value=0.1, max_value=100),
    st.integers(min_value=1, max_value=20),
    st.lists(st.floats(min_value=0, max_value=2), max_size=40),
)
def test_no_window_sees_more_than_burst_and_rate_allow(qps: float, burst: int, gaps: list[float]) -> None:
    bucket, now, acts = TokenBucket(qps, burst), 0.0, []
    for gap in gaps:
        now += gap
        acts.append(now + bucket.reserve(now))
    assert acts == sorted(acts)
    for at, act in enumerate(acts):
        for earlier in range(at):
            allowed = burst + (act - acts[earlier]) * qps
            assert at - earlier + 1 <= allowed + 1e-6


def test_another_limit_counts_from_now_on() -> None:
    bucket = TokenBucket(10, 4)
    bucket.set_limit(5, 2, 0.0)
    assert [bucket.reserve(0.0) for _ in range(4)] == pytest.approx([0, 0, 0.2, 0.4])
    bucket.set_limit(10, 8, 0.4)
    assert bucket.tokens(0.4) == pytest.approx(0)
    assert bucket.tokens(1.0) == pytest.approx(6)


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_limit_that_lets_nothing_pass_is_refused(qps: float, burst: int) -> None:
    with pytest.raises(ValueError, match="needs qps > 0 and burst >= 1"):
        TokenBucket(1, 1).set_limit(qps, burst, 0.0)
