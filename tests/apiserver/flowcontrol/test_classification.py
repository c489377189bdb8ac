"""Which flow schema, level and hand of queues a request gets."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apiserver.auth.authentication import ANONYMOUS_USER, UserInfo
from harness.apiserver.flowcontrol.bootstrap import FLOW_SCHEMAS, PRIORITY_LEVELS
from harness.apiserver.flowcontrol.classify import deal, hash_flow
from harness.wire.paths import parse_path
from tests.apiserver.flowcontrol.requests import ADMIN, PROVISIONER, SCHEDULER, TENANT, Server, node, user

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l"


@pytest.mark.parametrize(
    ("who", "method", "path", "schema", "level"),
    [
        (ADMIN, "GET", "/api/v1/pods", "exempt", "exempt"),
        (ADMIN, "GET", "/metrics", "exempt", "exempt"),
        (user("someone"), "GET", "/healthz", "probes", "exempt"),
        (ANONYMOUS_USER, "GET", "/readyz/etcd", "probes", "exempt"),
        (ANONYMOUS_USER, "GET", "/version", "global-default", "global-default"),
        (SCHEDULER, "PUT", LEASE, "system-leader-election", "leader-election"),
        (PROVISIONER, "GET", LEASE, "system-leader-election", "leader-election"),
        (PROVISIONER, "PATCH", LEASE, "kube-system-service-accounts", "workload-high"),
        (TENANT, "PUT", LEASE, "service-accounts", "workload-low"),
        (node("n1"), "PUT", LEASE, "system-node-high", "node-high"),
        (node("n1"), "PATCH", "/api/v1/nodes/n1/status", "system-node-high", "node-high"),
        (node("n1"), "GET", "/api/v1/nodes/n1", "system-node-high", "node-high"),
        (node("n1"), "GET", "/api/v1/namespaces/a/secrets/s", "system-nodes", "system"),
        (node("n1"), "POST", "/api/v1/namespaces/a/events", "system-nodes", "system"),
        (node("n1"), "GET", "/version", "system-nodes", "system"),
        (SCHEDULER, "POST", "/api/v1/namespaces/a/pods/p/binding", "kube-scheduler", "workload-high"),
        (
            user("system:kube-controller-manager"),
            "GET",
            "/api/v1/namespaces",
            "kube-controller-manager",
            "workload-high",
        ),
        (user("someone"), "GET", "/api/v1/pods", "global-default", "global-default"),
        (UserInfo("nobody"), "GET", "/api/v1/pods", "catch-all", "catch-all"),
    ],
)
def test_requests_fall_under_the_schema_of_their_user_and_resource(
    who: UserInfo, method: str, path: str, schema: str, level: str
) -> None:
    ticket = Server().ticket(who, parse_path(path, method))
    assert (ticket.schema.name, ticket.level.name) == (schema, level)


def test_a_node_without_its_group_is_no_node() -> None:
    alone = UserInfo("system:node:n1", ("system:authenticated",))
    assert Server().ticket(alone).schema.name == "global-default"


def test_schemas_stand_in_order_of_precedence_and_name_a_level() -> None:
    assert [schema.precedence for schema in FLOW_SCHEMAS] == sorted(
        schema.precedence for schema in FLOW_SCHEMAS
    )
    assert {schema.level for schema in FLOW_SCHEMAS} <= {level.name for level in PRIORITY_LEVELS}


@given(st.integers(0, 2**64 - 1), st.integers(1, 128), st.data())
def test_a_hand_has_different_cards_of_the_deck(value: int, deck: int, data: st.DataObject) -> None:
    hand = deal(value, deck, data.draw(st.integers(1, min(8, deck))))
    assert len(set(hand)) == len(hand)
    assert all(0 <= card < deck for card in hand)


def test_hands_are_dealt_as_upstream_deals_them() -> None:
    """shufflesharding_test.go: remainders 6, 0 and 3 of 128, 127 and 126, each counting only what is left."""
    assert deal(6 + 128 * (0 + 127 * 3), 128, 3) == (6, 0, 4)


def test_every_queue_is_dealt_about_equally_often() -> None:
    dealt = Counter(card for i in range(2000) for card in deal(hash_flow("system-nodes", f"n{i}"), 64, 6))
    assert len(dealt) == 64
    assert max(dealt.values()) < 1.35 * 2000 * 6 / 64
    assert min(dealt.values()) > 0.65 * 2000 * 6 / 64


def test_the_flow_hash_is_the_first_eight_bytes_of_sha256_little_endian() -> None:
    assert hash_flow("a", "b") == int.from_bytes(bytes.fromhex("59b271ae1bbcb1d3"), "little")
