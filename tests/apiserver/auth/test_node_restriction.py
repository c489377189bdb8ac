"""What a node may write about itself, and the words of refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.apiserver.admission.attributes import Attributes, Operation
from harness.apiserver.admission.nodeaudience import AudienceCheck
from harness.apiserver.admission.noderestriction import NodeRestriction
from harness.apiserver.auth.authentication import UserInfo, admin_user
from harness.apiserver.resources import RESOURCES
from harness.wire.paths import RequestInfo
from harness.wire.status import StatusError
from tests.apiserver.auth.pods import pod, secret_volume

N1 = UserInfo("system:node:n1", ("system:nodes", "system:authenticated"))
CREATE, UPDATE, DELETE = Operation
KNOWN = {("na", "mine"): pod("mine", "n1"), ("na", "theirs"): pod("theirs", "n2"), ("na", "new"): pod("new")}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid", "controller": True}
RESTRICTION = NodeRestriction(
    lambda namespace, name: KNOWN.get((namespace, name)),
    lambda name: b'{"metadata":{"name":"n1","uid":"node-uid"}}' if name == "n1" else None,
)


def refusal(
    operation: Operation, resource: str, name: str = "", user: UserInfo = N1, **more: Any
) -> str | None:
    """What follows "is forbidden: "; None if it is admitted."""
    found = next(row for row in RESOURCES if row.resource == resource)
    attributes = Attributes(
        operation,
        found,
        more.get("subresource", ""),
        more.get("namespace", "na" if found.namespaced else ""),
        name,
        user,
        more.get("new"),
        more.get("old"),
    )
    try:
        RESTRICTION(attributes)
    except StatusError as error:
        return error.status.message.partition(" is forbidden: ")[2] or error.status.message
    return None


def obj(name: str, labels: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, **more}


def mirror(owners: list[dict[str, Any]] | None = None, node: str = "n1", **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(pod("m", node, mirror=True, **spec))
    body["metadata"]["ownerReferences"] = [OWNER] if owners is None else owners
    return body


def test_others_than_nodes_are_not_looked_at() -> None:
    assert refusal(DELETE, "pods", "theirs", admin_user()) is None
    assert refusal(DELETE, "nodes", "n2", UserInfo("system:node:n1", ("system:authenticated",))) is None


def test_a_node_without_a_name_may_write_nothing() -> None:
    nameless = UserInfo("system:node:", ("system:nodes",))
    assert refusal(CREATE, "events", "e", nameless) == 'could not determine node from user "system:node:"'


@pytest.mark.parametrize(("name", "allowed"), [("mine", True), ("theirs", False), ("new", False)])
def test_a_node_deletes_and_evicts_its_own_pods(name: str, allowed: bool) -> None:
    deleting = 'node "n1" can only delete pods with spec.nodeName set to itself'
    evicting = "node n1 can only evict pods with spec.nodeName set to itself"
    assert refusal(DELETE, "pods", name) == (None if allowed else deleting)
    assert refusal(CREATE, "pods", name, subresource="eviction", new={}) == (None if allowed else evicting)


def test_a_pod_that_is_not_there_is_not_found() -> None:
    assert refusal(DELETE, "pods", "gone") == 'pod "gone" not found'


def test_a_node_reports_the_status_of_its_own_pods_and_no_labels() -> None:
    mine, theirs = obj("p", spec={"nodeName": "n1"}), obj("p", spec={"nodeName": "n2"})
    relabelled = obj("p", {"a": "b"}, spec={"nodeName": "n1"})
    status = {"subresource": "status"}
    assert refusal(UPDATE, "pods", "p", old=mine, new=mine, **status) is None
    assert refusal(UPDATE, "pods", "p", old=theirs, new=mine, **status) == (
        'node "n1" can only update pod status for pods with spec.nodeName set to itself'
    )
    assert refusal(UPDATE, "pods", "p", old=mine, new=relabelled, **status) == (
        'node "n1" cannot update labels through pod status'
    )


def test_pods_are_not_updated_by_nodes() -> None:
    assert refusal(UPDATE, "pods", "mine", old={}, new={}) == (
        'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods'
    )
    assert refusal(CREATE, "pods", "mine", subresource="binding", new={}) == (
        "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed"
    )


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (mirror(), None),
        (
            {"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}},
            'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
        ),
        (mirror(node="n2"), 'node "n1" can only create pods with spec.nodeName set to itself'),
        (mirror([]), 'node "n1" can only create pods with an owner reference set to itself'),
        (
            mirror([OWNER, OWNER]),
            'node "n1" can only create pods with a single owner reference set to itself',
        ),
        (
            mirror([{**OWNER, "name": "n2"}]),
            'node "n1" can only create pods with an owner reference set to itself',
        ),
        (
            mirror([{**OWNER, "controller": False}]),
            'node "n1" can only create pods with a controller owner reference set to itself',
        ),
        (
            mirror([{**OWNER, "blockOwnerDeletion": True}]),
            'node "n1" must not set blockOwnerDeletion on an owner reference',
        ),
        (mirror([{**OWNER, "uid": "x"}]), "node n1 UID mismatch: expected x got node-uid"),
        (mirror(serviceAccountName="a"), 'node "n1" can not create pods that reference a service account'),
        (mirror(volumes=[secret_volume("s")]), 'node "n1" can not create pods that reference secrets'),
        (
            mirror(volumes=[{"name": "v", "configMap": {"name": "c"}}]),
            'node "n1" can not create pods that reference configmaps',
        ),
        (
            mirror(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            'node "n1" can not create pods that reference persistentvolumeclaims',
        ),
    ],
)
def test_a_node_creates_only_mirror_pods_of_its_own(new: dict[str, Any], expected: str | None) -> None:
    assert refusal(CREATE, "pods", new=new) == expected


def test_a_node_writes_only_its_own_node() -> None:
    assert refusal(CREATE, "nodes", new=obj("n1")) is None
    assert refusal(CREATE, "nodes", new=obj("n3")) == 'node "n1" is not allowed to modify node "n3"'
    assert refusal(UPDATE, "nodes", "n2", subresource="status", old=obj("n2"), new=obj("n2")) == (
        'node "n1" is not allowed to modify node "n2"'
    )
    assert refusal(DELETE, "nodes", "n2") == 'node "n1" is not allowed to modify node "n2"'


def test_a_node_leaves_its_taints_alone() -> None:
    old, new = obj("n1", spec={"taints": [{"key": "a"}]}), obj("n1", spec={})
    assert refusal(UPDATE, "nodes", "n1", old=old, new=new) == 'node "n1" is not allowed to modify taints'
    assert refusal(UPDATE, "nodes", "n1", subresource="status", old=old, new=old) is None


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("kubernetes.io/hostname", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/anything", True),
        ("x.kubelet.kubernetes.io/anything", True),
        ("example.com/anything", True),
        ("plain", True),
        ("node-role.kubernetes.io/control-plane", False),
        ("kubernetes.io/other", False),
        ("k8s.io/other", False),
        ("x.node-restriction.kubernetes.io/y", False),
        ("node-restriction.kubernetes.io/y", False),
    ],
)
def test_labels_that_a_node_may_set_on_itself(label: str, allowed: bool) -> None:
    labelled, plain = obj("n1", {label: "v"}), obj("n1")
    setting = f'node "n1" is not allowed to set the following labels: {label}'
    assert refusal(CREATE, "nodes", new=labelled) == (None if allowed else setting)
    changing = f"is not allowed to modify labels: {label}"
    for old, new in ((plain, labelled), (labelled, plain)):
        assert refusal(UPDATE, "nodes", "n1", old=old, new=new) == (None if allowed else changing)
    assert refusal(UPDATE, "nodes", "n1", old=labelled, new=labelled) is None


def test_leases_and_csinodes_bear_the_nodes_name() -> None:
    lease = "can only access node lease with the same name as the requesting node"
    namespace = "kube-node-lease"
    assert refusal(CREATE, "leases", new=obj("n1"), namespace=namespace) is None
    assert refusal(CREATE, "leases", new=obj("n2"), namespace=namespace) == lease
    assert refusal(UPDATE, "leases", "n2", namespace=namespace, old=obj("n2"), new=obj("n2")) == lease
    assert refusal(CREATE, "leases", new=obj("n1"), namespace="default") == (
        'can only access leases in the "kube-node-lease" system namespace'
    )
    assert refusal(CREATE, "csinodes", new=obj("n1")) is None
    assert refusal(CREATE, "csinodes", new=obj("n2")) == (
        "can only access CSINode with the same name as the requesting node"
    )


def reference(**changes: str) -> dict[str, Any]:
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "uid-na-mine"} | changes
    return {"spec": {"boundObjectRef": {key: value for key, value in ref.items() if value}}}


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        (reference(), None),
        ({"spec": {}}, "node requested token not bound to a pod"),
        (reference(kind="Secret"), "node requested token not bound to a pod"),
        (reference(uid=""), "node requested token with a pod binding without a uid"),
        (reference(name="nosuch", uid="x"), 'pod "nosuch" not found'),
        (
            reference(uid="other"),
            (
                "the UID in the bound object reference (other) does not match the UID in record. The object might have "
                "been deleted and then recreated"
            ),
        ),
        (
            reference(name="theirs", uid="uid-na-theirs"),
            "node requested token bound to a pod scheduled on a different node",
        ),
    ],
)
def test_tokens_are_bound_to_pods_on_the_node(request_body: dict[str, Any], expected: str | None) -> None:
    assert refusal(CREATE, "serviceaccounts", "default", subresource="token", new=request_body) == expected


def test_events_are_free() -> None:
    assert refusal(CREATE, "events", new=obj("e")) is None


def test_a_node_reports_a_claim_s_size_and_nothing_else_of_it() -> None:
    old = {
        "metadata": {"name": "c", "namespace": "na", "finalizers": ["f"], "resourceVersion": "1"},
        "spec": {"volumeName": "v"},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
    }
    grown = {
        **old,
        "metadata": {**old["metadata"], "resourceVersion": "", "managedFields": [{}]},
        "status": {
            "phase": "Bound",
            "capacity": {"storage": "2Gi"},
            "conditions": [{"type": "FileSystemResizePending"}],
            "allocatedResources": {"storage": "2Gi"},
            "allocatedResourceStatuses": {"storage": "NodeResizePending"},
        },
    }

    def status(new: dict[str, Any], operation: Operation = UPDATE) -> str | None:
        more = {"subresource": "status", "new": new, "old": old}
        return refusal(operation, "persistentvolumeclaims", "c", **more)

    assert status(grown) is None
    only = 'node "n1" is not allowed to update fields other than status.capacity and status.conditions'
    assert status({**grown, "status": {"phase": "Lost"}}) == only
    assert status({**grown, "metadata": {**old["metadata"], "labels": {"a": "b"}}}) == only
    assert status({**grown, "spec": {}}) == only
    assert status(grown, CREATE) == 'unexpected operation "CREATE"'
    assert refusal(UPDATE, "persistentvolumeclaims", "c", new=grown, old=old) == "may only update PVC status"
    assert refusal(DELETE, "persistentvolumeclaims", "c") == "may only update PVC status"


def test_a_node_does_not_say_where_its_configuration_is() -> None:
    source = {"configMap": {"name": "c"}}
    refused = 'node "n1" is not allowed to create pods with a non-nil configSource'
    assert refusal(CREATE, "nodes", "n1", new=obj("n1", spec={"configSource": source})) == refused
    refused = 'node "n1" is not allowed to update configSource to a new non-nil configSource'
    new, old = obj("n1", spec={"configSource": source}), obj("n1", spec={})
    assert refusal(UPDATE, "nodes", "n1", new=new, old=old) == refused
    assert refusal(UPDATE, "nodes", "n1", new=new, old=new) is None
    assert refusal(UPDATE, "nodes", "n1", new=old, old=new) is None


def test_a_node_does_not_change_a_pod_s_resource_claims() -> None:
    old = obj("mine", spec={"nodeName": "n1"}, status={"resourceClaimStatuses": [{"name": "c"}]})
    new = obj(
        "mine",
        spec={"nodeName": "n1"},
        status={"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "d"}]},
    )
    refused = 'node "n1" cannot update resource claim statues'
    assert refusal(UPDATE, "pods", "mine", subresource="status", new=new, old=old) == refused
    assert refusal(UPDATE, "pods", "mine", subresource="status", new=old, old=old) is None


def test_a_mirror_pod_trusts_no_bundle() -> None:
    bundle = {"name": "b", "projected": {"sources": [{"clusterTrustBundle": {"path": "x"}}]}}
    refused = 'node "n1" can not create pods that reference clustertrustbundles'
    assert refusal(CREATE, "pods", new=mirror(volumes=[bundle])) == refused


# ---- audiences of tokens -------------------------------------------------------------------------------------------
def with_volumes(*volumes: dict[str, Any]) -> bytes:
    return pod("p", "n1", volumes=list(volumes))


def projected(audience: str = "") -> dict[str, Any]:
    token = {"path": "token", **({"audience": audience} if audience else {})}
    return {"name": "t", "projected": {"sources": [{"serviceAccountToken": token}]}}


OBJECTS = {
    ("csidrivers.storage.k8s.io", "", "d"): {"spec": {"tokenRequests": [{"audience": "disk"}]}},
    ("persistentvolumeclaims", "na", "c"): {"spec": {"volumeName": "v"}},
    ("persistentvolumeclaims", "na", "p-e"): {"spec": {"volumeName": "v"}},
    ("persistentvolumeclaims", "na", "unbound"): {"spec": {}},
    ("persistentvolumeclaims", "na", "lost"): {"spec": {"volumeName": "gone"}},
    ("persistentvolumes", "", "v"): {"spec": {"csi": {"driver": "d"}}},
}


def lookup(kind: str, namespace: str, name: str) -> bytes | None:
    found = OBJECTS.get((kind, namespace, name))
    return None if found is None else msgspec.json.encode({"metadata": {"name": name}, **found})


def may(user: UserInfo, info: RequestInfo) -> bool:
    asked = (info.verb, info.namespace, info.resource, info.name)
    return asked == ("request-serviceaccounts-token-audience", "na", "granted", "sa")


CSI = {"name": "v", "csi": {"driver": "d"}}
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
EPHEMERAL = {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}}


def stranger(audience: str) -> str:
    not_found = f'audience "{audience}" not found in pod spec volume'
    return f"{not_found}, system:node:n1 is not authorized to request tokens for this audience"


@pytest.mark.parametrize(
    ("volumes", "audiences", "wanted"),
    [
        ([projected()], [], None),
        ([projected("vault")], ["vault"], None),
        ([projected(), projected("vault")], ["vault"], None),
        ([projected()], ["vault"], stranger("vault")),
        ([], [], stranger("")),
        ([], ["granted"], None),
        ([projected("a")], ["a", "b"], "node may only request 0 or 1 audiences"),
        ([CSI], ["disk"], None),
        ([CSI], ["vault"], stranger("vault")),
        ([CLAIM], ["disk"], None),
        ([EPHEMERAL], ["disk"], None),
        ([{"name": "h", "hostPath": {"path": "/"}}], ["disk"], stranger("disk")),
        ([{"name": "v", "persistentVolumeClaim": {"claimName": "unbound"}}], ["disk"], stranger("disk")),
        (
            [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}],
            ["disk"],
            'error validating audience "disk": persistentvolumeclaim "none" not found',
        ),
        (
            [{"name": "v", "persistentVolumeClaim": {"claimName": "lost"}}],
            ["disk"],
            'error validating audience "disk": persistentvolume "gone" not found',
        ),
        (
            [{"name": "v", "csi": {"driver": "none"}}],
            ["disk"],
            'error validating audience "disk": csidriver.storage.k8s.io "none" not found',
        ),
        ([{"name": "v", "csi": {"driver": "none"}}, CSI], ["disk"], None),
    ],
)
def test_a_node_asks_for_tokens_that_its_pod_s_volumes_need(
    volumes: list[dict[str, Any]], audiences: list[str], wanted: str | None
) -> None:
    body = with_volumes(*volumes)
    uid = msgspec.json.decode(body)["metadata"]["uid"]
    restriction = NodeRestriction(lambda namespace, name: body, lambda name: None, AudienceCheck(lookup, may))
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}
    accounts = next(row for row in RESOURCES if row.resource == "serviceaccounts")
    new = {"spec": {"audiences": audiences, "boundObjectRef": reference}}
    attributes = Attributes(CREATE, accounts, "token", "na", "sa", N1, new)
    if wanted is None:
        restriction(attributes)
        return
    with pytest.raises(StatusError) as refused:
        restriction(attributes)
    assert refused.value.status.message == f'serviceaccounts "sa" is forbidden: {wanted}'
