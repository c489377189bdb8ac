"""Histograms keep quantiles within one part in sixty-four, and add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.observe.histogram import Histogram, bucket_middle_us, bucket_of


@given(st.floats(min_value=1, max_value=1e10))
def test_a_value_stays_within_a_sixty_fourth_of_its_bucket(value: float) -> None:
    assert bucket_middle_us(bucket_of(value)) == pytest.approx(value, rel=1 / 60)


@given(st.lists(st.floats(min_value=1, max_value=1e10), min_size=1))
def test_buckets_are_ordered_as_values(values: list[float]) -> None:
    ordered = sorted(values)
    buckets = [bucket_of(value) for value in ordered]
    assert buckets == sorted(buckets)


def test_values_below_a_microsecond_share_the_first_bucket() -> None:
    assert [bucket_of(value) for value in (0, 0.5, 0.999)] == [0, 0, 0]
    assert bucket_of(1) == 1


def test_quantiles_by_nearest_rank() -> None:
    histogram = Histogram()
    for value in (1000, 2000, 4000, 8000):
        histogram.add(value)
    assert histogram.quantile_us(0.5) == pytest.approx(2000, rel=0.02)
    assert histogram.quantile_us(0.51) == pytest.approx(4000, rel=0.02)
    assert histogram.quantile_us(1.0) == pytest.approx(8000, rel=0.02)


def test_an_empty_histogram_has_no_quantile() -> None:
    assert Histogram().quantile_us(0.5) is None


def test_merging_adds_counts() -> None:
    one, two = Histogram(), Histogram()
    one.add(10)
    two.add(10, count=3)
    two.add(99)
    one.merge(two.counts.items())
    assert one.total == 5
    assert one.counts[bucket_of(10)] == 4
