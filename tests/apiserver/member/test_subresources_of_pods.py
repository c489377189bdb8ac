"""pods/ephemeralcontainers, pods/resize and pods/log."""

from typing import Any

import pytest
from fakemember import Server

PODS = "/api/v1/namespaces/ns/pods"
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}
MERGE = {"content-type": "application/merge-patch+json"}


def create(server: Server, *names: str, **resources: Any) -> None:
    containers = [{"name": name, "image": "i:1", "resources": resources} for name in names or ("c",)]
    answer = server.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": containers}})
    assert answer.status == 201, answer.data


def ephemeral(*names: str, image: str = "busybox:1") -> dict[str, Any]:
    return {"spec": {"ephemeralContainers": [{"name": name, "image": image} for name in names]}}


def test_kubectl_debug_adds_a_container_and_nothing_else(server: Server) -> None:
    create(server)
    body = ephemeral("d")
    body["spec"]["activeDeadlineSeconds"] = 5
    body["metadata"] = {"labels": {"l": "m"}}
    answer = server.ask("PATCH", f"{PODS}/p/ephemeralcontainers", body, headers=STRATEGIC)
    assert answer.status == 200, answer.data
    pod = answer.json
    assert pod["spec"]["ephemeralContainers"] == [
        {
            "name": "d",
            "image": "busybox:1",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }
    ]
    assert "activeDeadlineSeconds" not in pod["spec"]
    assert pod["metadata"]["generation"] == 2
    assert server.ask("GET", f"{PODS}/p/ephemeralcontainers").json == pod


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (
            ephemeral("e"),
            'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed',
        ),
        (
            ephemeral("d", image="other"),
            'spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be changed',
        ),
        (
            {
                "spec": {
                    "ephemeralContainers": [{"name": "d", "image": "busybox:1"}, {"name": "c", "image": "i"}]
                }
            },
            'spec.ephemeralContainers[1].name: Duplicate value: "c"',
        ),
    ],
)
def test_what_was_added_stays(server: Server, body: dict[str, Any], fault: str) -> None:
    create(server)
    server.ask("PATCH", f"{PODS}/p/ephemeralcontainers", ephemeral("d"), headers=STRATEGIC)
    refused = server.ask("PATCH", f"{PODS}/p/ephemeralcontainers", body, headers=MERGE)
    assert refused.status == 422
    assert fault in refused.json["message"]


def test_a_plain_update_cannot_add_one(server: Server) -> None:
    create(server)
    assert server.ask("PATCH", f"{PODS}/p", ephemeral("d"), headers=STRATEGIC).status == 422


def resized(**resources: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": "never", "resources": resources}]}}


def test_a_resize_changes_resources_and_not_the_class_of_service(server: Server) -> None:
    create(server, requests={"cpu": "1"})
    pod = server.ask("PATCH", f"{PODS}/p/resize", resized(requests={"cpu": "2"}), headers=STRATEGIC).json
    container = pod["spec"]["containers"][0]
    assert (container["resources"], container["image"]) == ({"requests": {"cpu": "2"}}, "i:1")
    assert pod["metadata"]["generation"] == 2
    figures = {"cpu": "2", "memory": "1Gi"}
    refused = server.ask(
        "PATCH", f"{PODS}/p/resize", resized(requests=figures, limits=figures), headers=STRATEGIC
    )
    assert (refused.status, refused.json["message"]) == (
        422,
        'Pod "p" is invalid: spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
    )
    assert server.ask("PATCH", f"{PODS}/p", resized(requests={"cpu": "3"}), headers=STRATEGIC).status == 422


def test_a_pod_that_is_nowhere_has_an_empty_log(server: Server) -> None:
    create(server)
    log = server.ask("GET", f"{PODS}/p/log")
    assert (log.status, log.data, log.answer_headers["content-type"]) == (200, b"", "text/plain")


def test_a_log_on_a_node_cannot_be_fetched(server: Server) -> None:
    create(server)
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    server.ask("POST", f"{PODS}/p/binding", target)
    refused = server.ask("GET", f"{PODS}/p/log?container=c")
    assert refused.status == 500
    assert "reason" not in refused.json
    assert refused.json["message"] == (
        'Get "https://n1:10250/containerLogs/ns/p/c": dial tcp n1:10250: connect: connection refused'
    )
    followed = server.ask("GET", f"{PODS}/p/log?follow=true&previous=false&tailLines=5")
    assert 'containerLogs/ns/p/c?follow=true&tailLines=5"' in followed.json["message"]


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
def test_nobody_can_be_connected_to_a_pod(server: Server, subresource: str) -> None:
    create(server)
    path = f"{PODS}/p/{subresource}"
    nowhere = server.ask("POST", path)
    assert (nowhere.status, nowhere.json["message"]) == (400, "pod p does not have a host assigned")
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    server.ask("POST", f"{PODS}/p/binding", target)
    assert server.ask("POST", path).json["message"] == "Upgrade request required"
    upgrade = {"upgrade": "websocket"}
    for method in ("GET", "POST"):
        refused = server.ask(method, path, headers=upgrade)
        why = "error dialing backend: dial tcp n1:10250: connect: connection refused"
        assert (refused.status, refused.json["message"]) == (500, why)
    missing = server.ask("POST", f"{PODS}/none/{subresource}", headers=upgrade)
    assert (missing.status, missing.json["message"]) == (404, 'pods "none" not found')
    assert server.ask("DELETE", path).status == 405


def test_a_command_needs_a_container_of_the_pod(server: Server) -> None:
    create(server, "a", "b")
    assert (
        server.ask("POST", f"{PODS}/p/exec").json["message"].startswith("a container name must be specified")
    )
    assert server.ask("POST", f"{PODS}/p/exec?container=z").status == 400


def test_the_container_must_be_one_of_the_pod_s(server: Server) -> None:
    create(server, "a", "b")
    assert server.ask("GET", f"{PODS}/p/log").json["message"] == (
        "a container name must be specified for pod p, choose one of: [a b]"
    )
    wrong = server.ask("GET", f"{PODS}/p/log?container=z")
    assert (wrong.status, wrong.json["message"]) == (400, "container z is not valid for pod p")
    assert server.ask("GET", f"{PODS}/none/log").status == 404
    assert server.ask("POST", f"{PODS}/p/log", {}).status == 405


def test_ports_of_pods_on_the_host_s_network_are_the_host_s(server: Server) -> None:
    spec = {
        "hostNetwork": True,
        "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}],
    }
    pod = server.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}).json
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
