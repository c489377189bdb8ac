"""What a scheduler reads of pods and nodes; the rest of each object is not kept."""

from __future__ import annotations

import msgspec

_NOT_READY = "node.kubernetes.io/not-ready"


class _NodeMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class _PodMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    node_selector: dict[str, str] | None = None


class PodView(msgspec.Struct, frozen=True, gc=False):
    metadata: _PodMeta
    spec: _PodSpec = _PodSpec()


class _Taint(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    effect: str = ""


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[_Taint, ...] = ()


class _NodeCondition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str


class _NodeStatus(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_NodeCondition, ...] = ()
    allocatable: dict[str, str] = {}


class NodeView(msgspec.Struct, frozen=True, gc=False):
    metadata: _NodeMeta
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @property
    def usable(self) -> bool:
        """Ready, not cordoned, and without a taint that keeps pods away."""
        tainted = any(
            each.effect != "PreferNoSchedule" and each.key != _NOT_READY for each in self.spec.taints
        )
        ready = any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)
        return ready and not tainted and not self.spec.unschedulable

    @property
    def capacity(self) -> int:
        """Pods that fit; a kubelet's default where the node does not say, or not in plain digits."""
        pods = self.status.allocatable.get("pods", "")
        return int(pods) if pods.isdecimal() else 110


decode_pod = msgspec.json.Decoder(PodView).decode
decode_node = msgspec.json.Decoder(NodeView).decode
