"""The scale subresource, beside what was recorded of deployments."""

from typing import Any

import pytest
from fakemember import Server

MERGE = {"content-type": "application/merge-patch+json"}
SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["c", "b"]}],
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOADS = {
    "deployments": ("/apis/apps/v1/namespaces/ns/deployments", SELECTOR, "a=b,a in (b,c)"),
    "replicasets": ("/apis/apps/v1/namespaces/ns/replicasets", SELECTOR, "a=b,a in (b,c)"),
    "statefulsets": ("/apis/apps/v1/namespaces/ns/statefulsets", SELECTOR, "a=b,a in (b,c)"),
    "replicationcontrollers": ("/api/v1/namespaces/ns/replicationcontrollers", {"a": "b"}, "a=b"),
}


def create(server: Server, resource: str) -> str:
    path, selector, _ = WORKLOADS[resource]
    body = {"metadata": {"name": "x"}, "spec": {"selector": selector, "template": TEMPLATE, "replicas": 2}}
    assert server.ask("POST", path, body).status == 201
    return f"{path}/x"


def scale(replicas: Any, **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", **meta}, "spec": {"replicas": replicas}}


@pytest.mark.parametrize("resource", WORKLOADS)
def test_each_workload_with_replicas_is_scaled_by_put_and_by_patch(server: Server, resource: str) -> None:
    path = create(server, resource)
    shown = server.ask("GET", f"{path}/scale").json
    assert (shown["kind"], shown["apiVersion"], shown["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    assert shown["status"] == {"replicas": 0, "selector": WORKLOADS[resource][2]}
    workload = server.ask("GET", path).json
    for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp"):
        assert shown["metadata"][key] == workload["metadata"][key]

    assert server.ask("PUT", f"{path}/scale", scale(5)).json["spec"] == {"replicas": 5}
    patched = server.ask("PATCH", f"{path}/scale", {"spec": {"replicas": 6}}, headers=MERGE)
    assert (patched.status, patched.json["spec"]) == (200, {"replicas": 6})
    after = server.ask("GET", path).json
    assert after["spec"]["replicas"] == 6
    assert after["metadata"]["generation"] == 3
    assert after["spec"]["template"] == workload["spec"]["template"]


def test_nothing_is_a_number_of_replicas_too(server: Server) -> None:
    path = create(server, "deployments")
    assert server.ask("PUT", f"{path}/scale", scale(0)).json["spec"] == {}
    assert server.ask("GET", path).json["spec"]["replicas"] == 0


def test_a_scale_that_was_read_before_another_change_is_a_conflict(server: Server) -> None:
    path = create(server, "replicasets")
    read = server.ask("GET", f"{path}/scale").json
    server.ask("PATCH", path, {"metadata": {"labels": {"l": "m"}}}, headers=MERGE)
    read["spec"]["replicas"] = 7
    refused = server.ask("PUT", f"{path}/scale", read)
    assert (refused.status, refused.json["reason"]) == (409, "Conflict")
    del read["metadata"]["resourceVersion"]
    assert server.ask("PUT", f"{path}/scale", read).status == 200


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            scale(-1),
            422,
            'Scale.autoscaling "x" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
        ),
        (
            {"metadata": {"name": "y"}, "spec": {}},
            400,
            "the name of the object (y) does not match the name on the URL (x)",
        ),
        (
            {"spec": {}},
            400,
            "the name of the object (x based on URL) was undeterminable: name must be provided",
        ),
    ],
)
def test_what_is_no_scale_of_it_is_refused(server: Server, body: Any, code: int, message: str) -> None:
    path = create(server, "deployments")
    refused = server.ask("PUT", f"{path}/scale", body)
    assert (refused.status, refused.json["message"]) == (code, message)


def test_a_wrong_type_is_the_client_s_fault(server: Server) -> None:
    path = create(server, "deployments")
    assert server.ask("PUT", f"{path}/scale", scale("many")).status == 400
    assert server.ask("PATCH", f"{path}/scale", {"spec": {"replicas": "many"}}, headers=MERGE).status == 400
    assert server.ask("PATCH", f"{path}/scale", {}, headers={"content-type": "text/plain"}).status == 415


def test_what_has_no_replicas_has_no_scale(server: Server) -> None:
    assert server.ask("GET", "/apis/apps/v1/namespaces/ns/daemonsets/x/scale").status == 404
    assert server.ask("GET", "/apis/apps/v1/namespaces/ns/deployments/none/scale").status == 404
    assert server.ask("POST", "/apis/apps/v1/namespaces/ns/deployments/none/scale", {}).status == 405


def test_kubectl_s_table_of_a_scale(server: Server) -> None:
    path = create(server, "deployments")
    table = server.ask(
        "GET", f"{path}/scale", headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    ).json
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Desired",
        "Available",
        "Age",
    ]
    assert table["rows"][0]["cells"][:3] == ["x", 2, 0]


def test_dry_runs_leave_the_workload_alone(server: Server) -> None:
    path = create(server, "deployments")
    assert server.ask("PUT", f"{path}/scale?dryRun=All", scale(9)).json["spec"] == {"replicas": 9}
    assert server.ask("GET", path).json["spec"]["replicas"] == 2
