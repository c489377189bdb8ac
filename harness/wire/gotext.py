"""Text as Go's standard library writes it, where it is visible on the wire: quoted strings, durations, integers."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quote(text: str) -> str:
    """`text` as fmt's ``%q`` prints it: in double quotes, what does not print escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escape(character) for character in text) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def duration(seconds: float) -> str:
    """`seconds` (not negative) as time.Duration prints itself: ``7m12s``, ``1h0m0s``, ``500ms``, ``0s``."""
    nanoseconds = round(seconds * 1_000_000_000)
    if nanoseconds < 1_000_000_000:
        return _below_a_second(nanoseconds)
    whole, fraction = divmod(nanoseconds, 1_000_000_000)
    minutes, second = divmod(whole, 60)
    text = f"{second}{_fraction(fraction, 9)}s"
    if not minutes:
        return text
    hours, minute = divmod(minutes, 60)
    return f"{hours}h{minute}m{text}" if hours else f"{minute}m{text}"


def _below_a_second(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    for unit, digits in (("ns", 0), ("µs", 3), ("ms", 6)):
        if nanoseconds < 10 ** (digits + 3):
            whole, fraction = divmod(nanoseconds, 10**digits)
            return f"{whole}{_fraction(fraction, digits)}{unit}"
    raise AssertionError(nanoseconds)


def _fraction(value: int, digits: int) -> str:
    return "." + f"{value:0{digits}d}".rstrip("0") if value else ""


_INT64_DIGITS = 19


def parse_int(text: str) -> int | None:
    """`text` as strconv.Atoi reads it (decimal, optional sign, 64 bits); None where it would fail."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > _INT64_DIGITS:
        return None
    value = int(digits.lstrip("0") or "0") * (-1 if text[:1] == "-" else 1)
    return value if -(2**63) <= value < 2**63 else None


def parse_duration(text: str) -> float | None:
    """Seconds of a Go duration (``10s``, ``7m12s``), None where it is none."""
    if text == "0":
        return 0.0
    if not text or _DURATION.sub("", text):
        return None
    return sum(float(number) * _UNITS_S[unit] for number, unit in _DURATION.findall(text))
