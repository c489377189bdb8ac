"""When objects reached the moments of their lives, and how long it took from one to another.

Mirrors clusterloader2/pkg/measurement/util/phase_latency.go: an object that lacks one of two moments is left out, a
negative latency is 0. Times are wall-clock seconds, since half of them are the API's own stamps.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping

from harness.wire import rfc3339

Transitions = Mapping[str, tuple[str, str]]
"""Name of a latency to the moments that it lies between."""


class TransitionTimes:
    def __init__(self) -> None:
        self._times: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def first(self, key: str, moment: str, at_s: float) -> None:
        """Keep the first time of a moment."""
        self._times[key].setdefault(moment, at_s)

    def stamp(self, key: str, moment: str, text: str | None) -> None:
        """Keep the first stamp of a moment; one that is missing, or no time, is none."""
        if text:
            with contextlib.suppress(ValueError):
                self.first(key, moment, rfc3339.parse(text))

    def has(self, key: str, moment: str) -> bool:
        return moment in self._times.get(key, ())

    def count(self, moment: str) -> int:
        """How many objects have reached it."""
        return sum(moment in times for times in self._times.values())

    def latencies_ms(self, transitions: Transitions) -> dict[str, list[float]]:
        return {
            name: [
                max(0.0, times[last] - times[first]) * 1000
                for times in self._times.values()
                if first in times and last in times
            ]
            for name, (first, last) in transitions.items()
        }
