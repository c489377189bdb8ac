"""How an informer's lag is written down and drawn, and what else may be said of the authorizer."""

from __future__ import annotations

from random import Random
from statistics import mean, median

import pytest

from harness.apiserver.auth.nodeauthorizer import NodeAuthorizerOptions
from harness.apiserver.auth.nodelag import MEASURED, Lag
from harness.apiserver.auth.nodemisses import OnMiss
from harness.wire.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "lag"),
    [
        ("none", Lag()),
        ("fixed:5ms", Lag("fixed", 0.005)),
        ("uniform:1ms,5ms", Lag("uniform", 0.001, 0.005)),
        ("exponential:2ms", Lag("exponential", 0.002)),
        ("lognormal:50us,1.4", MEASURED),
    ],
)
def test_a_lag_is_read_and_written(text: str, lag: Lag) -> None:
    assert Lag.parse(text) == lag
    assert Lag.parse(str(lag)) == lag


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fixed",
        "fixed:",
        "fixed:5",
        "fixed:1ms,2ms",
        "none:1s",
        "uniform:5ms,1ms",
        "uniform:1ms",
        "lognormal:1ms",
        "lognormal:1ms,x",
        "lognormal:1ms,-1",
        "normal:1ms,1",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="lag: "):
        Lag.parse(text)


def test_lags_are_drawn_from_their_distribution() -> None:
    def draws(lag: Lag) -> list[float]:
        rng = Random(1)
        return [lag.draw(rng) for _ in range(20_000)]

    assert set(draws(Lag("fixed", 0.005))) == {0.005}
    uniform = draws(Lag("uniform", 0.001, 0.005))
    assert 0.001 <= min(uniform) <= max(uniform) <= 0.005
    assert mean(uniform) == pytest.approx(0.003, rel=0.02)
    assert mean(draws(Lag("exponential", 0.002))) == pytest.approx(0.002, rel=0.03)
    assert set(draws(Lag("exponential", 0.0))) == {0.0}
    assert median(draws(MEASURED)) == pytest.approx(50e-6, rel=0.03)


def test_options_are_for_all_members_or_for_one() -> None:
    settings = {
        "lag": "fixed:1ms",
        "member-1.lag": "fixed:9ms",
        "on-miss": "wait",
        "member-2.on-miss": "retry",
    }
    found = {
        member: NodeAuthorizerOptions.parse(settings, member)
        for member in ("member-0", "member-1", "member-2")
    }
    assert {name: (options.lag.first_s, options.on_miss) for name, options in found.items()} == {
        "member-0": (0.001, OnMiss.WAIT),
        "member-1": (0.009, OnMiss.WAIT),
        "member-2": (0.001, OnMiss.RETRY),
    }


def test_without_options_a_member_is_as_a_real_one() -> None:
    assert NodeAuthorizerOptions.parse({}) == NodeAuthorizerOptions(MEASURED, OnMiss.DENY)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"lags": "none"}, "'lags' is none of lag, on-miss, MEMBER.lag, MEMBER.on-miss"),
        ({"member-1.stall": "5s"}, "'member-1.stall' is none of"),
        ({"on-miss": "allow"}, "'allow' is none of deny, wait, retry"),
        ({"member-7.lag": "x"}, "'x' is none of none, fixed:5ms"),
    ],
)
def test_a_wrong_option_says_what_is_right(settings: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        NodeAuthorizerOptions.parse(settings, "member-0")
