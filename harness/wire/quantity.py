"""Quantities: numbers with a suffix, as resource requests and capacities are written (am/api/resource/quantity.go)."""

from __future__ import annotations

import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?")
_MAX_LENGTH = 100
_MAX_EXPONENT = 400  # beyond what any size is; a billion would be a number that fills the memory
_DECIMAL = {
    suffix: 3 * power for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
_BINARY: dict[str, int] = {f"{suffix}i": 1024**power for power, suffix in enumerate("KMGTPE", 1)}


def parse_quantity(value: object) -> Fraction | None:
    """The number that a quantity stands for, None where it is none. JSON numbers count as quantities."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    found = _FORM.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None:
        return None
    number, suffix = Fraction(found[1]), found[2] or ""
    if suffix in _BINARY:
        return number * _BINARY[suffix]
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if abs(exponent) > _MAX_EXPONENT:
        return None
    factor: int = 10 ** abs(exponent)
    return number * factor if exponent >= 0 else number / factor
