"""Tables as kubectl asks for them, YAML, and discovery."""

import pytest
from fakemember import Server

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


def table(server: Server, path: str) -> dict:
    answer = server.ask("GET", path, headers=TABLE)
    assert answer.status == 200
    assert answer.json["kind"] == "Table"
    return answer.json


def test_a_node_s_row_shows_readiness_roles_and_version(server: Server) -> None:
    labels = {"node-role.kubernetes.io/control-plane": ""}
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"kubeletVersion": "v1.36.2"},
        "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
    }
    node = {"metadata": {"name": "n1", "labels": labels}, "spec": {"unschedulable": True}, "status": status}
    server.ask("POST", "/api/v1/nodes", node)
    row = table(server, "/api/v1/nodes")["rows"][0]
    assert row["cells"][:3] == ["n1", "Ready,SchedulingDisabled", "control-plane"]
    assert row["cells"][4:6] == ["v1.36.2", "10.1.2.3"]
    assert row["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("status", "shown", "ready"),
    [
        ({"phase": "Pending"}, "Pending", "0/1"),
        (
            {
                "phase": "Pending",
                "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}],
            },
            "ContainerCreating",
            "0/1",
        ),
        (
            {"phase": "Running", "containerStatuses": [{"ready": True, "state": {"running": {}}}]},
            "Running",
            "1/1",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]},
            "ExitCode:3",
            "0/1",
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]},
            "Init:0/0",
            "0/1",
        ),
    ],
)
def test_a_pod_s_row_sums_up_its_containers(server: Server, status: dict, shown: str, ready: str) -> None:
    pods = "/api/v1/namespaces/ns/pods"
    spec = {"containers": [{"name": "c", "image": "pause"}]}
    server.ask("POST", pods, {"metadata": {"name": "p"}, "spec": spec})
    merge = {"content-type": "application/merge-patch+json"}
    server.ask("PATCH", f"{pods}/p/status", {"status": status}, headers=merge)
    assert table(server, pods)["rows"][0]["cells"][1:3] == [ready, shown]


def test_every_resource_has_a_table(server: Server) -> None:
    for endpoint in server.member.router.endpoints.values():
        resource = endpoint.resource
        if not resource.stored:
            continue
        prefix = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
        shown = table(server, f"{prefix}/{resource.resource}")
        width = len(shown["columnDefinitions"])
        assert width >= 2
        assert all(len(row["cells"]) == width for row in shown["rows"])


def test_a_row_carries_what_is_asked_for(server: Server) -> None:
    path = "/api/v1/namespaces/default/services"
    assert "object" not in table(server, f"{path}?includeObject=None")["rows"][0]
    whole = table(server, f"{path}?includeObject=Object")["rows"][0]["object"]
    assert whole["kind"] == "Service"
    cells = table(server, path)["rows"][0]["cells"]
    assert cells[:5] == ["kubernetes", "ClusterIP", "10.0.0.1", "<none>", "443/TCP"]


def test_yaml_in_and_out(server: Server) -> None:
    text = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: m\ndata:\n  k: v\n"
    headers = {"content-type": "application/yaml", "accept": "application/yaml"}
    answer = server.ask("POST", "/api/v1/namespaces/ns/configmaps", text, headers=headers)
    assert answer.status == 201
    assert answer.answer_headers["content-type"] == "application/yaml"
    assert b"data:\n  k: v\n" in answer.data


def test_discovery_lists_every_resource_in_both_forms(server: Server) -> None:
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    aggregated = server.ask("GET", "/api", headers=accept)
    assert aggregated.answer_headers["content-type"] == accept["accept"]
    names = {item["resource"] for item in aggregated.json["items"][0]["versions"][0]["resources"]}
    listed = server.ask("GET", "/api/v1").json["resources"]
    assert names == {item["name"] for item in listed if "/" not in item["name"]}
    pods = next(item for item in listed if item["name"] == "pods")
    assert pods["storageVersionHash"] == "xPOwRZ+Yhw8="
    for group in server.ask("GET", "/apis").json["groups"]:
        for version in group["versions"]:
            assert server.ask("GET", f"/apis/{version['groupVersion']}").status == 200


def test_openapi_says_that_writes_take_field_validation(server: Server) -> None:
    index = server.ask("GET", "/openapi/v3").json["paths"]
    document = server.ask("GET", index["apis/coordination.k8s.io/v1"]["serverRelativeURL"]).json
    patch = document["paths"]["/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "Lease"
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
