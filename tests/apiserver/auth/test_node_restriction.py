"""What a node may write about itself, and the words of refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.apiserver.admission.attributes import Attributes, Operation
from harness.apiserver.admission.noderestriction import NodeRestriction
from harness.apiserver.auth.authentication import UserInfo, admin_user
from harness.apiserver.resources import RESOURCES
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
