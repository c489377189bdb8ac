"""What a scheduler reads of pods and nodes; the rest of each object is not kept.

Pods of one template want the same of a node, so that part of them (`Demand`) is decoded once and shared.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern

import msgspec

from harness.fleet.claimnotes import ephemeral_claim
from harness.fleet.placement import Affinity, Placing, Taint, Toleration
from harness.wire.quantity import parse_quantity

NOT_READY = "node.kubernetes.io/not-ready"
CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_DEFAULT_PODS = 110  # a kubelet's, where a node does not say


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a pod wants: `only` is the one node that its affinity names, as a DaemonSet's pods have it, "" for any."""

    placing: Placing = Placing()
    cpu_m: int = 0
    memory_bytes: int = 0
    only: str = ""

    @property
    def anything(self) -> bool:
        """Labels do not matter to it."""
        return self.placing.node_selector is None and self.placing.affinity is None


class PodView(msgspec.Struct, frozen=True, gc=False):
    """It is its own `metadata`, which is what stores ask of an object. `claims` are its PersistentVolumeClaims, as
    (name, whether the pod brings it itself)."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    node: str
    scheduler: str
    priority: int
    deleted: bool
    demand: Demand
    claims: tuple[tuple[str, bool], ...] = ()

    @property
    def metadata(self) -> PodView:
        return self


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None


class _Container(msgspec.Struct, gc=False):
    resources: msgspec.Raw = msgspec.Raw()


class _ClaimSource(msgspec.Struct, gc=False, rename="camel"):
    claim_name: str


class _Empty(msgspec.Struct, gc=False):
    """Of an ephemeral volume, that it is one."""


class _Volume(msgspec.Struct, gc=False, rename="camel"):
    name: str
    persistent_volume_claim: _ClaimSource | None = None
    ephemeral: _Empty | None = None


class _PodSpec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    node_selector: msgspec.Raw = msgspec.Raw()
    affinity: msgspec.Raw = msgspec.Raw()
    tolerations: msgspec.Raw = msgspec.Raw()
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()


class _Pod(msgspec.Struct, gc=False):
    metadata: _Meta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Resources(msgspec.Struct, gc=False):
    requests: dict[str, str | int | float] | None = None


_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_resources = msgspec.json.Decoder(_Resources | None).decode
_decode_selector = msgspec.json.Decoder(dict[str, str] | None).decode
_decode_affinity = msgspec.json.Decoder(Affinity | None).decode
_decode_tolerations = msgspec.json.Decoder(tuple[Toleration, ...] | None).decode
_NULL = b"null"


def decode_pod(raw: bytes) -> PodView:
    """The view of a pod's JSON. Raises msgspec.DecodeError."""
    pod = _decode_pod(raw)
    metadata, spec = pod.metadata, pod.spec
    return PodView(
        metadata.name,
        intern(metadata.namespace),
        metadata.uid,
        metadata.resource_version,
        intern(spec.node_name),
        intern(spec.scheduler_name),
        spec.priority,
        metadata.deletion_timestamp is not None,
        _demand(
            bytes(spec.node_selector),
            bytes(spec.affinity),
            bytes(spec.tolerations),
            tuple([bytes(each.resources) for each in spec.containers]),
            tuple([bytes(each.resources) for each in spec.init_containers]),
        ),
        _claims(metadata.name, spec.volumes),
    )


def _claims(pod: str, volumes: tuple[_Volume, ...]) -> tuple[tuple[str, bool], ...]:
    found: tuple[tuple[str, bool], ...] = ()
    for each in volumes:
        if each.persistent_volume_claim is not None:
            found += ((each.persistent_volume_claim.claim_name, False),)
        elif each.ephemeral is not None:
            found += ((ephemeral_claim(pod, each.name), True),)
    return found


@lru_cache(maxsize=16384)
def _demand(
    selector: bytes, affinity: bytes, tolerations: bytes, main: tuple[bytes, ...], initial: tuple[bytes, ...]
) -> Demand:
    placing = Placing(
        _decode_selector(selector or _NULL),
        _decode_affinity(affinity or _NULL),
        _decode_tolerations(tolerations or _NULL),
    )
    cpu_m, memory_bytes = (
        max(
            sum(amount(resources, name, scale) for resources in main),
            max((amount(resources, name, scale) for resources in initial), default=0),
        )
        for name, scale in (("cpu", 1000), ("memory", 1))
    )
    return Demand(placing, cpu_m, memory_bytes, _only(placing))


def amount(resources: bytes, name: str, scale: int) -> int:
    """A request in units of 1/`scale`, rounded up; 0 where there is none."""
    found = _decode_resources(resources or _NULL)
    requests = None if found is None else found.requests
    quantity = parse_quantity((requests or {}).get(name, 0)) or 0
    return int(-(-quantity * scale // 1))


def _only(placing: Placing) -> str:
    affinity = placing.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return ""
    terms = affinity.node_affinity.required.node_selector_terms
    if len(terms) == 1 and len(terms[0].match_fields) == 1:
        field = terms[0].match_fields[0]
        if field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1:
            return field.values[0]
    return ""


# ---- nodes -----------------------------------------------------------------------------------------------------------
class NodeState(msgspec.Struct, frozen=True):
    """What decides whether a pod may go there. `usable` is readiness; a cordon counts as its taint."""

    usable: bool = False
    capacity: int = _DEFAULT_PODS
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    cpu_m: int | None = None
    memory_bytes: int | None = None


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class _NodeCondition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str


class _NodeStatus(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_NodeCondition, ...] = ()
    allocatable: dict[str, str] = {}


class NodeView(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    def state(self) -> NodeState:
        """The not-ready taint is left out: only a node lifecycle controller would take it away."""
        taints = [
            each
            for each in self.spec.taints or ()
            if each.effect in ("NoSchedule", "NoExecute") and each.key not in (NOT_READY, CORDONED.key)
        ]
        if self.spec.unschedulable:
            taints.append(CORDONED)
        allocatable = self.status.allocatable
        pods = allocatable.get("pods", "")
        cpu, memory = parse_quantity(allocatable.get("cpu")), parse_quantity(allocatable.get("memory"))
        return NodeState(
            any(each.type == "Ready" and each.status == "True" for each in self.status.conditions),
            int(pods) if pods.isdecimal() else _DEFAULT_PODS,
            self.metadata.labels,
            tuple(taints),
            None if cpu is None else int(cpu * 1000),
            None if memory is None else int(memory),
        )


decode_node = msgspec.json.Decoder(NodeView).decode
