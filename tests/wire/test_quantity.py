"""Quantities as numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from harness.wire.quantity import parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("1", 1),
        (1, 1),
        (1.5, Fraction(3, 2)),
        ("+3", 3),
        ("-1", -1),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 1024**3 // 2),
        ("2Ei", 2 * 1024**6),
        ("1n", Fraction(1, 10**9)),
        ("1u", Fraction(1, 10**6)),
        ("100m", Fraction(1, 10)),
        ("1k", 1000),
        ("1M", 10**6),
        ("1E", 10**18),
        ("1e3", 1000),
        ("1E-3", Fraction(1, 1000)),
        ("", None),
        ("Gi", None),
        ("1e400", 10**400),
        ("1e401", None),
        ("1e-999999999", None),
        ("1" * 101, None),
        ("1KiB", None),
        ("1 Gi", None),
        ("1ki", None),
        (True, None),
        (None, None),
        ({}, None),
    ],
)
def test_what_a_quantity_stands_for(text: object, number: Fraction | None) -> None:
    assert parse_quantity(text) == number
