"""Namespaces, nodes, secrets, configmaps and service accounts."""

from __future__ import annotations

import base64

from harness.apiserver.apierrors import FieldError, bad_request, forbidden_value, invalid_value
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep
from harness.apiserver.strategies.names import dns_label

NAME_LABEL = "kubernetes.io/metadata.name"
_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def string_map(new: Object, kind: str, field: str) -> None:
    """Refuse values that Go's map[string]string cannot hold; drop an empty map."""
    values = new.get(field)
    if not values:
        new.pop(field, None)
        return
    for value in values.values():
        if not isinstance(value, str):
            raise _cannot_unmarshal(value, kind, field)


def _cannot_unmarshal(value: object, kind: str, field: str) -> Exception:
    go = {bool: "bool", int: "number", float: "number", dict: "object", list: "array"}.get(
        type(value), "null"
    )
    return bad_request(
        f'{kind} in version "v1" cannot be handled as a {kind}: json: cannot unmarshal {go} into Go struct field '
        f"{kind}.{field} of type string"
    )


def check_base64(new: Object, kind: str, field: str) -> None:
    """Go decodes []byte strictly; the first fault's offset is in the message (encoding/base64 CorruptInputError)."""
    for text in (new.get(field) or {}).values():
        if not isinstance(text, str):
            raise _cannot_unmarshal(text, kind, field)
        at = corrupt_at(text)
        if at is not None:
            raise bad_request(
                f'{kind} in version "v1" cannot be handled as a {kind}: illegal base64 data at input byte {at}'
            )


_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def corrupt_at(text: str) -> int | None:
    """Offset at which Go's decoder gives up on `text`, None if it is valid base64."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        for index, character in enumerate(text):
            if character not in _BASE64 and not (character == "=" and index >= len(text) - 2):
                return index
        return len(text) - len(text) % 4
    return None


class NamespaceStrategy(Strategy):
    """Life and death of namespaces: spec.finalizers hold one until its content is gone."""

    name_check = staticmethod(dns_label)

    def default(self, new: Object) -> None:
        labels = new["metadata"].setdefault("labels", {})
        if "name" in new["metadata"]:
            labels[NAME_LABEL] = new["metadata"]["name"]

    def prepare_create(self, new: Object, context: Context) -> None:
        self.default(new)  # the name may have been generated since
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        new["spec"] = {
            "finalizers": [*finalizers, *(["kubernetes"] if "kubernetes" not in finalizers else [])]
        }
        new["status"] = {"phase": "Active"}

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        keep(new, old, "spec")
        keep(new, old, "status")


class NodeStrategy(Strategy):
    """Nodes are created with their status, as kubelets do."""

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        if spec is None:
            new["spec"] = spec = {}
        drop_empty(spec, "taints")
        status = new.get("status")
        if status is None:
            new["status"] = status = {}
        status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {}).setdefault("Port", 0)
        info = status.setdefault("nodeInfo", {})
        for key in _NODE_INFO:
            info.setdefault(key, "")
        drop_empty(status, "conditions", "addresses", "images", "volumesInUse", "volumesAttached")
        capacity = status.get("capacity")
        if capacity and not status.get("allocatable"):
            status["allocatable"] = dict(capacity)  # kk/pkg/apis/core/v1/defaults.go SetDefaults_NodeStatus
        for condition in status.get("conditions") or ():
            condition.setdefault("lastHeartbeatTime", None)
            condition.setdefault("lastTransitionTime", None)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before, after = old["spec"].get("podCIDR"), new["spec"].get("podCIDR")
        if before and before != after:
            detail = "node updates may only change labels, taints, or capacity"
            return [forbidden_value("spec.podCIDRs", detail)]
        return []


class SecretStrategy(Strategy):
    fields = ("immutable", "data", "type")

    def default(self, new: Object) -> None:
        check_base64(new, "Secret", "data")
        plain = new.get("stringData")
        if plain:
            data = new.setdefault("data", {})
            for key, text in plain.items():
                data[key] = base64.b64encode(text.encode()).decode()
        new.pop("stringData", None)
        drop_empty(new, "data")
        if not new.get("type"):
            new["type"] = "Opaque"

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = []
        if new["type"] != old.get("type", "Opaque"):
            errors.append(invalid_value("type", new["type"], "field is immutable"))
        return errors + immutable_errors(new, old, ("data",))


class ConfigMapStrategy(Strategy):
    fields = ("immutable", "data", "binaryData")

    def default(self, new: Object) -> None:
        string_map(new, "ConfigMap", "data")
        check_base64(new, "ConfigMap", "binaryData")
        drop_empty(new, "binaryData")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable_errors(new, old, ("data", "binaryData"))


def immutable_errors(new: Object, old: Object, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    detail = "field is immutable when `immutable` is set"
    errors = [] if new.get("immutable") else [forbidden_value("immutable", detail)]
    return errors + [forbidden_value(key, detail) for key in fields if new.get(key) != old.get(key)]


class ServiceAccountStrategy(Strategy):
    fields = ("secrets", "imagePullSecrets", "automountServiceAccountToken")
    returns_deleted = True

    def default(self, new: Object) -> None:
        drop_empty(new, "secrets", "imagePullSecrets")
