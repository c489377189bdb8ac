"""HorizontalPodAutoscalers of autoscaling/v1 and v2 (kk/pkg/apis/autoscaling/v1/conversion.go).

v1 knows one figure, the utilization of CPU. Everything else that v2 says travels in annotations, as JSON in v1's own
names for metrics, so that a client which reads, changes and writes v1 loses nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

Object = dict[str, Any]

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = _PREFIX + "metrics"
CURRENT = _PREFIX + "current-metrics"
CONDITIONS = _PREFIX + "conditions"
BEHAVIOR = _PREFIX + "behavior"
_OURS = (METRICS, CURRENT, CONDITIONS, BEHAVIOR)
_FIELDS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_SPEC = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
_decode = msgspec.json.decode


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


# ---- metrics -------------------------------------------------------------------------------------------------------
def _renamed(kind: str, prefix: str) -> dict[str, tuple[str, ...]]:
    """v1's name of each part of a metric, with the way to it in v2; `prefix` is target or current."""
    average: dict[str, tuple[str, ...]] = {f"{prefix}AverageValue": (prefix, "averageValue")}
    own: dict[str, tuple[str, ...]]
    if kind in ("Resource", "ContainerResource"):
        own = {"name": ("name",), "container": ("container",)}
        return {**own, f"{prefix}AverageUtilization": (prefix, "averageUtilization"), **average}
    metric: dict[str, tuple[str, ...]] = {"metricName": ("metric", "name")}
    if kind == "Pods":
        return {**metric, "selector": ("metric", "selector"), **average}
    value: dict[str, tuple[str, ...]] = {f"{prefix}Value": (prefix, "value")}
    if kind == "Object":
        own = {"target": ("describedObject",), "averageValue": (prefix, "averageValue")}
        return {**own, **metric, "selector": ("metric", "selector"), **value}
    return {**metric, "metricSelector": ("metric", "selector"), **value, **average}


def _metric_to_v1(metric: Object, prefix: str) -> Object:
    kind = metric.get("type", "")
    field = _FIELDS.get(kind, "")
    source: Object = metric.get(field) or {}
    short: Object = {}
    for name, way in _renamed(kind, prefix).items():
        value: Any = source
        for part in way:
            value = (value or {}).get(part)
        if value is not None:
            short[name] = value
    return {"type": kind, field: short}


def _metric_to_v2(metric: Object, prefix: str) -> Object:
    kind = metric.get("type", "")
    field = _FIELDS.get(kind, "")
    short: Object = metric.get(field) or {}
    source: Object = {}
    for name, way in _renamed(kind, prefix).items():
        if name not in short:
            continue
        place = source
        for part in way[:-1]:
            place = place.setdefault(part, {})
        place[way[-1]] = short[name]
    if prefix == "target":
        source["target"] = {"type": _target_type(source.get("target") or {}), **(source.get("target") or {})}
    return {"type": kind, field: source}


def _target_type(target: Object) -> str:
    if "averageUtilization" in target:
        return "Utilization"
    return "AverageValue" if "averageValue" in target else "Value"


def _is_cpu(metric: Object, figures: str) -> bool:
    """Whether v1 has a field for it."""
    resource = metric.get("resource") or {}
    figure = (resource.get(figures) or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and figure is not None


# ---- whole objects -------------------------------------------------------------------------------------------------
def from_v2(hub: Object) -> Object:
    spec, status = hub.get("spec") or {}, hub.get("status") or {}
    kept: dict[str, str] = {}
    new_spec = {key: spec[key] for key in _SPEC if key in spec}
    figure = _take_cpu(spec.get("metrics") or [], "target", METRICS, kept)
    if figure is not None:
        new_spec["targetCPUUtilizationPercentage"] = figure
    if spec.get("behavior") is not None:
        kept[BEHAVIOR] = _encoded(spec["behavior"])
    new_status = {"currentReplicas": 0, "desiredReplicas": 0}
    new_status |= {key: status[key] for key in _STATUS if key in status}
    figure = _take_cpu(status.get("currentMetrics") or [], "current", CURRENT, kept)
    if figure is not None:
        new_status["currentCPUUtilizationPercentage"] = figure
    if status.get("conditions"):
        kept[CONDITIONS] = _encoded(status["conditions"])
    meta = hub["metadata"]
    if kept:
        meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **kept}}
    return {"metadata": meta, "spec": new_spec, "status": new_status}


def _take_cpu(metrics: list[Object], figures: str, name: str, kept: dict[str, str]) -> int | None:
    """The utilization of CPU among `metrics`; the others go into the annotation `name`."""
    cpu = next((metric for metric in metrics if _is_cpu(metric, figures)), None)
    others = [_metric_to_v1(metric, figures) for metric in metrics if metric is not cpu]
    if others:
        kept[name] = _encoded(others)
    if cpu is None:
        return None
    figure: int = cpu["resource"][figures]["averageUtilization"]
    return figure


def to_v2(obj: Object) -> Object:
    meta = dict(obj["metadata"])
    annotations = dict(meta.get("annotations") or {})
    kept = {key: _parsed(annotations.pop(key, None)) for key in _OURS}
    if annotations:
        meta["annotations"] = annotations
    else:
        meta.pop("annotations", None)
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    new_spec = {key: spec[key] for key in _SPEC if key in spec}
    metrics = [_metric_to_v2(metric, "target") for metric in kept[METRICS] or ()]
    percent = spec.get("targetCPUUtilizationPercentage")
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    if metrics:
        new_spec["metrics"] = metrics
    if kept[BEHAVIOR]:
        new_spec["behavior"] = kept[BEHAVIOR]
    return {"metadata": meta, "spec": new_spec, "status": _status_to_v2(status, kept)}


def _status_to_v2(status: Object, kept: Object) -> Object:
    new_status = {key: status[key] for key in _STATUS if key in status}
    current = [_metric_to_v2(metric, "current") for metric in kept[CURRENT] or ()]
    percent = status.get("currentCPUUtilizationPercentage")
    if percent is not None:
        figures = {"averageUtilization": percent}
        current.append({"type": "Resource", "resource": {"name": "cpu", "current": figures}})
    if current:
        new_status["currentMetrics"] = current
    if kept[CONDITIONS]:
        new_status["conditions"] = kept[CONDITIONS]
    return new_status


def _parsed(text: str | None) -> Any:
    """What an annotation says; nothing where somebody has put something else there."""
    if not text:
        return None
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return None
