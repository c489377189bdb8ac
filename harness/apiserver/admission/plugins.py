"""Small plugins that fill in a new object: DefaultTolerationSeconds, TaintNodesByCondition."""

from __future__ import annotations

from harness.apiserver.admission.attributes import Attributes

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_TOLERATION_S = 300


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
