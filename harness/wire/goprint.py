"""Values as Go's fmt prints them by ``%v`` and ``%+v``: maps in the order of their keys, nothing quoted."""

from __future__ import annotations


def go_value(value: object) -> str:
    """A JSON value as decoded into an interface."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_value, value))}]"
    return str(value)


def _float(value: float) -> str:
    """strconv's 'g' with the shortest digits, an exponent from 21 digits on."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    mantissa, e, exponent = repr(value).partition("e")
    if not e:
        return mantissa
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].zfill(2)}"
