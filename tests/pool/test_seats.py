"""How many requests each member of a pool may have in flight."""

from __future__ import annotations

import pytest

from harness.pool.emulated import PoolOptions
from harness.wire.errors import ConfigError


@pytest.mark.parametrize(
    ("options", "seats"),
    [
        ({}, 600),
        ({"max_requests_inflight": "40"}, 40),
        ({"max_requests_inflight": "auto", "nodes": 5000}, 600),
        ({"max_requests_inflight": "auto", "nodes": 100}, 12),
        ({"max_requests_inflight": "auto", "cores": 2}, 150),
        ({"max_requests_inflight": "auto", "nodes": 1}, 2),  # at least 0.02 cores
        ({"max_requests_inflight": "auto", "cores": "host"}, 600),
    ],
)
def test_seats_are_given_or_go_by_the_cores(options: dict[str, object], seats: int) -> None:
    assert PoolOptions(**options).seats() == seats  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, -1, "0", "many", ""])
def test_a_wrong_number_is_refused(wrong: int | str) -> None:
    with pytest.raises(ConfigError, match="max-requests-inflight"):
        PoolOptions(max_requests_inflight=wrong).validate()


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"lag": "x"}, "lag: "), ({"member-3.lag": "none"}, "there is no member-3, but member-0, member-1")],
)
def test_the_node_authorizer_s_settings_are_checked(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        PoolOptions(members=2, node_authorizer=settings).validate()
    PoolOptions(members=2, node_authorizer={"member-1.lag": "fixed:5ms", "on-miss": "wait"}).validate()
