"""How far an informer is behind the watch that it follows: a distribution, and how a user writes it down."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from random import Random

from harness.wire.errors import ConfigError
from harness.wire.gotext import duration, parse_duration

FORMS = "none, fixed:5ms, uniform:1ms,5ms, exponential:2ms, lognormal:50us,1.4 (median and sigma)"


@dataclass(frozen=True, slots=True)
class Lag:
    """Seconds between an event's arrival and its handling, drawn for each; handled in order all the same.

    `kind` says what `first_s` and `second` are: the value (fixed), bounds (uniform), the mean (exponential), median and
    sigma of the logarithm (lognormal).
    """

    kind: str = "fixed"
    first_s: float = 0.0
    second: float = 0.0

    def draw(self, rng: Random) -> float:
        if self.kind == "lognormal":
            return self.first_s * exp(self.second * rng.gauss(0.0, 1.0))
        if self.kind == "uniform":
            return rng.uniform(self.first_s, self.second)
        if self.kind == "exponential":
            return rng.expovariate(1 / self.first_s) if self.first_s else 0.0
        return self.first_s

    @classmethod
    def parse(cls, text: str) -> Lag:
        """As in FORMS. Raises ConfigError."""
        kind, _, rest = text.partition(":")
        figures = rest.split(",") if rest else []
        if kind == "none" and not figures:
            return cls()
        try:
            if kind in ("fixed", "exponential") and len(figures) == 1:
                return cls(kind, _seconds(figures[0]))
            if kind == "uniform" and len(figures) == 2:
                low, high = _seconds(figures[0]), _seconds(figures[1])
                if low <= high:
                    return cls(kind, low, high)
            if kind == "lognormal" and len(figures) == 2:
                sigma = float(figures[1])
                if 0 <= sigma < 10:
                    return cls(kind, _seconds(figures[0]), sigma)
        except ValueError:
            pass
        raise ConfigError(f"lag: {text!r} is none of {FORMS}")

    def __str__(self) -> str:
        """What `parse` reads."""
        first = duration(self.first_s).replace("µ", "u")
        if self.kind == "uniform":
            return f"uniform:{first},{duration(self.second).replace('µ', 'u')}"
        if self.kind == "lognormal":
            return f"lognormal:{first},{self.second:g}"
        return f"{self.kind}:{first}"


MEASURED = Lag("lognormal", 50e-6, 1.4)
"""At rest, 2 to 3 of 100 reads sent as soon as a binding had been answered were refused by a real server, and those
within 6 ms (p99) no longer; a read reached authorization about 0.8 ms after the informer's event. Median 50 us and
sigma 1.4 give 2.4 in 100 beyond 0.8 ms, and of these 1 in 100 beyond 6.6 ms. Under load, queueing on the host adds to
it: that part is caused, not drawn."""


def _seconds(text: str) -> float:
    """Raises ValueError."""
    seconds = parse_duration(text.strip())
    if seconds is None:
        raise ValueError(text)
    return round(seconds, 9)
