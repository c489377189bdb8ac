"""How many seats each level has until the next adjustment.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/apf_controller.go:380-500 (updateBorrowingLocked).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from harness.apiserver.flowcontrol.demand import Claim, allocate
from harness.apiserver.flowcontrol.level import Level, go_round


class Allotment(NamedTuple):
    """Seats by level, the claims of those that have limits, and the proportion of targets that all could be given."""

    seats: dict[str, int]
    claims: dict[str, Claim]
    fair_fraction: float


def allot(levels: Mapping[str, Level]) -> Allotment:
    """Let levels that have too little borrow from those that have too much. Where the claims cannot be met within
    everybody's bounds, all keep what they have."""
    remaining = nominal_sum = sum(level.nominal for level in levels.values())
    seats: dict[str, int] = {}
    limited: dict[str, Level] = {}
    claims: dict[str, Claim] = {}
    for name, level in levels.items():
        if level.exempt:
            seats[name] = max(level.least, level.high_watermark)
            remaining -= seats[name]
        else:
            limited[name] = level
            lower = lower_bound(level)
            claims[name] = Claim(lower, level.most, max(lower, level.smoothed))
    least_sum = sum(level.least for level in limited.values())
    lower_sum = sum(int(claim.lower) for claim in claims.values())
    fair_fraction = 0.0
    if remaining <= least_sum:
        seats |= {name: level.least for name, level in limited.items()}
    elif remaining <= lower_sum:
        part = (remaining - least_sum) / (lower_sum - least_sum)
        seats |= {name: _between(level, part) for name, level in limited.items()}
    else:
        try:
            shares, fair_fraction = allocate(nominal_sum, list(claims.values()))
        except ValueError:
            seats |= _unchanged(limited.values())
        else:
            seats |= {name: go_round(share) for name, share in zip(limited, shares, strict=True)}
    return Allotment(seats, claims, fair_fraction)


def lower_bound(level: Level) -> int:
    """What it wanted at most in the last period, within what it has by shares and what it does not lend."""
    return max(level.least, min(level.nominal, level.high_watermark))


def _between(level: Level, part: float) -> int:
    return level.least + go_round((lower_bound(level) - level.least) * part)


def _unchanged(levels: Iterable[Level]) -> dict[str, int]:
    return {level.config.name: level.queues.limit for level in levels}
