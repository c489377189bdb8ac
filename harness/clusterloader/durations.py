"""Go durations: ``5m``, ``1h2m3.5s``, ``300ms``, and the quantile rule that every ClusterLoader2 summary uses."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from harness.wire.errors import ConfigError

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


class Seconds(float):
    """A duration of a config, in seconds."""


def parse_duration(text: str) -> Seconds:
    """Seconds of a Go duration (time.ParseDuration). Raises ValueError naming the text and what is allowed."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    sign = -1 if text.startswith("-") else 1
    if unsigned == "0":
        return Seconds(0)
    total, at = 0.0, 0
    for part in _PART.finditer(unsigned):
        if part.start() != at:
            break
        total += float(part[1]) * _UNITS_S[part[2]]
        at = part.end()
    if at != len(unsigned) or not unsigned:
        raise ValueError(
            f"invalid duration {text!r}: allowed are numbers with a unit, as in 1h30m, 5m, 2.5s, 300ms"
        )
    return Seconds(sign * total)


def option_seconds(flag: str, text: str) -> float:
    """Seconds of a duration that an option of a command gives. Raises ConfigError."""
    try:
        return float(parse_duration(text))
    except ValueError as error:
        raise ConfigError(f"{flag} {text}: {error}") from None


def quantile(ordered: Sequence[float], percent: int) -> float:
    """The value at ceil(n x percent / 100) of ascending values, 0.0 of none (measurement/util/latency_metric.go)."""
    if not ordered:
        return 0.0
    return ordered[math.ceil(len(ordered) * percent / 100) - 1]
