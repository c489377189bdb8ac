"""Which Go type the parts of an object have that anything in a member looks into.

Upstream decodes into typed structs. Here objects are plain values, and what is about to be stored is read once against
the kind's shape (2 to 4 us), so that caches and authorizers, which have typed views of their own, never meet another
type; and where handling an object failed, its shape tells a client's mistake (400) from a fault of ours (500).
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec

Object = dict[str, Any]
_Shape: TypeAlias = dict[str, Any]

_MAPS = dict[str, str] | None
_TEXTS = list[str] | None
_DICTS = list[dict[str, Any]] | None
_TEXT = str | None
_WHOLE = int | None
_BOOL = bool | None
_DICT = dict[str, Any] | None


def _struct(name: str, fields: _Shape) -> type[msgspec.Struct]:
    """A struct with these optional fields; a nested mapping of fields becomes a struct, in a list a list of them."""
    members: list[Any] = []
    for key, kind in fields.items():
        if isinstance(kind, dict):
            kind = _struct(name, kind) | None
        elif isinstance(kind, list):
            kind = list[_struct(name, kind[0])] | None  # type: ignore[misc]
        members.append((key, kind, None))
    return msgspec.defstruct(name, members)


_NAMED = {"name": _TEXT}
_META = {
    **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), _TEXT),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TEXT),
    **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _WHOLE),
    **dict.fromkeys(("labels", "annotations"), _MAPS),
    "finalizers": _TEXTS,
    "ownerReferences": _DICTS,
}
_REQUIREMENTS = {"limits": _DICT, "requests": _DICT}
_PROBE = {"httpGet": _DICT}
_CONTAINER = {
    **dict.fromkeys(("name", "image", "imagePullPolicy"), _TEXT),
    **dict.fromkeys(("command", "args"), _TEXTS),
    "ports": _DICTS,
    "envFrom": [{"secretRef": _NAMED, "configMapRef": _NAMED}],
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), _PROBE),
    "env": [
        {
            "name": _TEXT,
            "valueFrom": {"fieldRef": _DICT, "secretKeyRef": _NAMED, "configMapKeyRef": _NAMED},
        }
    ],
    "resources": _REQUIREMENTS,
    "volumeMounts": [{"name": _TEXT, "mountPath": _TEXT}],
}
_WITH_SECRET = {"secretName": _TEXT, "secretRef": _NAMED, "nodePublishSecretRef": _NAMED}
_ITEMS = {"items": [{"fieldRef": _DICT}]}
_VOLUME = {
    "name": _TEXT,
    **dict.fromkeys(("hostPath", "emptyDir", "ephemeral"), _DICT),
    **dict.fromkeys(
        ("csi", "azureFile", "cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"), _WITH_SECRET
    ),
    "secret": {"secretName": _TEXT},
    "configMap": _NAMED,
    "persistentVolumeClaim": {"claimName": _TEXT},
    "downwardAPI": _ITEMS,
    "projected": {
        "sources": [
            {"serviceAccountToken": _DICT, "secret": _NAMED, "configMap": _NAMED, "downwardAPI": _ITEMS}
        ]
    },
}
_CONDITIONS = [{"type": _TEXT, "status": _TEXT}]
POD_SPEC = {
    **{key: [_CONTAINER] for key in ("containers", "initContainers", "ephemeralContainers")},
    **dict.fromkeys(
        ("nodeName", "serviceAccountName", "serviceAccount", "restartPolicy", "schedulerName"), _TEXT
    ),
    **dict.fromkeys(("dnsPolicy", "priorityClassName", "preemptionPolicy"), _TEXT),
    **dict.fromkeys(("terminationGracePeriodSeconds", "priority"), _WHOLE),
    **dict.fromkeys(("automountServiceAccountToken", "hostNetwork", "enableServiceLinks"), _BOOL),
    **dict.fromkeys(("tolerations", "schedulingGates"), _DICTS),
    "imagePullSecrets": [_NAMED],
    "volumes": [_VOLUME],
    "nodeSelector": _MAPS,
    "securityContext": _DICT,
}
_POD_STATUS = {
    **dict.fromkeys(("phase", "podIP", "nominatedNodeName", "reason"), _TEXT),
    **dict.fromkeys(("containerStatuses", "initContainerStatuses", "podIPs", "hostIPs"), _DICTS),
    "conditions": _CONDITIONS,
}
_SERVICE_SPEC = {
    **dict.fromkeys(("type", "clusterIP", "sessionAffinity", "externalName", "ipFamilyPolicy"), _TEXT),
    **dict.fromkeys(("clusterIPs", "ipFamilies", "externalIPs", "loadBalancerSourceRanges"), _TEXTS),
    "ports": [{"name": _TEXT, "protocol": _TEXT, "port": _WHOLE, "nodePort": _WHOLE}],
    "selector": _MAPS,
}
_LEASE_SPEC = {
    **dict.fromkeys(("holderIdentity", "acquireTime", "renewTime"), _TEXT),
    **dict.fromkeys(("leaseDurationSeconds", "leaseTransitions"), _WHOLE),
}
_NODE_STATUS = {
    **dict.fromkeys(("capacity", "allocatable", "nodeInfo"), _DICT),
    **dict.fromkeys(("addresses", "images"), _DICTS),
    "daemonEndpoints": {"kubeletEndpoint": _DICT},
    "conditions": _CONDITIONS,
}
_EVENT = {
    **dict.fromkeys(("related", "series"), _DICT),
    "involvedObject": dict.fromkeys(
        ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"), _TEXT
    ),
    "source": {"component": _TEXT, "host": _TEXT},
    **dict.fromkeys(
        ("reason", "message", "type", "action", "reportingComponent", "reportingInstance"), _TEXT
    ),
    **dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime"), _TEXT),
    "count": _WHOLE,
}
_BY_KIND: dict[str, _Shape] = {
    "Namespace": {"spec": {"finalizers": _TEXTS}, "status": {"phase": _TEXT}},
    "Node": {"spec": {"taints": _DICTS, "podCIDR": _TEXT, "unschedulable": _BOOL}, "status": _NODE_STATUS},
    "Pod": {"spec": POD_SPEC, "status": _POD_STATUS},
    "Secret": {"data": _MAPS, "stringData": _MAPS, "type": _TEXT, "immutable": _BOOL},
    "ConfigMap": {"data": _MAPS, "binaryData": _MAPS, "immutable": _BOOL},
    "ServiceAccount": {"secrets": _DICTS, "imagePullSecrets": _DICTS, "automountServiceAccountToken": _BOOL},
    "Service": {"spec": _SERVICE_SPEC, "status": {"loadBalancer": _DICT}},
    "Event": _EVENT,
    "Lease": {"spec": _LEASE_SPEC},
    "CSINode": {"spec": {"drivers": _DICTS}},
    "CSIDriver": {"spec": {"attachRequired": _BOOL}},
    "RuntimeClass": {"handler": _TEXT},
    "Binding": {"target": {"kind": _TEXT, "name": _TEXT}},
    "TokenRequest": {"spec": {"audiences": _TEXTS, "expirationSeconds": _WHOLE, "boundObjectRef": _DICT}},
    "Eviction": {"deleteOptions": _DICT},
}
_TYPES = {kind: _struct(kind, {"metadata": _META, **fields}) for kind, fields in _BY_KIND.items()}
_PLAIN = _struct("Object", {"metadata": _META, "spec": _DICT, "status": _DICT})

_MISMATCH = re.compile(r"Expected `(.+?)`, got `(.+?)`(?: - at `\$\.?(.*?)`)?$")
_GO = {
    "int": "number",
    "float": "number",
    "str": "string",
    "bool": "bool",
    "object": "object",
    "array": "array",
}
_GO_TYPES = {
    "int": "int64",
    "str": "string",
    "bool": "bool",
    "object": "map[string]interface {}",
    "array": "[]interface {}",
}


_DECODERS = {kind: msgspec.json.Decoder(shape) for kind, shape in (*_TYPES.items(), ("", _PLAIN))}
_STATUS_DECODERS = {
    kind: msgspec.json.Decoder(_struct(kind, {"metadata": _META, "status": fields.get("status", _DICT)}))
    for kind, fields in (*_BY_KIND.items(), ("", {}))
}


def check_stored(kind: str, value: bytes, status_only: bool = False) -> str | None:
    """As `misfit`, of an object that has been encoded; `status_only` where the rest is as it was."""
    decoders = _STATUS_DECODERS if status_only else _DECODERS
    try:
        decoders.get(kind, decoders[""]).decode(value)
    except msgspec.ValidationError as error:
        return mismatch(kind, error)
    return None


def misfit(kind: str, obj: object) -> str | None:
    """What encoding/json would say about the first part of `obj` that has another type; None if all is well."""
    try:
        msgspec.convert(obj, _TYPES.get(kind, _PLAIN))
    except msgspec.ValidationError as error:
        return mismatch(kind, error)
    return None


def mismatch(kind: str, error: msgspec.ValidationError) -> str:
    """msgspec's complaint in encoding/json's words."""
    found = _MISMATCH.match(str(error))
    if found is None:
        return f"json: cannot unmarshal into Go value of type v1.{kind}: {error}"
    wanted, got, path = found.groups()
    wanted = wanted.removesuffix(" | null")
    field = re.sub(r"\[[^\]]*\]", "", path or "")
    into = f"Go struct field {kind}.{field} of type {_GO_TYPES.get(wanted, wanted)}"
    return f"json: cannot unmarshal {_GO.get(got, got)} into {into}"
