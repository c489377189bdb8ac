"""The choice of a member for a new connection."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from harness.transport.endpoints import Balance, Endpoint, Endpoints
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


def test_a_pinned_node_stays_where_it_is():
    endpoints = Endpoints(THREE, random.Random(7), "pinned")
    assert len({endpoints.choose() for _ in range(20)}) == 1
    firsts = Counter(Endpoints(THREE, random.Random(seed), "pinned").choose().member for seed in range(300))
    assert min(firsts[member.member] for member in THREE) > 60, "nodes are spread"


def test_a_pinned_node_goes_on_to_the_next_while_its_member_is_down_and_back_then():
    endpoints = Endpoints(THREE, random.Random(7), "pinned")
    home = endpoints.choose()
    endpoints.failed(home)
    second = endpoints.choose()
    endpoints.failed(home)  # of another dial that had begun before
    assert endpoints.choose() is second
    endpoints.failed(second)
    assert len({home, second, endpoints.choose()}) == 3
    endpoints.succeeded()
    assert endpoints.choose() is home


def test_round_robin_goes_round_for_all_who_are_balanced_together():
    balance = Balance()
    nodes = [Endpoints(THREE, random.Random(seed), "round-robin", balance=balance) for seed in range(6)]
    drawn = [node.choose() for node in nodes]
    assert drawn[:3] == drawn[3:]
    assert set(drawn) == set(THREE)


def test_least_connections_counts_those_that_are_dialled_and_draws_among_equals():
    balance = Balance()
    nodes = [
        Endpoints(THREE, random.Random(seed), "least-connections", balance=balance) for seed in range(300)
    ]
    drawn = [node.choose() for node in nodes]
    assert Counter(drawn) == dict.fromkeys(THREE, 100)
    firsts = {Endpoints(THREE, random.Random(seed), "least-connections").choose() for seed in range(50)}
    assert firsts == set(THREE)


def test_least_connections_fills_up_where_connections_have_ended():
    endpoints = Endpoints(THREE, random.Random(7), "least-connections")
    first, second, third = (endpoints.choose() for _ in range(3))
    endpoints.succeeded()
    endpoints.closed(second.member)
    assert endpoints.choose() is second
    endpoints.failed(third)
    assert endpoints.choose() is third
    assert {first, second, third} == set(THREE)


def test_a_source_has_its_member_whatever_is_drawn_and_sources_are_spread():
    homes = [
        Endpoints(THREE, random.Random(seed), "source-hash", source="system:node:a").choose()
        for seed in range(20)
    ]
    assert len(set(homes)) == 1
    counts = Counter(
        Endpoints(THREE, random.Random(1), "source-hash", source=f"node-{n}").choose() for n in range(3000)
    )
    assert min(counts[member] for member in THREE) > 900


def test_the_sources_of_a_member_that_is_down_are_spread_over_the_others_and_come_back():
    nodes = [Endpoints(THREE, random.Random(1), "source-hash", source=f"node-{n}") for n in range(3000)]
    homes = [node.choose() for node in nodes]
    for node, home in zip(nodes, homes, strict=True):
        if home is THREE[0]:
            node.failed(home)
    seconds = Counter(node.choose() for node, home in zip(nodes, homes, strict=True) if home is THREE[0])
    assert set(seconds) == {THREE[1], THREE[2]}
    assert min(seconds.values()) > 400
    for node in nodes:
        node.succeeded()
    assert [node.choose() for node in nodes] == homes


def test_failures_do_not_move_other_policies():
    endpoints = Endpoints(THREE, random.Random(7), "round-robin")
    first = endpoints.choose()
    endpoints.failed(first)
    assert [endpoints.choose() for _ in range(3)][-1] is first


@pytest.mark.parametrize(
    ("addresses", "policy", "said"), [([], "random", "at least one"), (THREE, "least", "round-robin")]
)
def test_what_cannot_be_used_is_a_config_error(addresses, policy, said):
    with pytest.raises(ConfigError, match=said):
        Endpoints(addresses, random.Random(1), policy)


def test_an_ipv6_address_is_put_in_brackets():
    assert Endpoint("::1", 443, "m").authority == "[::1]:443"
    assert Endpoint("host", 443, "m").authority == "host:443"
