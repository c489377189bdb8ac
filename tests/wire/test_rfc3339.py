"""Times are written and read as Kubernetes does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire import rfc3339


def test_seconds_cut_the_fraction_and_micro_keeps_six_digits() -> None:
    assert rfc3339.seconds(0) == "1970-01-01T00:00:00Z"
    assert rfc3339.seconds(1_700_000_000.999) == "2023-11-14T22:13:20Z"
    assert rfc3339.micro(1_700_000_000.25) == "2023-11-14T22:13:20.250000Z"
    assert rfc3339.micro(1_699_999_999.9999999) == "2023-11-14T22:13:20.000000Z"


def test_both_forms_and_offsets_are_read() -> None:
    assert rfc3339.parse("2023-11-14T22:13:20Z") == 1_700_000_000
    assert rfc3339.parse("2023-11-14T22:13:20.250000Z") == 1_700_000_000.25
    assert rfc3339.parse("2023-11-15T00:13:20+02:00") == 1_700_000_000


@pytest.mark.parametrize("text", ["", "yesterday", "2023-11-14T22:13:20"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        rfc3339.parse(text)


@given(st.integers(min_value=0, max_value=4_000_000_000_000_000))
def test_microseconds_survive(microseconds: int) -> None:
    assert round(rfc3339.parse(rfc3339.micro(microseconds / 1e6)) * 1e6) == pytest.approx(microseconds, abs=1)
