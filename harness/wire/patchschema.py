"""How strategic merge patches treat the fields of Kubernetes' types: the patchStrategy and patchMergeKey struct tags
of k8s.io/api v0.36 (core/v1, apps/v1, batch/v1, storage/v1, policy/v1, autoscaling/v2, meta/v1) as a table.

A field that is not named here is a map that merges without further rules, or a list that is replaced whole
(tolerations, taints, containerStatuses, envFrom, a projected volume's sources).
"""

from __future__ import annotations

import msgspec


class ListField(msgspec.Struct, frozen=True, gc=False):
    """A list that merges: elements of `type` by `key`, or scalars as a set where `key` is ""."""

    key: str = ""
    type: str = ""
    retain_keys: bool = False


class MapField(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    retain_keys: bool = False


Field = ListField | MapField
Fields = dict[str, Field]

_CONDITIONS = ListField("type")
_META = MapField("ObjectMeta")
_TEMPLATE = MapField("PodTemplateSpec")


def _kind(spec: str = "", status: str = "") -> Fields:
    return {"metadata": _META, "spec": MapField(spec), "status": MapField(status)}


TYPES: dict[str, Fields] = {
    "": {},
    "ObjectMeta": {"finalizers": ListField(), "ownerReferences": ListField("uid")},
    "Conditions": {"conditions": _CONDITIONS},
    # core/v1
    "Container": {
        "env": ListField("name"),
        "ports": ListField("containerPort"),
        "volumeDevices": ListField("devicePath"),
        "volumeMounts": ListField("mountPath"),
    },
    "PodSpec": {
        "containers": ListField("name", "Container"),
        "ephemeralContainers": ListField("name", "Container"),
        "hostAliases": ListField("ip"),
        "imagePullSecrets": ListField("name"),
        "initContainers": ListField("name", "Container"),
        "resourceClaims": ListField("name", retain_keys=True),
        "schedulingGates": ListField("name"),
        "topologySpreadConstraints": ListField("topologyKey"),
        "volumes": ListField("name", retain_keys=True),
    },
    "PodStatus": {
        "conditions": _CONDITIONS,
        "hostIPs": ListField("ip"),
        "podIPs": ListField("ip"),
        "resourceClaimStatuses": ListField("name", retain_keys=True),
    },
    "PodTemplateSpec": {"metadata": _META, "spec": MapField("PodSpec")},
    "NodeSpec": {"podCIDRs": ListField()},
    "NodeStatus": {"addresses": ListField("type"), "conditions": _CONDITIONS},
    "ServiceSpec": {"ports": ListField("port")},
    "Pod": _kind("PodSpec", "PodStatus"),
    "Node": _kind("NodeSpec", "NodeStatus"),
    "Namespace": _kind(status="Conditions"),
    "Service": _kind("ServiceSpec", "Conditions"),
    "ServiceAccount": {"metadata": _META, "secrets": ListField("name")},
    "PersistentVolumeClaim": _kind(status="Conditions"),
    # apps/v1, batch/v1, policy/v1, autoscaling/v2
    "DeploymentSpec": {"strategy": MapField(retain_keys=True), "template": _TEMPLATE},
    "WorkloadSpec": {"template": _TEMPLATE},
    "CronJobSpec": {"jobTemplate": MapField("JobTemplateSpec")},
    "JobTemplateSpec": {"metadata": _META, "spec": MapField("WorkloadSpec")},
    "Deployment": _kind("DeploymentSpec", "Conditions"),
    "ReplicaSet": _kind("WorkloadSpec", "Conditions"),
    "ReplicationController": _kind("WorkloadSpec", "Conditions"),
    "StatefulSet": _kind("WorkloadSpec", "Conditions"),
    "DaemonSet": _kind("WorkloadSpec", "Conditions"),
    "Job": _kind("WorkloadSpec", "Conditions"),
    "CronJob": _kind("CronJobSpec"),
    "PodDisruptionBudget": _kind(status="Conditions"),
    "HorizontalPodAutoscaler": _kind(status="Conditions"),
    # storage/v1, admissionregistration.k8s.io/v1
    "CSINodeSpec": {"drivers": ListField("name")},
    "CSINode": _kind("CSINodeSpec"),
    "ValidatingWebhookConfiguration": {"metadata": _META, "webhooks": ListField("name")},
    "MutatingWebhookConfiguration": {"metadata": _META, "webhooks": ListField("name")},
}
_ANY_KIND: Fields = {"metadata": _META}


def fields_of_kind(kind: str) -> Fields:
    """The rules for the top level of an object of `kind`; of an unknown one only its metadata has rules."""
    return TYPES.get(kind, _ANY_KIND)


def fields_of(field: Field | None) -> Fields:
    """The rules one level below."""
    return TYPES[field.type] if field is not None else {}
