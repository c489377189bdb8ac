"""Pods from a template. kk/pkg/controller/controller_utils.go (RealPodControl) and labels.go."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from harness.fleet.controllers.views import Object
from harness.wire.selectors import LabelSelector, parse_labels

_SAFE = "bcdfghjklmnpqrstvwxz2456789"  # am/util/rand: what SafeEncodeString maps to


def owner_reference(owner: Object) -> Object:
    """metav1.NewControllerRef."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(template: Object, owner: Object) -> Object:
    """GetPodFromTemplate, without a name; its spec is the template's own, not to be changed."""
    given = template.get("metadata") or {}
    metadata: Object = {
        "generateName": owner["metadata"]["name"] + "-",
        "ownerReferences": [owner_reference(owner)],
    }
    for field in ("labels", "annotations", "finalizers"):
        if given.get(field):
            metadata[field] = given[field]
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": template["spec"]}


def template_hash(template: Object, collisions: int = 0) -> str:
    """What names ReplicaSets and revisions apart. Upstream hashes Go's dump of the structure (fnv32a), which cannot be
    made here; ours hashes the JSON by sorted keys in the same way and is written in the same alphabet."""
    data = msgspec.json.encode(template, order="deterministic")
    return _hash(data + (str(collisions).encode() if collisions else b""))


@lru_cache(maxsize=4096)
def _hash(data: bytes) -> str:
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return "".join(_SAFE[ord(each) % len(_SAFE)] for each in str(value))


@lru_cache(maxsize=4096)
def _selector(text: bytes) -> LabelSelector:
    return parse_labels(_text(msgspec.json.decode(text)))


def selector_of(selector: Mapping[str, Any] | None) -> LabelSelector:
    """A LabelSelector object, or the plain map of a Service or ReplicationController under "matchLabels"."""
    return _selector(msgspec.json.encode(selector or {}))


def _text(selector: Object) -> str:
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        key, operator, values = each["key"], each["operator"], ",".join(each.get("values") or ())
        terms.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[operator]
        )
    return ",".join(terms)


def percent_of(value: int | str | None, total: int, *, up: bool) -> int:
    """An int-or-percent (intstr.GetScaledValueFromIntOrPercent); None is 0."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = int(value.rstrip("%")) * total
    return -(-share // 100) if up else share // 100


def condition(kind: str, status: str, reason: str, message: str, now: str, **more: str) -> Object:
    return {
        "type": kind,
        "status": status,
        **more,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def find_condition(status: Object, kind: str) -> Object | None:
    return next((each for each in status.get("conditions") or () if each["type"] == kind), None)


def pods_available(ready: bool, ready_since_s: float | None, min_ready_s: int, now_s: float) -> bool:
    """podutil.IsPodAvailable: ready for at least `min_ready_s`."""
    if not ready:
        return False
    return min_ready_s == 0 or (ready_since_s is not None and ready_since_s + min_ready_s <= now_s)
