"""Removing what runs made: what carries their label, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from harness.client.requests import NAMESPACES, PODS
from harness.fleet.provisioners.rules import FINALIZER
from harness.load.cluster.cleanup import CleanupFailed, Made, find, order, remove
from harness.load.cluster.errands import Errands
from harness.load.labels import RUN_LABEL
from harness.wire.errors import ConfigError
from tests.load.cluster.conftest import Api

CORE = ("namespaces", "nodes", "configmaps", "events")


def discovery(*resources: str, verbs: tuple[str, ...] = ("list", "delete")) -> dict[str, Any]:
    entries = [{"resource": resource, "scope": "Cluster", "verbs": list(verbs)} for resource in resources]
    return {"items": [{"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": entries}]}]}


class Cluster:
    """Objects by collection: (namespace, name, run); the server behind `api`."""

    def __init__(self, api: Api, objects: dict[str, list[tuple[str, str, str]]]) -> None:
        self.objects = objects
        self.delete_code = 200
        self.finalizers: list[str] = []
        api.answer = self.answer

    def answer(self, method: str, path: str, query: str, body: Any) -> tuple[int, Any] | None:
        if path == "/api":
            return 200, discovery(*CORE)
        if path == "/apis":
            return 200, discovery("tokenreviews", verbs=("create",))
        if method == "DELETE":
            return self.delete_code, {"message": "no"}
        found = [
            {
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "uid": f"u-{name}",
                    "labels": {RUN_LABEL: run},
                    "finalizers": self.finalizers,
                }
            }
            for namespace, name, run in self.objects.get(path.removeprefix("/api/v1/"), [])
            if f"run%3D{run}" in query or "%3D" not in query
        ]
        if "continue=2" in query:
            return 200, {"items": found[1:], "metadata": {}}
        if len(found) > 1:
            return 200, {"items": found[:1], "metadata": {"continue": "2"}}
        return 200, {"items": found, "metadata": {}}


OBJECTS = {
    "nodes": [("", "n1", "a"), ("", "n2", "b")],
    "namespaces": [("", "ns", "a")],
    "configmaps": [("ns", "inside", "a"), ("default", "outside", "a")],
}


def test_all_pages_of_all_resources_are_read(api: Api, errands: Errands) -> None:
    Cluster(api, OBJECTS)
    found = find(errands)
    assert found.counts() == {
        ("a", "configmaps"): 2,
        ("a", "namespaces"): 1,
        ("a", "nodes"): 1,
        ("b", "nodes"): 1,
    }
    assert found.passed_over == {}
    assert not any("events" in path for _, path, _, _ in api.asked)


def test_one_run_is_told_from_another(api: Api, errands: Errands) -> None:
    Cluster(api, OBJECTS)
    assert find(errands, "b").counts() == {("b", "nodes"): 1}
    assert find(errands, "c").objects == []


def test_each_is_deleted_by_name_and_uid_namespaces_last(api: Api, errands: Errands) -> None:
    Cluster(api, OBJECTS)
    assert remove(errands, find(errands, "a").objects) == 3
    deletions = api.of("DELETE")
    assert {path for path, _ in deletions[:2]} == {
        "/api/v1/nodes/n1",
        "/api/v1/namespaces/default/configmaps/outside",
    }
    assert deletions[2][0] == "/api/v1/namespaces/ns", "what lies in it goes with it"
    options = deletions[2][1]
    assert options["preconditions"] == {"uid": "u-ns"}
    assert options["propagationPolicy"] == "Background"


def test_a_provisioner_that_has_ended_holds_no_volume_back(api: Api, errands: Errands) -> None:
    cluster = Cluster(api, {"nodes": [("", "n1", "a")]})
    cluster.finalizers = ["kubernetes.io/pv-protection", FINALIZER]
    assert remove(errands, find(errands, "a").objects) == 1
    left = {"metadata": {"uid": "u-n1", "finalizers": ["kubernetes.io/pv-protection"]}}
    assert api.of("PATCH") == [("/api/v1/nodes/n1", left)]
    assert [path for path, _ in api.of("DELETE")] == ["/api/v1/nodes/n1"]


@pytest.mark.parametrize("code", [404, 409])
def test_what_has_gone_or_been_replaced_meanwhile_is_left_alone(
    api: Api, errands: Errands, code: int
) -> None:
    cluster = Cluster(api, OBJECTS)
    objects = find(errands, "b").objects
    cluster.delete_code = code
    assert remove(errands, objects) == 1


def test_what_cannot_be_deleted_is_said_after_all_were_tried(api: Api, errands: Errands) -> None:
    cluster = Cluster(api, OBJECTS)
    objects = find(errands).objects
    cluster.delete_code = 403
    with pytest.raises(CleanupFailed, match=r"4 of 4 objects not deleted: .*HTTP 403: no"):
        remove(errands, objects)
    assert len(api.of("DELETE")) == 4


def test_a_resource_that_may_not_be_listed_is_passed_over(api: Api, errands: Errands) -> None:
    cluster = Cluster(api, OBJECTS)
    plain = cluster.answer

    def answer(method: str, path: str, query: str, body: Any) -> tuple[int, Any] | None:
        return (
            (403, {"message": "forbidden"}) if path.endswith("/nodes") else plain(method, path, query, body)
        )

    api.answer = answer
    found = find(errands)
    assert found.passed_over == {"nodes": "HTTP 403: forbidden"}
    assert len(found.objects) == 3


def test_a_server_without_discovery_is_a_config_error(errands: Errands) -> None:
    with pytest.raises(ConfigError, match="prod: its resources cannot be listed: GET /api: HTTP 404"):
        find(errands)


def test_only_what_is_there_makes_a_wave() -> None:
    pod = Made(PODS, "other", "p", "", "a")
    inside = Made(PODS, "ns", "p", "", "a")
    namespace = Made(NAMESPACES, "", "ns", "", "a")
    assert order([pod]) == [[pod]]
    assert order([namespace, inside]) == [[namespace]]
    assert order([]) == []
