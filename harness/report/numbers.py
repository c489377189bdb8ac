"""Figures as an expert reads them: three significant digits, units that fit."""

from __future__ import annotations

from harness.compare.comparison import Compared, Figure
from harness.compare.inference import Contrast, Verdict
from harness.compare.rows.row import NOT_EXPOSED

_PARTS_FROM_S = 120
_BYTES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def number(value: float | None, unit: str, absent: str = NOT_EXPOSED) -> str:
    """A value with its unit; whole numbers keep all their digits. `absent` where there is none."""
    if value is None:
        return absent
    if unit == "bytes":
        for size, name in _BYTES:
            if abs(value) >= size:
                return f"{_digits(value / size)} {name}"
        return f"{value:.0f} B"
    if unit == "share":
        return f"{value:.1%}"
    if unit == "ms" and abs(value) >= 1000:
        value, unit = value / 1e3, "s"
    if unit == "s" and abs(value) >= _PARTS_FROM_S:
        return _parts(value)
    text = f"{value:,.0f}" if unit == "" and float(value).is_integer() else _digits(value)
    return f"{text} {unit}".rstrip()


def figure(figure: Figure, unit: str, absent: str = NOT_EXPOSED) -> str:
    """The median, with the range where there is more than one sample and they differ; `absent` where there is none."""
    if figure.median is None or figure.range is None:
        return absent
    text, spread = number(figure.median, unit), span(figure, unit)
    return f"{text} ({spread})" if spread else text


def span(figure: Figure, unit: str) -> str:
    """The range in words; "" where its ends read the same, or there is none."""
    if figure.range is None:
        return ""
    low, high = (number(end, unit) for end in figure.range)
    return "" if low == high else _between(low, high)


def difference(compared: Compared, arm: str) -> str:
    """An arm's median against the first's, as a signed amount and, where it means something, a ratio."""
    contrast = compared.contrasts[arm]
    if contrast is None:
        return "–"
    amount, ratio = signed(contrast.difference, compared.row.unit), compared.ratio(arm)
    return amount if ratio is None or compared.row.unit == "share" else f"{amount} (×{_digits(ratio)})"


def signed(value: float, unit: str) -> str:
    """A difference with its sign; shares in points."""
    if unit == "share":
        return f"{value * 100:+.1f} points".replace("-", "−")
    amount = number(abs(value), unit)
    sign = "±" if amount.split()[0] == "0" else "+" if value > 0 else "−"
    return f"{sign}{amount}"


def interval(contrast: Contrast | None, unit: str) -> str:
    """The 95 % interval of a difference; "" where there is none."""
    if contrast is None or contrast.interval is None:
        return ""
    return _between(*(signed(end, unit) for end in contrast.interval))


def _between(low: str, high: str) -> str:
    """Two values, their unit once where it is the same and they are no times of several parts."""
    first, second = low.split(" "), high.split(" ")
    return f"{first[0] if len(first) == len(second) == 2 and first[1] == second[1] else low} to {high}"


def verdict(contrast: Contrast | None) -> str:
    """The verdict in words, with what is missing for one."""
    if contrast is None:
        return "not comparable"
    if contrast.verdict is Verdict.TOO_FEW:
        return f"too few samples: {contrast.more} more of each" if contrast.more else "too few samples"
    if contrast.verdict is Verdict.NOT_SEEN and contrast.more is not None:
        more = f"{contrast.more} more sample{'s' if contrast.more > 1 else ''}"
        return f"no difference seen; {more} of each would show one of this size"
    return str(contrast.verdict.value)


def chance(contrast: Contrast | None) -> str:
    """How likely such a difference is where there is none, all rows considered."""
    if contrast is None or contrast.p_adjusted is None:
        return ""
    return "p < 0.001" if contrast.p_adjusted < 0.001 else f"p = {contrast.p_adjusted:.2g}"


def _parts(seconds: float) -> str:
    """A long time in its two largest units."""
    sign, whole = "−" if seconds < 0 else "", round(abs(seconds))
    if whole < 7200:
        return f"{sign}{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    minutes = round(whole / 60)
    return f"{sign}{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")


def _digits(value: float) -> str:
    """Three significant digits, never in powers of ten; 0 for less than a millionth."""
    if abs(value) < 1e-6:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.6f}".rstrip("0")
