"""An object before anything was set, as Go writes it: structs that are no pointers, and lists without omitempty, stand
there empty. What is compared with it does not own these (am/util/managedfields/internal/skipnonapplied.go: `New`)."""

from __future__ import annotations

from typing import Any

from harness.apiserver.schema import Schema

_OF_EVERY_KIND = ("metadata", "spec", "status")
# Fields that Go writes whatever they hold, by type (k8s.io/api v0.36: no pointer, no omitempty on a list or map).
_ALWAYS: dict[str, tuple[str, ...]] = {
    "CronJobSpec": ("jobTemplate",),
    "DaemonSetSpec": ("selector", "template", "updateStrategy"),
    "DeploymentSpec": ("selector", "template", "strategy"),
    "JobSpec": ("template",),
    "JobTemplateSpec": ("metadata", "spec"),
    "NetworkPolicySpec": ("podSelector",),
    "PersistentVolumeClaimSpec": ("resources",),
    "PodSpec": ("containers",),
    "PodTemplateSpec": ("metadata", "spec"),
    "ReplicaSetSpec": ("selector", "template"),
    "ServiceStatus": ("loadBalancer",),
    "StatefulSetSpec": ("selector", "template", "updateStrategy"),
}


def zero_object(schema: Schema | None) -> dict[str, Any]:
    if schema is None:
        return {}
    return {name: _zero(schema.fields[name]) for name in _OF_EVERY_KIND if name in schema.fields}


def _zero(schema: Schema) -> Any:
    if schema.type != "object":
        return None
    return {
        name: _zero(schema.fields[name]) for name in _ALWAYS.get(schema.name, ()) if name in schema.fields
    }
