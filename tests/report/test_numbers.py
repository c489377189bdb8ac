"""Figures as people read them."""

from __future__ import annotations

import pytest

from harness.compare.comparison import Figure
from harness.compare.rows.row import NO_SUCH_MEMBER, NOT_EXPOSED
from harness.report.numbers import figure, number, signed, span


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", NOT_EXPOSED),
        (0.0, "s", "0 s"),
        (999.9, "ms", "1,000 ms"),
        (1000.0, "ms", "1 s"),
        (1534.2, "ms", "1.53 s"),
        (119.9, "s", "120 s"),
        (120.0, "s", "2 min"),
        (125.0, "s", "2 min 5 s"),
        (120_000.0, "ms", "2 min"),
        (7199.0, "s", "119 min 59 s"),
        (7200.0, "s", "2 h"),
        (7290.0, "s", "2 h 2 min"),
        (0.1234, "share", "12.3%"),
        (12345.0, "", "12,345"),
        (3 * 2**20, "bytes", "3 MiB"),
    ],
)
def test_a_value_has_a_unit_that_fits(value: float | None, unit: str, text: str) -> None:
    assert number(value, unit) == text


@pytest.mark.parametrize(
    ("values", "unit", "text"),
    [
        ((1.0, 1.0), "s", ""),
        ((1.0, 2.0), "s", "1 to 2 s"),
        ((900.0, 1100.0), "ms", "900 ms to 1.1 s"),
        ((60.0, 130.0), "s", "60 s to 2 min 10 s"),
        ((3.0, 4.0), "", "3 to 4"),
    ],
)
def test_a_range_says_its_unit_once(values: tuple[float, ...], unit: str, text: str) -> None:
    assert span(Figure(values), unit) == text


def test_what_is_missing_says_why() -> None:
    assert number(None, "s", NO_SUCH_MEMBER) == "no such member"
    assert figure(Figure((None, None)), "s", NO_SUCH_MEMBER) == "no such member"
    assert figure(Figure((None, 2.0)), "s", NO_SUCH_MEMBER) == "2 s"


def test_differences_keep_their_sign() -> None:
    assert signed(-130.0, "s") == "−2 min 10 s"
    assert signed(1500.0, "ms") == "+1.5 s"


def test_less_than_a_millionth_is_nothing() -> None:
    assert signed(-4e-8, "ms") == "±0 ms"
    assert number(-4e-8, "ms") == "0 ms"
    assert number(2e-6, "s") == "0.000002 s"
