"""How many seats a level could have used lately, and what share of the server each level gets for the next 10 s.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/fairqueuing/integrator.go:54-200, apf_controller.go:255-275 (smoothing) and
conc_alloc.go:80-270 (the allocation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

SMOOTHING = 0.977  # half-life of 5 minutes at one adjustment each 10 s
_MIN_TARGET = 0.001


class Demand(NamedTuple):
    """Seats wanted over a period: time-weighted average, deviation, maximum."""

    duration_s: float
    average: float
    deviation: float
    maximum: float


class DemandIntegrator:
    """Integrates a number that holds for some time, then changes. What is added is what has been; the greatest value is
    its owner's to keep, as one that lasted for no time counts too."""

    __slots__ = ("_seconds", "_squares", "_sum")

    def __init__(self) -> None:
        self._seconds = self._sum = self._squares = 0.0

    def add(self, value: int, lasted_s: float) -> None:
        product = lasted_s * value
        self._seconds += lasted_s
        self._sum += product
        self._squares += product * value

    def reset(self, maximum: int) -> Demand:
        """What was seen since the last reset, and `maximum`."""
        seconds = self._seconds
        average = self._sum / seconds if seconds > 0 else 0.0
        variance = self._squares / seconds - average * average if seconds > 0 else 0.0
        self._seconds = self._sum = self._squares = 0.0
        return Demand(seconds, average, math.sqrt(max(0.0, variance)), maximum)


class Claim(NamedTuple):
    """What one level asks for."""

    lower: float
    upper: float
    target: float


def allocate(total: float, claims: Sequence[Claim]) -> tuple[list[float], float]:
    """Split `total` in proportion to targets within each claim's bounds; returns allocations and the proportion.

    Sum of the lower bounds <= total <= sum of the upper bounds is required (ValueError). The proportion p is the
    solution of sum(clamp(p x target)) = total; upstream walks along the sorted bounds, so does this.
    """
    claims = [Claim(lower, upper, max(target, _MIN_TARGET)) for lower, upper, target in claims]
    low, high = sum(claim.lower for claim in claims), sum(claim.upper for claim in claims)
    if not low - 1e-7 <= total <= high + 1e-7:
        raise ValueError(f"{total} seats are not between the bounds' sums, {low} and {high}")

    def total_at(proportion: float) -> float:
        return sum(min(c.upper, max(c.lower, proportion * c.target)) for c in claims)

    bounds = sorted({bound / claim.target for claim in claims for bound in (claim.lower, claim.upper)})
    below = bounds[0]
    proportion = bounds[-1]
    for bound in bounds:
        at_bound = total_at(bound)
        if at_bound >= total:
            at_below = total_at(below)
            span = at_bound - at_below
            proportion = below + (bound - below) * (total - at_below) / span if span > 0 else bound
            break
        below = bound
    return [min(c.upper, max(c.lower, proportion * c.target)) for c in claims], proportion
