"""Small plugins that fill in a new object: Priority, DefaultTolerationSeconds, TaintNodesByCondition."""

from __future__ import annotations

from harness.apiserver.admission.attributes import Attributes
from harness.apiserver.apierrors import forbidden

# The two classes that every cluster has (kk/pkg/apis/scheduling/types.go).
_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_TOLERATION_S = 300


def priority(attributes: Attributes) -> None:
    """plugin/pkg/admission/priority/admission.go: the class's value, 0 without one."""
    assert attributes.new is not None
    spec = attributes.new["spec"]
    name = spec.get("priorityClassName", "")
    if name and name not in _CLASSES:
        text = f"no PriorityClass with name {name} was found"
        raise forbidden(attributes.resource, attributes.shown_name, text)
    value = _CLASSES.get(name, 0)
    if spec.setdefault("priority", value) != value:
        text = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(attributes.resource, attributes.shown_name, text)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_tolerations(attributes: Attributes) -> None:
    """plugin/pkg/admission/defaulttolerationseconds/admission.go: pods stay 300 s on a node that is gone."""
    assert attributes.new is not None
    spec = attributes.new["spec"]
    tolerations = spec.get("tolerations") or []
    for key in (_NOT_READY, _UNREACHABLE):
        if not any(_tolerates(item, key) for item in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_S}
            )
    spec["tolerations"] = tolerations


def _tolerates(toleration: dict[str, object], key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


def taint_new_node(attributes: Attributes) -> None:
    """plugin/pkg/admission/nodetaint/admission.go: until the node controller knows better, nothing is scheduled."""
    assert attributes.new is not None
    spec = attributes.new["spec"]
    taints = spec.get("taints") or []
    if not any(taint.get("key") == _NOT_READY and taint.get("effect") == "NoSchedule" for taint in taints):
        taints.append({"key": _NOT_READY, "effect": "NoSchedule"})
    spec["taints"] = taints
