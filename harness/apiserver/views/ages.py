"""Ages as kubectl shows them (am/util/duration/duration.go HumanDuration)."""

from __future__ import annotations

from harness.wire.rfc3339 import parse

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 86400 * 365


def human(seconds: float) -> str:
    """``3m20s``, ``7d11h``: the two largest units while they matter."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _pair(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _pair(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _pair(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _pair(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _pair(whole: int, large: int, name: str, small: int, small_name: str) -> str:
    rest = whole % large // small
    return f"{whole // large}{name}{rest}{small_name}" if rest else f"{whole // large}{name}"


def since(stamp: object, now: float) -> str:
    """Age of a time stamp; ``<unknown>`` without one."""
    if not isinstance(stamp, str) or not stamp:
        return "<unknown>"
    return human(now - parse(stamp))
