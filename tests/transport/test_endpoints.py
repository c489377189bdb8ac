"""The choice of a member for a new connection."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from harness.transport.endpoints import Endpoint, Endpoints
from harness.wire.errors import ConfigError

THREE = [Endpoint("10.0.0.1", 6443 + n, f"m{n}") for n in range(3)]


def test_random_spreads_and_repeats_with_its_seed():
    draws = [Endpoints(THREE, random.Random(7)).choose().member for _ in range(2)]
    assert draws[0] == draws[1]
    endpoints = Endpoints(THREE, random.Random(7))
    counts = Counter(endpoints.choose().member for _ in range(3000))
    assert set(counts) == {"m0", "m1", "m2"}
    assert min(counts.values()) > 900


def test_round_robin_takes_each_in_turn():
    endpoints = Endpoints(THREE, random.Random(7), "round-robin")
    drawn = [endpoints.choose() for _ in range(6)]
    assert drawn[:3] == drawn[3:]
    assert set(drawn) == set(THREE)


@pytest.mark.parametrize(
    ("addresses", "policy", "said"), [([], "random", "at least one"), (THREE, "least", "round-robin")]
)
def test_what_cannot_be_used_is_a_config_error(addresses, policy, said):
    with pytest.raises(ConfigError, match=said):
        Endpoints(addresses, random.Random(1), policy)


def test_an_ipv6_address_is_put_in_brackets():
    assert Endpoint("::1", 443, "m").authority == "[::1]:443"
    assert Endpoint("host", 443, "m").authority == "host:443"
