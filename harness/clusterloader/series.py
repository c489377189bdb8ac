"""One series of a run's record, as measurements look at it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Series(NamedTuple):
    """A counter or a gauge: its labels, its name among them as `__name__`, and its values by time, kept where they
    changed."""

    labels: Mapping[str, str]
    times: Sequence[float]
    values: Sequence[float]

    @property
    def name(self) -> str:
        return self.labels.get("__name__", "")

    def increase(self, since: float, until: float) -> float:
        """What was counted after `since` up to `until`; a counter that fell began anew."""
        first, last = bisect_right(self.times, since), bisect_right(self.times, until)
        before = self.values[first - 1] if first else 0.0
        total = 0.0
        for value in self.values[first:last]:
            total += value - before if value >= before else value
            before = value
        return total

    def at(self, t: float) -> float | None:
        """The value that it had; None before the first."""
        index = bisect_right(self.times, t)
        return self.values[index - 1] if index else None

    def highest(self, since: float, until: float) -> float | None:
        """The highest value that it had between two times, both included; None where it had none yet."""
        first, last = bisect_right(self.times, since), bisect_right(self.times, until)
        return max(self.values[max(0, first - 1) : last], default=None)
