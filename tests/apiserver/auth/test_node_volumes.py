"""Volumes, attachments, slices and resource claims in the graph, and what a node may do with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.apiserver.auth.nodeinformer import ATTACHMENTS, PODS, SLICES, VOLUMES
from harness.apiserver.auth.nodereferences import (
    Vertex,
    decode_pod,
    decode_volume,
    references,
    volume_claim,
    volume_secrets,
)
from tests.apiserver.auth.pods import pod
from tests.apiserver.auth.test_node_authorizer import N2, NO_PATH, Setup

CLAIM = {"namespace": "na", "name": "c1"}
VOLUME = "/api/v1/persistentvolumes/v1"
CLAIM_PATH = "/api/v1/namespaces/na/persistentvolumeclaims/c1"
ATTACHMENT = "/apis/storage.k8s.io/v1/volumeattachments/a1"
SLICES_PATH = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/na/resourceclaims"


def volume(source: dict[str, Any], claim: dict[str, str] | None = CLAIM, name: str = "v1") -> bytes:
    spec = dict(source) if claim is None else {**source, "claimRef": claim}
    return json.dumps({"metadata": {"name": name}, "spec": spec}).encode()


def of_node(name: str, node: str | None) -> bytes:
    return json.dumps(
        {"metadata": {"name": name}, "spec": {} if node is None else {"nodeName": node}}
    ).encode()


def secret(name: str, namespace: str = "na") -> tuple[Vertex, str, str]:
    return (Vertex.SECRET, namespace, name)


@pytest.mark.parametrize(
    ("source", "secrets"),
    [
        ({"azureFile": {"secretName": "s"}}, {secret("s")}),
        ({"azureFile": {"secretName": "s", "secretNamespace": "x"}}, {secret("s", "x")}),
        ({"cephfs": {"secretRef": {"name": "s"}}}, {secret("s")}),
        ({"cephfs": {"secretRef": {"name": "s", "namespace": "x"}}}, {secret("s", "x")}),
        ({"cephfs": {}}, set()),
        ({"cinder": {"secretRef": {"name": "s", "namespace": "x"}}}, {secret("s", "x")}),
        ({"flexVolume": {"secretRef": {"name": "s"}}}, {secret("s")}),
        ({"rbd": {"secretRef": {"name": "s"}}}, {secret("s")}),
        ({"scaleIO": {"secretRef": {"name": "s"}}}, {secret("s")}),
        ({"iscsi": {"secretRef": {"name": "s"}}}, {secret("s")}),
        ({"storageos": {"secretRef": {"name": "s", "namespace": "x"}}}, {secret("s", "x")}),
        ({"storageos": {}}, set()),
        (
            {
                "csi": {
                    "nodePublishSecretRef": {"name": "a", "namespace": "x"},
                    "nodeStageSecretRef": {"name": "b", "namespace": "x"},
                    "nodeExpandSecretRef": {"name": "c", "namespace": "x"},
                    "controllerPublishSecretRef": {"name": "d", "namespace": "x"},
                    "controllerExpandSecretRef": {"name": "e", "namespace": "x"},
                }
            },
            {secret("a", "x"), secret("b", "x"), secret("c", "x")},
        ),
        ({"hostPath": {"path": "/"}}, set()),
    ],
)
def test_a_volume_s_secrets_are_those_that_a_kubelet_reads(
    source: dict[str, Any], secrets: set[tuple[Vertex, str, str]]
) -> None:
    found = decode_volume(volume(source))
    assert volume_secrets(found) == secrets
    assert volume_claim(found) == (Vertex.CLAIM, "na", "c1")


def test_an_unbound_volume_is_of_no_claim() -> None:
    assert volume_claim(decode_volume(volume({}, None))) is None


CSI = {"csi": {"nodePublishSecretRef": {"name": "mount", "namespace": "na"}}}
USES_CLAIM = [{"name": "d", "persistentVolumeClaim": {"claimName": "c1"}}]
MOUNT_SECRET = "/api/v1/namespaces/na/secrets/mount"


def hear(setup: Setup, resource: str, kind: str, body: bytes) -> None:
    informer = setup.node.informer
    handlers = {
        PODS: informer.on_pod,
        VOLUMES: informer.on_volume,
        ATTACHMENTS: informer.on_attachment,
        SLICES: informer.on_slice,
    }
    handlers[resource](kind, body)
    setup.clock.advance(0)
    setup.node.graph.validate()


@pytest.mark.parametrize("pod_first", [True, False])
def test_a_node_reads_the_volume_of_its_pods_claim_and_the_secret_that_mounts_it(pod_first: bool) -> None:
    setup = Setup()
    steps = [(PODS, pod("p1", "n1", volumes=USES_CLAIM)), (VOLUMES, volume(CSI))]
    for resource, body in steps if pod_first else reversed(steps):
        hear(setup, resource, "ADDED", body)
    for path in (CLAIM_PATH, VOLUME, MOUNT_SECRET):
        assert setup.reason(path) is None
        assert setup.reason(path, user=N2) == NO_PATH.replace("n1", "n2")
    hear(setup, VOLUMES, "MODIFIED", volume({}))  # another way to mount it
    assert setup.reason(MOUNT_SECRET) == NO_PATH
    assert setup.reason(VOLUME) is None
    hear(setup, VOLUMES, "MODIFIED", volume(CSI, None))  # released
    assert setup.reason(VOLUME) == NO_PATH
    assert setup.reason(CLAIM_PATH) is None
    hear(setup, VOLUMES, "MODIFIED", volume(CSI))
    hear(setup, VOLUMES, "DELETED", volume(CSI))
    assert setup.reason(VOLUME) == NO_PATH
    hear(setup, VOLUMES, "ADDED", volume(CSI))
    hear(setup, PODS, "DELETED", pod("p1", "n1", volumes=USES_CLAIM))
    for path in (CLAIM_PATH, VOLUME, MOUNT_SECRET):
        assert setup.reason(path) == NO_PATH


def test_two_volumes_may_be_mounted_with_one_secret() -> None:
    setup = Setup()
    hear(setup, PODS, "ADDED", pod("p1", "n1", volumes=USES_CLAIM))
    hear(setup, VOLUMES, "ADDED", volume(CSI))
    hear(setup, VOLUMES, "ADDED", volume(CSI, {"namespace": "na", "name": "other"}, "v2"))
    assert setup.reason(MOUNT_SECRET) is None
    hear(setup, VOLUMES, "DELETED", volume(CSI))
    assert setup.reason(MOUNT_SECRET) == NO_PATH


def test_an_attachment_is_of_the_node_that_it_names() -> None:
    setup = Setup()
    hear(setup, ATTACHMENTS, "ADDED", of_node("a1", "n1"))
    assert setup.reason(ATTACHMENT) is None
    assert setup.reason(ATTACHMENT, user=N2) == NO_PATH.replace("n1", "n2")
    assert setup.reason(ATTACHMENT, "DELETE") == "can only get individual resources of this type"
    assert setup.reason(f"{ATTACHMENT}/status") == "cannot get subresource"
    hear(setup, ATTACHMENTS, "DELETED", of_node("a1", "n1"))
    assert setup.reason(ATTACHMENT) == NO_PATH


def test_a_slice_is_of_the_node_that_it_names_and_of_none_where_it_names_none() -> None:
    setup = Setup()
    hear(setup, SLICES, "ADDED", of_node("s1", "n1"))
    hear(setup, SLICES, "ADDED", of_node("s2", None))
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        assert setup.reason(f"{SLICES_PATH}/s1", method) is None
        assert setup.reason(f"{SLICES_PATH}/s2", method) == NO_PATH
    assert setup.reason(SLICES_PATH, "POST") is None
    only = "can only list/watch/deletecollection resourceslices with nodeName field selector"
    assert setup.reason(SLICES_PATH) == only
    assert setup.reason(f"{SLICES_PATH}?fieldSelector=nodeName%3Dn2") == only
    assert setup.reason(f"{SLICES_PATH}?watch=1&fieldSelector=nodeName%3Dn1") is None
    assert setup.reason(f"{SLICES_PATH}?fieldSelector=spec.driver%3Dd,nodeName%3D%3Dn1", "DELETE") is None
    assert setup.reason(f"{SLICES_PATH}/s1/status") == "cannot authorize ResourceSlice subresources"


CLAIMED = [
    {"name": "own", "resourceClaimName": "rc1"},
    {"name": "made", "resourceClaimTemplateName": "t"},
    {"name": "not-needed", "resourceClaimTemplateName": "t"},
]


def claiming_pod(statuses: list[dict[str, str]], extended: str = "") -> bytes:
    body = json.loads(pod("p1", "n1", resourceClaims=CLAIMED))
    body["status"] = {"resourceClaimStatuses": statuses}
    if extended:
        body["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": extended}
    return json.dumps(body).encode()


def test_a_pod_s_resource_claims_are_those_it_names_and_those_made_for_it() -> None:
    made = [{"name": "made", "resourceClaimName": "p1-made-x"}, {"name": "not-needed"}]
    kinds = {
        name
        for kind, _, name in references(decode_pod(claiming_pod(made, "ext")))
        if kind is Vertex.RESOURCE_CLAIM
    }
    assert kinds == {"rc1", "p1-made-x", "ext"}


def test_a_claim_made_after_the_binding_reaches_the_graph_with_the_pod_s_status() -> None:
    setup = Setup()
    hear(setup, PODS, "ADDED", claiming_pod([]))
    assert setup.reason(f"{CLAIMS}/rc1") is None
    assert setup.reason(f"{CLAIMS}/p1-made-x") == NO_PATH
    hear(setup, PODS, "MODIFIED", claiming_pod([{"name": "made", "resourceClaimName": "p1-made-x"}]))
    assert setup.reason(f"{CLAIMS}/p1-made-x") is None
    assert setup.reason(f"{CLAIMS}/rc1", user=N2) == NO_PATH.replace("n1", "n2")
    assert setup.reason(CLAIMS) == "can only get individual resources of this type"


def test_an_ephemeral_container_s_secrets_reach_the_graph_when_it_is_added() -> None:
    setup = Setup()
    env = [{"name": "e", "valueFrom": {"secretKeyRef": {"name": "late", "key": "k"}}}]
    hear(setup, PODS, "ADDED", pod("p1", "n1"))
    hear(setup, PODS, "MODIFIED", pod("p1", "n1", ephemeralContainers=[{"name": "d", "env": env}]))
    assert setup.reason("/api/v1/namespaces/na/secrets/late") is None


def test_nothing_is_done_again_for_a_pod_whose_claims_have_not_changed() -> None:
    setup = Setup()
    hear(setup, PODS, "ADDED", claiming_pod([]))
    actions = setup.metrics.node_authorizer_graph_actions_duration_seconds.labels("AddPod")
    for _ in range(3):
        hear(setup, PODS, "MODIFIED", claiming_pod([]))
    assert actions.count == 1


def test_endpoints_may_be_read_one_by_one() -> None:
    setup = Setup()
    assert setup.reason("/api/v1/namespaces/na/endpoints/e") is None
    assert setup.reason("/api/v1/namespaces/na/endpoints") == ""
    assert setup.reason(f"{VOLUME}/status") == "cannot get subresource"
    assert setup.reason("/api/v1/persistentvolumes") == "can only get individual resources of this type"
    assert setup.reason(f"{CLAIM_PATH}/status") == "can only get/update/patch this type"
    assert setup.reason(f"{CLAIM_PATH}/status", "PATCH") == NO_PATH


def test_a_mirror_pod_gives_access_to_itself_alone() -> None:
    setup = Setup()
    body = json.loads(pod("p1", "n1", volumes=USES_CLAIM, resourceClaims=CLAIMED))
    body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    hear(setup, PODS, "ADDED", json.dumps(body).encode())
    assert setup.reason("/api/v1/namespaces/na/pods/p1") is None
    assert setup.reason(CLAIM_PATH) == NO_PATH
    assert setup.reason(f"{CLAIMS}/rc1") == NO_PATH
