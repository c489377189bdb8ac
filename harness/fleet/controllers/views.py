"""What informers keep of objects: a few fields, and the bytes of those that a controller writes back whole.

A hundred thousand pods fit one process because a `PodView` is flat, what many pods share (labels, owners, node names,
ports) is kept once, and the rest of a pod is dropped. Of other kinds the bytes stay; `whole` decodes them when a sync
needs them, without managedFields, which kube-controller-manager's informers drop too.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import Any

import msgspec

from harness.client.store import Decode
from harness.fleet.placement import Taint
from harness.wire.errors import SwarmletError

Object = dict[str, Any]


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class View(msgspec.Struct, gc=False):
    """Any object. It is its own `metadata`, which is what stores ask of an object."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: dict[str, str]
    owners: tuple[OwnerReference, ...]
    finalizers: tuple[str, ...]
    created: str
    deleted: str | None

    @property
    def metadata(self) -> View:
        return self

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object (metav1.GetControllerOf)."""
        for owner in self.owners:
            if owner.controller:
                return owner
        return None


class WholeView(View, gc=False):
    """An object whose bytes are kept."""

    raw: bytes = b""


class PodView(View, gc=False):
    """`ports` are the named ports, as (name, protocol, number); `claims` the names of the PVCs that it mounts;
    `target` is the node that its affinity names, which is how a DaemonSet's pod is meant for one; `delete_cost` is
    the annotation controller.kubernetes.io/pod-deletion-cost."""

    node: str = ""
    phase: str = ""
    ready: bool = False
    ready_since: str = ""
    ip: str = ""
    restarts: int = 0
    ports: tuple[tuple[str, str, int], ...] = ()
    claims: tuple[str, ...] = ()
    host: tuple[str, str] = ("", "")
    target: str = ""
    delete_cost: int = 0
    index: str = ""

    @property
    def active(self) -> bool:
        """Neither ended nor being deleted (controller.IsPodActive)."""
        return self.deleted is None and self.phase not in ("Succeeded", "Failed")

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


class NodeView(View, gc=False):
    taints: tuple[Taint, ...] = ()

    def alike(self, other: NodeView) -> bool:
        """Whether a pod may be on either or on neither; what most updates of a node leave as it is."""
        return self.labels is other.labels and self.taints == other.taints


# ---- pods ------------------------------------------------------------------------------------------------------------
class _Port(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    protocol: str = "TCP"
    container_port: int = 0


class _Container(msgspec.Struct, gc=False):
    ports: list[_Port] | None = None


class _Claim(msgspec.Struct, gc=False, rename="camel"):
    claim_name: str = ""


class _Volume(msgspec.Struct, gc=False, rename="camel"):
    persistent_volume_claim: _Claim | None = None


class _Field(msgspec.Struct, gc=False):
    key: str = ""
    values: list[str] = []


class _Term(msgspec.Struct, gc=False, rename="camel"):
    match_fields: list[_Field] | None = None


class _Required(msgspec.Struct, gc=False, rename="camel"):
    node_selector_terms: list[_Term] = []


class _NodeAffinity(msgspec.Struct, gc=False):
    required: _Required | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class _Affinity(msgspec.Struct, gc=False, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _PodSpec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: list[_Container] = []
    volumes: list[_Volume] | None = None
    affinity: _Affinity | None = None


class _Condition(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _ContainerStatus(msgspec.Struct, gc=False, rename="camel"):
    restart_count: int = 0


class _PodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None


class _Pod(msgspec.Struct, gc=False):
    metadata: _Meta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


_decode_pod = msgspec.json.Decoder(_Pod).decode
_COST = "controller.kubernetes.io/pod-deletion-cost"
_INDEX = "batch.kubernetes.io/job-completion-index"


def decode_pod(raw: bytes) -> PodView:
    """The view of a pod's JSON. Raises msgspec.DecodeError."""
    pod = _decode_pod(raw)
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    ready = next((each for each in status.conditions or () if each.type == "Ready"), None)
    notes = metadata.annotations or {}
    return PodView(
        metadata.name,
        intern(metadata.namespace),
        metadata.uid,
        metadata.resource_version,
        shared_labels(metadata.labels),
        _shared(metadata.owner_references or ()),
        _shared(metadata.finalizers or ()),
        intern(metadata.creation_timestamp or ""),
        metadata.deletion_timestamp,
        node=intern(spec.node_name),
        phase=intern(status.phase),
        ready=ready is not None and ready.status == "True",
        ready_since=intern((ready and ready.last_transition_time) or ""),
        ip=status.pod_ip,
        restarts=sum(each.restart_count for each in status.container_statuses or ()),
        ports=_ports(spec.containers),
        claims=_claims(spec.volumes),
        host=(spec.hostname, spec.subdomain) if spec.hostname or spec.subdomain else ("", ""),
        target="" if spec.affinity is None else _target(spec.affinity),
        delete_cost=_integer(notes.get(_COST, "0")) if notes else 0,
        index=notes.get(_INDEX, "") if notes else "",
    )


def shared_labels(labels: dict[str, str] | None) -> dict[str, str]:
    """The one dict that stands for all equal ones; never to be changed."""
    return _labels(tuple(labels.items())) if labels else _NO_LABELS


_NO_LABELS: dict[str, str] = {}
_CACHED = 16384


@lru_cache(maxsize=_CACHED)
def _labels(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(items)


@lru_cache(maxsize=_CACHED)
def _shared(value: Any) -> Any:
    return value


def _ports(containers: list[_Container]) -> tuple[tuple[str, str, int], ...]:
    found = [
        (port.name, port.protocol, port.container_port)
        for container in containers
        for port in container.ports or ()
        if port.name
    ]
    ports: tuple[tuple[str, str, int], ...] = _shared(tuple(found)) if found else ()
    return ports


def _claims(volumes: list[_Volume] | None) -> tuple[str, ...]:
    return tuple(
        volume.persistent_volume_claim.claim_name
        for volume in volumes or ()
        if volume.persistent_volume_claim is not None
    )


def _target(affinity: _Affinity) -> str:
    """util.GetTargetNodeName (kk/pkg/controller/daemon/util/daemonset_util.go)."""
    if affinity.node_affinity is None or affinity.node_affinity.required is None:
        return ""
    for term in affinity.node_affinity.required.node_selector_terms:
        for field in term.match_fields or ():
            if field.key == "metadata.name" and len(field.values) == 1:
                return intern(field.values[0])
    return ""


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0


# ---- everything else -------------------------------------------------------------------------------------------------
class _Any(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_any = msgspec.json.Decoder(_Any).decode


def decode_whole(raw: bytes) -> WholeView:
    """The view of any object's JSON, its bytes kept. Raises msgspec.DecodeError."""
    view: WholeView = WholeView(*_metadata(_decode_any(raw).metadata), raw=raw)  # type: ignore[misc]
    return view


def decode_metadata(raw: bytes) -> View:
    """The view of any object's JSON. Raises msgspec.DecodeError."""
    return View(*_metadata(_decode_any(raw).metadata))


def _metadata(metadata: _Meta) -> tuple[Any, ...]:
    return (
        metadata.name,
        intern(metadata.namespace),
        metadata.uid,
        metadata.resource_version,
        shared_labels(metadata.labels),
        metadata.owner_references or (),
        metadata.finalizers or (),
        metadata.creation_timestamp or "",
        metadata.deletion_timestamp,
    )


class _NodeSpec(msgspec.Struct, gc=False):
    taints: tuple[Taint, ...] | None = None


class _Node(msgspec.Struct, gc=False):
    metadata: _Meta
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)


_NOT_READY = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
_decode_node = msgspec.json.Decoder(_Node).decode


def decode_node(raw: bytes) -> NodeView:
    """The view of a node's JSON. Raises msgspec.DecodeError.

    Admission gives every new node the not-ready taint, which only a node lifecycle controller would take away; none
    runs beside these controllers, so it says nothing.
    """
    node = _decode_node(raw)
    taints = tuple(each for each in node.spec.taints or () if each != _NOT_READY)
    view: NodeView = NodeView(*_metadata(node.metadata), taints=taints)  # type: ignore[misc]
    return view


class NotAnObject(SwarmletError):
    """An answer that is none; the sync that asked is tried again."""


_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


def whole(view: WholeView | bytes) -> Object:
    """A copy of the object, to change and send back. Raises NotAnObject for an answer that is none."""
    if isinstance(view, WholeView):
        found = _decode_object(view.raw)
    else:
        try:
            found = _decode_object(view)
        except msgspec.DecodeError as error:
            raise NotAnObject(str(error)) from error
        if not isinstance(found.get("metadata"), dict) or "uid" not in found["metadata"]:
            raise NotAnObject("the answer has no metadata")
    found["metadata"].pop("managedFields", None)
    return found


DECODERS: dict[str, Decode] = {"pods": decode_pod, "nodes": decode_node, "metadata": decode_metadata}
"""Views by resource, and the least that there is; `decode_whole` for those that are not here."""
