"""Times as Kubernetes writes them: metav1.Time in whole seconds, metav1.MicroTime in microseconds, both UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from math import floor


def seconds(epoch_s: float) -> str:
    """``2026-11-29T14:24:10Z``; the fraction is cut off (am/apis/meta/v1/time.go)."""
    return _whole(floor(epoch_s))


@lru_cache(maxsize=64)
def _whole(epoch_s: int) -> str:
    """Thousands of clients stamp the same second."""
    year, month, day, hour, minute, second, *_ = time.gmtime(epoch_s)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}Z"


def micro(epoch_s: float) -> str:
    """``2026-11-29T14:24:10.123456Z`` (am/apis/meta/v1/micro_time.go)."""
    whole, fraction = divmod(round(epoch_s * 1_000_000), 1_000_000)
    return f"{seconds(whole)[:-1]}.{fraction:06d}Z"


def parse(text: str) -> float:
    """Seconds since 1970 of either form, with any offset and fraction. Raises ValueError."""
    stamp = datetime.fromisoformat(text)
    if stamp.tzinfo is None:
        raise ValueError(f"no offset in time {text!r}")
    return stamp.astimezone(UTC).timestamp()
