"""Values of the wrong type anywhere in a body: a refusal or an object, never a fault of ours, never a broken cache."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from fakemember import Server

POD = {
    "metadata": {
        "name": "x",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "finalizers": ["a.io/b"],
        "ownerReferences": [{"kind": "Node", "name": "n"}],
    },
    "spec": {
        "nodeName": "n",
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "resources": {"limits": {"cpu": "1"}},
                "readinessProbe": {"httpGet": {"port": 80}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "ports": [{"containerPort": 80}],
            }
        ],
        "volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
        "tolerations": [{"operator": "Exists"}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
    },
}
NODE = {
    "metadata": {"name": "x"},
    "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "1"}, "nodeInfo": {}},
}
SERVICE = {
    "metadata": {"name": "x"},
    "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}], "selector": {"a": "b"}},
}
OTHERS = {
    "configmaps": {
        "metadata": {"name": "x"},
        "data": {"k": "v"},
        "binaryData": {"k": "dg=="},
        "immutable": True,
    },
    "secrets": {"metadata": {"name": "x"}, "data": {"k": "dg=="}, "stringData": {"k": "v"}, "type": "t"},
    "serviceaccounts": {"metadata": {"name": "x"}, "secrets": [{"name": "s"}]},
    "events": {
        "metadata": {"name": "x"},
        "involvedObject": {"namespace": "ns"},
        "source": {"component": "c"},
    },
}
BODIES = {"pods": POD, "services": SERVICE, **OTHERS}


def broken(body: Any) -> Iterator[Any]:
    """The body with one part at a time replaced by something else."""
    for path in paths(body):
        for value in (5, "x", [], {}, None, True, [5], {"a": 5}, [None], {"a": None}):
            changed = copy.deepcopy(body)
            place = changed
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = value
            yield changed


def paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in parts:
        yield (*before, key)
        yield from paths(item, (*before, key))


def check(server: Server, collection: str, body: Any) -> None:
    for wrong in broken(body):
        answer = server.send("POST", collection, wrong)
        server.settle(2.0 if not answer.finished else 0)
        assert answer.finished
        if answer.status == 500:  # the one refusal that a real server does not classify
            assert answer.json["message"] == "resourceVersion should not be set on objects to be created"
        if answer.status == 201:
            name = answer.json["metadata"]["name"]
            path = f"{collection}/{name}"
            server.ask("PATCH", path, {"metadata": {"finalizers": None}}, headers=MERGE)
            assert server.ask("DELETE", path, {"gracePeriodSeconds": 0}).status == 200


MERGE = {"content-type": "application/merge-patch+json"}


@pytest.mark.parametrize("resource", BODIES)
def test_a_wrong_type_is_the_client_s_fault(
    server: Server, resource: str, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = f"/api/v1/namespaces/ns/{resource}"
    check(server, collection, BODIES[resource])
    assert server.ask("GET", collection).status == 200
    assert capsys.readouterr().err == ""


def test_nodes_too(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    check(server, "/api/v1/nodes", NODE)
    assert server.ask("GET", "/api/v1/nodes").status == 200
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("path", ["status", ""])
def test_a_patch_cannot_bring_one_in(server: Server, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    pods = "/api/v1/namespaces/ns/pods"
    server.ask(
        "POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    url = f"{pods}/p/{path}".rstrip("/")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "1.2.3.4"}
    for wrong in broken(
        {"metadata": {"labels": {"a": "b"}}, "status": status, "spec": {"tolerations": [{}]}}
    ):
        for kind in ("merge-patch", "strategic-merge-patch"):
            answer = server.ask("PATCH", url, wrong, headers={"content-type": f"application/{kind}+json"})
            assert answer.status in (200, 400, 422) or "strategic" in kind, (wrong, answer.data)
    assert server.ask("GET", f"{pods}?resourceVersion=0").status == 200
    assert "Traceback" not in capsys.readouterr().err


def test_null_is_no_list_and_in_a_list_it_is_an_empty_object(server: Server) -> None:
    pods = "/api/v1/namespaces/ns/pods"
    for containers in (None, [None]):
        for key in ("containers", "initContainers"):
            spec = {"containers": [], key: containers}
            answer = server.ask("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
            field = "spec.containers[0].name" if spec["containers"] else "spec.containers"
            assert (answer.status, answer.json["details"]["causes"][0]["field"]) == (422, field)


def test_nulls_that_a_merge_patch_brings_in_objects_are_dropped(server: Server) -> None:
    server.ask("POST", "/api/v1/nodes", NODE)
    patch = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule", "value": None}]}}
    answer = server.ask("PATCH", "/api/v1/nodes/x", patch, headers=MERGE)
    assert answer.json["spec"]["taints"] == [{"key": "a", "effect": "NoSchedule"}]


def test_an_object_with_the_nulls_that_go_writes_is_not_changed_by_sending_it_back(server: Server) -> None:
    pods = "/api/v1/namespaces/ns/pods"
    server.ask(
        "POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    condition = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    status = {"status": {"phase": "Running", "conditions": [condition]}}
    server.ask("PATCH", f"{pods}/p/status", status, headers=MERGE)
    read = server.ask("GET", f"{pods}/p").json
    assert server.ask("PUT", f"{pods}/p/status", read).json == read
