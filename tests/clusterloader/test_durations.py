"""Go durations and ClusterLoader2's quantiles."""

from __future__ import annotations

import pytest

from harness.clusterloader.durations import parse_duration, quantile


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("5m", 300),
        ("1h2m3.5s", 3723.5),
        ("300ms", 0.3),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("-2s", -2),
        ("+2s", 2),
        ("7µs", 7e-6),
        ("10000s", 10000),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "5 m", "m", "5mm", "--5s", "+", "5s ", "1h2", "<no value>s", "nans"]
)
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("count", "percent", "value"),
    [(1, 50, 1), (2, 50, 1), (3, 50, 2), (100, 99, 99), (101, 99, 100), (10, 90, 9)],
)
def test_a_quantile_is_the_value_at_its_rank(count: int, percent: int, value: float) -> None:
    assert quantile([float(i) for i in range(1, count + 1)], percent) == value


def test_a_quantile_of_nothing_is_zero() -> None:
    assert quantile([], 99) == 0.0
