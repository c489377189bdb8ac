"""Figures as an expert reads them: three significant digits, units that fit."""

from __future__ import annotations

from harness.compare.comparison import Compared, Figure

NOT_EXPOSED = "not exposed"
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def number(value: float | None, unit: str) -> str:
    """A value with its unit; whole numbers keep all their digits."""
    if value is None:
        return NOT_EXPOSED
    if unit == "bytes":
        for size, name in _BYTES:
            if abs(value) >= size:
                return f"{_digits(value / size)} {name}"
        return f"{value:.0f} B"
    if unit == "share":
        return f"{value:.1%}"
    text = f"{value:,.0f}" if unit == "" and float(value).is_integer() else _digits(value)
    return f"{text} {unit}".rstrip()


def figure(figure: Figure, unit: str) -> str:
    """The median, with the range where there is more than one sample and they differ."""
    if figure.median is None or figure.range is None:
        return NOT_EXPOSED
    text, spread = number(figure.median, unit), span(figure, unit)
    return f"{text} ({spread})" if spread else text


def span(figure: Figure, unit: str) -> str:
    """The range in words; "" where its ends read the same, or there is none."""
    if figure.range is None:
        return ""
    low, high = (number(end, unit) for end in figure.range)
    return "" if low == high else f"{low} to {high}"


def difference(compared: Compared) -> str:
    """The second arm's median against the first's, as a signed amount and, where it means something, a ratio."""
    if compared.difference is None:
        return "–"
    unit = compared.row.unit
    if unit == "share":
        return f"{compared.difference * 100:+.1f} points"
    sign = "+" if compared.difference > 0 else "−" if compared.difference < 0 else "±"
    amount = f"{sign}{number(abs(compared.difference), unit)}"
    return amount if compared.ratio is None else f"{amount} (×{_digits(compared.ratio)})"


def _digits(value: float) -> str:
    """Three significant digits, never in powers of ten."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.6f}".rstrip("0")
