"""What ClusterLoader2 tries again, and what it takes as done."""

from __future__ import annotations

import pytest

from harness.clusterloader.kinds import plural
from harness.clusterloader.objects import clients_for, merge_difference
from harness.clusterloader.retries import judge, wait_s
from harness.wire import status
from harness.wire.request import Failure, Response, TransportError


def answer(refused: status.Status, **headers: str) -> Response:
    return Response(refused.http_status, headers, refused.body())


@pytest.mark.parametrize(
    ("given", "retry", "reason"),
    [
        (answer(status.storage_initializing(1)), True, "TooManyRequests"),
        (Response(429, {"retry-after": "1"}, status.APF_REJECTED), True, "TooManyRequests"),
        (answer(status.internal_error("x")), True, "InternalError"),
        (answer(status.request_timeout()), True, "Timeout"),
        (answer(status.unauthorized()), True, "Unauthorized"),
        (answer(status.unavailable("x")), False, "ServiceUnavailable"),
        (answer(status.shutting_down()), True, "ServiceUnavailable"),
        (Response(503, {"retry-after": "1"}, b"later"), True, "ServiceUnavailable"),
        (answer(status.forbidden("", "pods", "p", "no")), False, "Forbidden"),
        (answer(status.not_found("", "pods", "p")), False, "NotFound"),
        (answer(status.conflict("", "pods", "p")), False, "Conflict"),
        (answer(status.conflict("", "resourcequotas", "q")), True, "Conflict"),
        (answer(status.invalid("", "Pod", "p", [])), False, "Invalid"),
        (Response(500, {}, b"oops"), True, "InternalError"),
        (Response(418, {}, b""), False, "418"),
        (TransportError(Failure.RESET, "EOF"), True, "connection reset"),
        (TransportError(Failure.TIMEOUT, "60 s"), True, "timed out"),
        (TransportError(Failure.LOST, "no answer to PING"), True, "connection lost"),
        (TransportError(Failure.REFUSED, "x"), False, "connection refused"),
        (TransportError(Failure.TLS, "x"), False, "TLS failure"),
    ],
)
def test_errors_are_sorted_as_upstream_sorts_them(
    given: Response | TransportError, retry: bool, reason: str
) -> None:
    verdict = judge(given)
    assert (verdict.done, verdict.retry, verdict.reason) == (False, retry, reason)
    assert verdict.message


def test_what_is_allowed_is_done() -> None:
    exists = answer(status.already_exists("", "pods", "p"))
    gone = answer(status.not_found("", "pods", "p"))
    assert judge(exists, "AlreadyExists").done
    assert judge(Response(409, {}, b"plain"), "AlreadyExists").done
    assert judge(gone, "NotFound").done
    assert not judge(exists, "NotFound").done
    assert not judge(answer(status.conflict("", "pods", "p")), "AlreadyExists").done
    assert judge(Response(201, {}, b"{}")).done


def test_waits_grow_threefold() -> None:
    assert [wait_s(attempt) for attempt in range(1, 6)] == pytest.approx([0.1, 0.3, 0.9, 2.7, 8.1])


@pytest.mark.parametrize(
    ("current", "wanted", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"b": 2}, {"b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3}}),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, {}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        (
            {"metadata": {"uid": "x", "labels": {"l": "1"}}},
            {"metadata": {"labels": {"m": "2"}}},
            {"metadata": {"labels": {"m": "2"}}},
        ),
    ],
)
def test_a_patch_holds_what_differs_and_takes_nothing_away(
    current: dict[str, object], wanted: dict[str, object], patch: dict[str, object]
) -> None:
    assert merge_difference(current, wanted) == patch


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("Pod", "pods"),
        ("ConfigMap", "configmaps"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Endpoints", "endpoints"),
        ("Gateway", "gateways"),
        ("PriorityClass", "priorityclasses"),
        ("StorageClass", "storageclasses"),
        ("ResourceQuota", "resourcequotas"),
        ("Leaf", "leaves"),
    ],
)
def test_a_kinds_resource_is_guessed_as_upstream_guesses_it(kind: str, resource: str) -> None:
    assert plural(kind) == resource


@pytest.mark.parametrize(("nodes", "clients"), [(1, 1), (100, 1), (101, 2), (5000, 50)])
def test_there_is_a_client_for_each_hundred_nodes(nodes: int, clients: int) -> None:
    assert clients_for(nodes) == clients
