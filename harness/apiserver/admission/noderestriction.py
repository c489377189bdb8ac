"""NodeRestriction: what a node may write about itself, where the authorizer cannot see the object.

kubernetes v1.36 plugin/pkg/admission/noderestriction/admission.go:95-760; allowed labels:
staging/src/k8s.io/kubelet/pkg/apis/well_known_labels.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from harness.apiserver.admission.attributes import Attributes, Operation
from harness.apiserver.admission.nodeaudience import AudienceCheck
from harness.apiserver.apierrors import forbidden
from harness.apiserver.auth.authentication import NODE_PREFIX, NODES
from harness.apiserver.auth.nodeauthorizer import LEASE_NAMESPACE
from harness.apiserver.auth.nodereferences import MIRROR, decode_pod, references
from harness.wire import status
from harness.wire.gotext import quote
from harness.wire.status import StatusError

Object = dict[str, Any]

_RESTRICTED = "node-restriction.kubernetes.io"
_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.kubernetes.io/region",
        "failure-domain.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)
_OWN_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_SIZES = frozenset({"capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"})
_IGNORED = frozenset({"resourceVersion", "managedFields"})


class _Metadata(msgspec.Struct):
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_any = msgspec.json.Decoder().decode


class NodeRestriction:
    """Call it with each write; returns for whoever is no node.

    `pod(namespace, name)` and `node(name)` give the JSON that the informers hold, None where they hold none; without
    `audiences` tokens may be for anybody.
    """

    def __init__(
        self,
        pod: Callable[[str, str], bytes | None],
        node: Callable[[str], bytes | None],
        audiences: AudienceCheck | None = None,
    ) -> None:
        self._pod = pod
        self._node = node
        self._audiences = audiences

    def __call__(self, attributes: Attributes) -> None:
        """Raises StatusError (403, or 404 for a pod that is not there)."""
        user = attributes.user
        if NODES not in user.groups or not user.name.startswith(NODE_PREFIX):
            return
        name = user.name[len(NODE_PREFIX) :]
        if not name:
            raise _refuse(attributes, f"could not determine node from user {quote(user.name)}")
        admit = _ADMIT.get((attributes.resource.group, attributes.resource.resource))
        if admit is not None:
            admit(self, name, attributes)

    def _admit_pod(self, node: str, attributes: Attributes) -> None:
        subresource, operation = attributes.subresource, attributes.operation
        if subresource == "status":
            self._admit_pod_status(node, attributes)
        elif subresource == "eviction":
            if self._pod_of(attributes).spec.node_name != node:
                raise _refuse(attributes, f"node {node} can only evict pods with spec.nodeName set to itself")
        elif subresource:
            allowed = "only 'status' and 'eviction' are allowed"
            raise _refuse(attributes, f"unexpected pod subresource {quote(subresource)}, {allowed}")
        elif operation is Operation.CREATE:
            self._admit_mirror_pod(node, attributes)
        elif operation is Operation.DELETE:
            if self._pod_of(attributes).spec.node_name != node:
                text = f"node {quote(node)} can only delete pods with spec.nodeName set to itself"
                raise _refuse(attributes, text)
        else:
            only = f"node {quote(node)} can only create and delete mirror pods"
            raise _refuse(attributes, f"unexpected operation {quote(operation.value)}, {only}")

    def _admit_pod_status(self, node: str, attributes: Attributes) -> None:
        if attributes.operation is not Operation.UPDATE:
            raise _refuse(attributes, f"unexpected operation {quote(attributes.operation.value)}")
        old, new = attributes.old or {}, attributes.new or {}
        if (old.get("spec") or {}).get("nodeName", "") != node:
            only = "can only update pod status for pods with spec.nodeName set to itself"
            raise _refuse(attributes, f"node {quote(node)} {only}")
        if _labels(old) != _labels(new):
            raise _refuse(attributes, f"node {quote(node)} cannot update labels through pod status")
        if _claim_statuses(old) != _claim_statuses(new):
            raise _refuse(attributes, f"node {quote(node)} cannot update resource claim statues")

    def _admit_claim(self, node: str, attributes: Attributes) -> None:
        if attributes.subresource != "status":
            raise _refuse(attributes, "may only update PVC status")
        if attributes.operation is not Operation.UPDATE:
            raise _refuse(attributes, f"unexpected operation {quote(attributes.operation.value)}")
        if _without_sizes(attributes.old or {}) != _without_sizes(attributes.new or {}):
            only = "is not allowed to update fields other than status.capacity and status.conditions"
            raise _refuse(attributes, f"node {quote(node)} {only}")

    def _admit_mirror_pod(self, node: str, attributes: Attributes) -> None:
        pod = attributes.new or {}
        who = f"node {quote(node)}"
        if MIRROR not in ((pod.get("metadata") or {}).get("annotations") or {}):
            text = f"pod does not have {quote(MIRROR)} annotation, {who} can only create mirror pods"
            raise _refuse(attributes, text)
        if (pod.get("spec") or {}).get("nodeName", "") != node:
            raise _refuse(attributes, f"{who} can only create pods with spec.nodeName set to itself")
        self._admit_owner(node, attributes, (pod["metadata"].get("ownerReferences")) or [])
        _admit_references(who, attributes, pod)

    def _admit_owner(self, node: str, attributes: Attributes, owners: list[Object]) -> None:
        who = f"node {quote(node)} can only create pods with"
        if len(owners) > 1:
            raise _refuse(attributes, f"{who} a single owner reference set to itself")
        owner = owners[0] if owners else {}
        if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
            raise _refuse(attributes, f"{who} an owner reference set to itself")
        if not owner.get("controller"):
            raise _refuse(attributes, f"{who} a controller owner reference set to itself")
        if owner.get("blockOwnerDeletion"):
            text = f"node {quote(node)} must not set blockOwnerDeletion on an owner reference"
            raise _refuse(attributes, text)
        body = self._node(node)
        if body is None:
            raise _unknown("node", node)
        uid = _decode_any(body)["metadata"].get("uid", "")
        if owner.get("uid", "") != uid:
            text = f"node {node} UID mismatch: expected {owner.get('uid', '')} got {uid}"
            raise _refuse(attributes, text)

    def _admit_node(self, node: str, attributes: Attributes) -> None:
        name = attributes.shown_name
        if name != node:
            raise _refuse(attributes, f"node {quote(node)} is not allowed to modify node {quote(name)}")
        new, old = attributes.new or {}, attributes.old or {}
        source = (new.get("spec") or {}).get("configSource")
        if attributes.operation is Operation.CREATE:
            if source is not None:
                text = f"node {quote(node)} is not allowed to create pods with a non-nil configSource"
                raise _refuse(attributes, text)
            if labels := _forbidden_labels(_labels(new), {}):
                text = f"node {quote(node)} is not allowed to set the following labels: {', '.join(labels)}"
                raise _refuse(attributes, text)
        elif attributes.operation is Operation.UPDATE:
            if source is not None and source != (old.get("spec") or {}).get("configSource"):
                text = (
                    f"node {quote(node)} is not allowed to update configSource to a new non-nil configSource"
                )
                raise _refuse(attributes, text)
            if _taints(new) != _taints(old):
                raise _refuse(attributes, f"node {quote(node)} is not allowed to modify taints")
            if labels := _forbidden_labels(_labels(new), _labels(old)):
                raise _refuse(attributes, f"is not allowed to modify labels: {', '.join(labels)}")

    def _admit_account(self, node: str, attributes: Attributes) -> None:
        if attributes.operation is not Operation.CREATE or attributes.subresource != "token":
            return
        ref = ((attributes.new or {}).get("spec") or {}).get("boundObjectRef") or {}
        if ref.get("apiVersion") != "v1" or ref.get("kind") != "Pod" or not ref.get("name"):
            raise _refuse(attributes, "node requested token not bound to a pod")
        uid = ref.get("uid")
        if not uid:
            raise _refuse(attributes, "node requested token with a pod binding without a uid")
        body = self._body_of(attributes.namespace, ref["name"])
        pod = _decode_pod(body)
        if uid != pod.metadata.uid:
            text = (
                f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might "
                "have been deleted and then recreated"
            )
            raise _refuse(attributes, text)
        if pod.spec.node_name != node:
            raise _refuse(attributes, "node requested token bound to a pod scheduled on a different node")
        if self._audiences is not None:
            audiences = ((attributes.new or {}).get("spec") or {}).get("audiences") or []
            why = self._audiences.fault(attributes.user, attributes.name, body, audiences)
            if why is not None:
                raise _refuse(attributes, why)

    def _admit_lease(self, node: str, attributes: Attributes) -> None:
        if attributes.namespace != LEASE_NAMESPACE:
            raise _refuse(attributes, f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
        if attributes.shown_name != node:
            text = "can only access node lease with the same name as the requesting node"
            raise _refuse(attributes, text)

    def _admit_csinode(self, node: str, attributes: Attributes) -> None:
        if attributes.shown_name != node:
            text = "can only access CSINode with the same name as the requesting node"
            raise _refuse(attributes, text)

    def _pod_of(self, attributes: Attributes) -> _Pod:
        return self._known_pod(attributes.namespace, attributes.shown_name)

    def _known_pod(self, namespace: str, name: str) -> _Pod:
        return _decode_pod(self._body_of(namespace, name))

    def _body_of(self, namespace: str, name: str) -> bytes:
        body = self._pod(namespace, name)
        if body is None:
            raise _unknown("pod", name)
        return body


_ADMIT: dict[tuple[str, str], Callable[[NodeRestriction, str, Attributes], None]] = {
    ("", "pods"): NodeRestriction._admit_pod,
    ("", "nodes"): NodeRestriction._admit_node,
    ("", "persistentvolumeclaims"): NodeRestriction._admit_claim,
    ("", "serviceaccounts"): NodeRestriction._admit_account,
    ("coordination.k8s.io", "leases"): NodeRestriction._admit_lease,
    ("storage.k8s.io", "csinodes"): NodeRestriction._admit_csinode,
}


def _refuse(attributes: Attributes, text: str) -> StatusError:
    return forbidden(attributes.resource, attributes.shown_name, text)


def _unknown(kind: str, name: str) -> StatusError:
    """An informer's lister names the kind, not the resource: ``pod "p" not found``."""
    return StatusError(status.not_found("", kind, name))


def _admit_references(who: str, attributes: Attributes, pod: Object) -> None:
    """A mirror pod must not give its node access to anything."""
    if (pod.get("spec") or {}).get("serviceAccountName"):
        raise _refuse(attributes, f"{who} can not create pods that reference a service account")
    plain = {**pod, "metadata": {"name": "", "namespace": attributes.namespace}}
    kinds = {kind.value for kind, _, _ in references(decode_pod(msgspec.json.encode(plain)))}
    if _trusts_bundle(pod):
        kinds.add("clustertrustbundle")
    for kind in ("secret", "configmap", "clustertrustbundle", "persistentvolumeclaim"):
        if kind in kinds:
            raise _refuse(attributes, f"{who} can not create pods that reference {kind}s")


def _trusts_bundle(pod: Object) -> bool:
    projected = [volume.get("projected") or {} for volume in (pod.get("spec") or {}).get("volumes") or ()]
    return any("clusterTrustBundle" in source for item in projected for source in item.get("sources") or ())


def _labels(obj: Object) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _claim_statuses(pod: Object) -> list[tuple[str, str | None]]:
    """Which resource claims a pod has been given; the order counts, as upstream."""
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or []
    return [(item.get("name", ""), item.get("resourceClaimName")) for item in statuses]


def _without_sizes(claim: Object) -> Object:
    """A claim less what its node reports when it has grown."""
    meta = {key: value for key, value in claim.get("metadata", {}).items() if key not in _IGNORED and value}
    status = {key: value for key, value in (claim.get("status") or {}).items() if key not in _SIZES}
    return {"metadata": meta, "spec": claim.get("spec"), "status": status}


def _taints(node: Object) -> list[Object]:
    return (node.get("spec") or {}).get("taints") or []


def _forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Labels that differ and are not a kubelet's to set, sorted."""
    changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
    return sorted(key for key in changed if _is_forbidden(key))


def _is_forbidden(key: str) -> bool:
    namespace = key.partition("/")[0] if "/" in key else ""
    if _within(namespace, _RESTRICTED):
        return True
    if not (_within(namespace, "kubernetes.io") or _within(namespace, "k8s.io")):
        return False
    return key not in _OWN_LABELS and not any(_within(namespace, own) for own in _OWN_NAMESPACES)


def _within(namespace: str, parent: str) -> bool:
    return namespace == parent or namespace.endswith("." + parent)
