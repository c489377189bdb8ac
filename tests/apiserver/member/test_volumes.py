"""Claims and volumes through a member: what admission adds and refuses, finalizers, Tables."""

from __future__ import annotations

from typing import Any

import pytest
from fakemember import Server

CLAIMS = "/api/v1/namespaces/ns/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
MERGE = {"content-type": "application/merge-patch+json"}
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
Object = dict[str, Any]


def claim(name: str = "c", **spec: Any) -> Object:
    requests = {"storage": spec.pop("size", "1Gi")}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": requests}, **spec}
    return {"metadata": {"name": name}, "spec": spec}


def storage_class(server: Server, name: str, default: bool = False, **more: Any) -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    body = {"metadata": {"name": name, "annotations": annotations}, "provisioner": "p", **more}
    assert server.ask("POST", CLASSES, body).status == 201


def test_finalizers_hold_what_is_in_use(server: Server) -> None:
    made = server.ask("POST", CLAIMS, claim()).json
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    marked = server.ask("DELETE", f"{CLAIMS}/c")
    assert marked.json["metadata"]["deletionGracePeriodSeconds"] == 0
    assert server.ask("GET", f"{CLAIMS}/c").status == 200
    server.ask("PATCH", f"{CLAIMS}/c", {"metadata": {"finalizers": []}}, headers=MERGE)
    assert server.ask("GET", f"{CLAIMS}/c").status == 404


def test_a_claim_without_a_class_gets_the_default_one(server: Server) -> None:
    assert "storageClassName" not in server.ask("POST", CLAIMS, claim("before")).json["spec"]
    storage_class(server, "plain")
    storage_class(server, "z", default=True)
    server.settle(2)
    storage_class(server, "b", default=True)
    storage_class(server, "a", default=True)
    assert (
        server.ask("POST", CLAIMS, claim()).json["spec"]["storageClassName"] == "a"
    )  # of the newest, by name
    assert (
        server.ask("POST", CLAIMS, claim("none", storageClassName="")).json["spec"]["storageClassName"] == ""
    )
    annotated = claim("beta")
    annotated["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "plain"}
    assert "storageClassName" not in server.ask("POST", CLAIMS, annotated).json["spec"]


def test_a_pool_begins_with_a_default_class_where_it_is_asked_for() -> None:
    server = Server(default_storage_class=True)
    server.settle(1)
    assert (
        server.ask("POST", CLAIMS.replace("/ns/", "/default/"), claim()).json["spec"]["storageClassName"]
        == "standard"
    )


RESIZE = (
    'persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass '
    "that provisions the pvc must support resize"
)


@pytest.mark.parametrize(
    ("expansion", "bound", "status", "message"),
    [
        (True, True, 200, ""),
        (False, True, 403, RESIZE),
        (None, True, 403, RESIZE),
        (
            True,
            False,
            403,
            'persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded',
        ),
    ],
)
def test_a_claim_grows_where_its_class_allows_it(
    server: Server, expansion: bool | None, bound: bool, status: int, message: str
) -> None:
    storage_class(server, "s", **({} if expansion is None else {"allowVolumeExpansion": expansion}))
    server.ask("POST", CLAIMS, claim(storageClassName="s"))
    if bound:
        phase = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
        assert server.ask("PATCH", f"{CLAIMS}/c/status", phase, headers=MERGE).status == 200
    wanted = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    answer = server.ask("PATCH", f"{CLAIMS}/c", wanted, headers=MERGE)
    assert answer.status == status
    assert answer.json.get("message", "") == message


def test_tables(server: Server) -> None:
    storage_class(server, "s", default=True)
    server.ask("POST", CLAIMS, claim(volumeName="v"))
    server.ask(
        "PATCH",
        f"{CLAIMS}/c/status",
        {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}},
        headers=MERGE,
    )
    source = {"csi": {"driver": "d", "volumeHandle": "h"}}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], **source}
    reference = {"namespace": "ns", "name": "c"}
    server.ask("POST", VOLUMES, {"metadata": {"name": "v"}, "spec": {**spec, "claimRef": reference}})
    attachment = {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    server.ask(
        "POST",
        "/apis/storage.k8s.io/v1/volumeattachments",
        {"metadata": {"name": "va"}, "spec": attachment},
    )
    server.settle()
    found = {}
    for path in (CLASSES, CLAIMS, VOLUMES, "/apis/storage.k8s.io/v1/volumeattachments"):
        table = server.ask("GET", path, headers=TABLE).json
        names = [column["name"] for column in table["columnDefinitions"]]
        found[path] = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert found[CLASSES]["Name"] == "s (default)"
    assert found[CLASSES]["AllowVolumeExpansion"] is False
    assert (found[CLAIMS]["Status"], found[CLAIMS]["Capacity"]) == ("Bound", "1Gi")
    assert found[CLAIMS]["VolumeAttributesClass"] == "<unset>"
    assert found[VOLUMES]["Access Modes"] == "RWO,RWX"
    assert found[VOLUMES]["Claim"] == "ns/c"
    assert found["/apis/storage.k8s.io/v1/volumeattachments"]["Attached"] is False
    server.ask("DELETE", f"{CLAIMS}/c")
    server.settle()
    assert server.ask("GET", f"{CLAIMS}/c", headers=TABLE).json["rows"][0]["cells"][1] == "Terminating"
