"""On how many nodes a DaemonSet wants a pod.

Mirrors clusterloader2/pkg/measurement/util/runtimeobjects: a node counts where the pod's nodeSelector and required node
affinity match it and the pod tolerates its NoSchedule and NoExecute taints, the DaemonSet controller's own tolerations
included (replicaswatcher.go: shouldRun; runtimeobjects.go: addOrUpdateDaemonPodTolerations). Preferred affinity does
not count, and neither does whether the pod fits.
"""

from __future__ import annotations

import msgspec

from harness.client.store import Change, Changed, Decode, decoder_for
from harness.clusterloader.measurements.controllers import ControllerMeta, ControllerStatus
from harness.clusterloader.measurements.nodes import NodeView, Taint

_TOLERATED = (  # what the DaemonSet controller adds to its pods (daemonset_util.go: AddOrUpdateDaemonPodTolerations)
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class Toleration(msgspec.Struct, gc=False):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """As corev1's Toleration.ToleratesTaint: an empty key with Exists tolerates all, an empty effect each."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class Requirement(msgspec.Struct, gc=False):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None

    def match(self, found: str | None) -> bool:
        values = self.values or []
        if self.operator == "In":
            return found in values
        if self.operator == "NotIn":
            return found not in values
        if self.operator in ("Exists", "DoesNotExist"):
            return (found is not None) == (self.operator == "Exists")
        try:
            number, limit = int(found or ""), int(values[0])
        except (ValueError, IndexError):
            return False
        return number > limit if self.operator == "Gt" else self.operator == "Lt" and number < limit


class Term(msgspec.Struct, gc=False, rename="camel"):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None

    def match(self, node: NodeView) -> bool:
        """A term without requirements matches nothing (component-helpers' nodeaffinity)."""
        labels = node.metadata.labels or {}
        expressions, fields = self.match_expressions or (), self.match_fields or ()
        return bool(expressions or fields) and (
            all(item.match(labels.get(item.key)) for item in expressions)
            and all(item.key == "metadata.name" and item.match(node.metadata.name) for item in fields)
        )


class NodeSelector(msgspec.Struct, gc=False, rename="camel"):
    node_selector_terms: list[Term] | None = None


class NodeAffinity(msgspec.Struct, gc=False, rename="camel"):
    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(msgspec.Struct, gc=False, rename="camel"):
    node_affinity: NodeAffinity | None = None


class TemplateSpec(msgspec.Struct, gc=False, rename="camel"):
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None

    def wants(self, node: NodeView) -> bool:
        """Whether a DaemonSet with this pod template wants a pod on the node."""
        labels = node.metadata.labels or {}
        if any(labels.get(key) != value for key, value in (self.node_selector or {}).items()):
            return False
        affinity = self.affinity.node_affinity if self.affinity is not None else None
        required = affinity.required if affinity is not None else None
        if required is not None and not any(term.match(node) for term in required.node_selector_terms or ()):
            return False
        return all(self._tolerates(taint) for taint in node.keeping_away)

    def _tolerates(self, taint: Taint) -> bool:
        return (taint.key, taint.effect) in _TOLERATED or any(
            item.tolerates(taint) for item in self.tolerations or ()
        )


class Template(msgspec.Struct, gc=False):
    spec: TemplateSpec = msgspec.field(default_factory=TemplateSpec)


class DaemonSetSpec(msgspec.Struct, gc=False):
    template: Template = msgspec.field(default_factory=Template)


class DaemonSetView(msgspec.Struct, gc=False):
    metadata: ControllerMeta = msgspec.field(default_factory=ControllerMeta)
    spec: DaemonSetSpec = msgspec.field(default_factory=DaemonSetSpec)
    status: ControllerStatus = msgspec.field(default_factory=ControllerStatus)


decode_daemon_set: Decode = decoder_for(DaemonSetView)


class WantedNodes:
    """How many nodes each DaemonSet wants, by its uid, as nodes and DaemonSets come and go."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeView] = {}
        self._templates: dict[str, TemplateSpec] = {}
        self._counts: dict[str, int] = {}

    def count(self, view: DaemonSetView) -> int:
        """Of a DaemonSet as it is now; it is kept up to date from then on."""
        template = view.spec.template.spec
        uid = view.metadata.uid
        if self._templates.get(uid) != template:
            self._templates[uid] = template
            self._counts[uid] = sum(template.wants(node) for node in self._nodes.values())
        return self._counts[uid]

    def node_changed(self, changed: Changed) -> dict[str, int]:
        """The counts that a node's change gives other values."""
        node: NodeView | None = changed.object
        if node is None:
            return {}
        old = self._nodes.pop(node.metadata.name, None)
        gone = changed.change is Change.DELETED
        if not gone:
            self._nodes[node.metadata.name] = node
        found = {}
        for uid, template in self._templates.items():
            step = (not gone and template.wants(node)) - (old is not None and template.wants(old))
            if step:
                self._counts[uid] += step
                found[uid] = self._counts[uid]
        return found
