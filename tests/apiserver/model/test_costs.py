"""The cost table: what can be overridden, and what an operation adds up to."""

from __future__ import annotations

from dataclasses import fields

import pytest

from harness.apiserver.model.costs import Costs, operation_cost
from harness.wire.errors import ConfigError

COSTS = Costs()


def test_every_field_is_microseconds() -> None:
    assert all(field.name.endswith("_us") for field in fields(Costs))


def test_given_fields_replace_defaults() -> None:
    costs = Costs.parse({"create_pod_us": 1000, "watch_event_us": 0})
    assert (costs.create_pod_us, costs.watch_event_us, costs.bind_pod_us) == (1000.0, 0.0, 755.0)


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="unknown key 'create_pods_us'; did you mean 'create_pod_us'"):
        Costs.parse({"create_pods_us": 1})


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "1"])
def test_a_value_that_is_no_cost_is_refused(value: float) -> None:
    with pytest.raises(ConfigError, match="bind_pod_us"):
        Costs.parse({"bind_pod_us": value})


@pytest.mark.parametrize(
    ("verb", "resource", "subresource", "expected"),
    [
        ("create", "pods", "", (880, 220)),
        ("create", "pods", "binding", (755, 210)),
        ("patch", "pods", "status", (1310, 255)),
        ("patch", "nodes", "status", (1310, 255)),
        ("create", "events", "", (490, 170)),
        ("patch", "events", "", (490, 170)),
        ("create", "configmaps", "", (600, 180)),
        ("create", "leases", "", (550, 200)),
        ("update", "leases", "", (560, 137)),
        ("create", "serviceaccounts", "token", (700, 254)),
        ("get", "secrets", "", (238, 0)),
        ("watch", "secrets", "", (418, 0)),
        ("", "", "", (200, 0)),
    ],
)
def test_measured_operations_cost_what_was_measured(
    verb: str, resource: str, subresource: str, expected: tuple[float, float]
) -> None:
    assert operation_cost(COSTS, verb, resource, subresource) == expected


def test_consistent_reads_pay_for_the_quorum() -> None:
    assert operation_cost(COSTS, "get", "pods", consistent=True) == (360, 127)
    assert operation_cost(COSTS, "watch", "secrets", consistent=True) == (418, 217)
    assert operation_cost(COSTS, "list", "pods", objects=0, consistent=True) == (358, 127)


def test_lists_and_watch_lists_pay_for_each_object() -> None:
    assert operation_cost(COSTS, "list", "pods", objects=1000) == (273 + 25_000, 0)
    assert operation_cost(COSTS, "list", "pods", objects=1000, protobuf=True) == (273 + 13_000, 0)
    assert operation_cost(COSTS, "list", "pods", objects=500, from_etcd=True) == (358 + 12_000, 127 + 250)
    assert operation_cost(COSTS, "watch", "pods", objects=101) == (418 + 3300, 0)
    assert operation_cost(COSTS, "watch", "pods", objects=1, scanned=150_000)[0] == 418 + 30_000


def test_a_collection_is_deleted_one_by_one() -> None:
    assert operation_cost(COSTS, "deletecollection", "pods", objects=3) == (1680, 600)
