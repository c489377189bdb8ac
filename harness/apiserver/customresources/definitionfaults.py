"""What is wrong with a CustomResourceDefinition (ae/pkg/apis/apiextensions/validation/validation.go)."""

from __future__ import annotations

from typing import Any

from harness.apiserver.apierrors import FieldError, forbidden_value, invalid_value, not_supported, required
from harness.apiserver.customresources.jsonpath import is_simple_path
from harness.apiserver.customresources.names import ESTABLISHED, Object, is_true
from harness.apiserver.strategies.names import dns1035_label, dns_subdomain, faults_of

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SCHEMA_TYPES = ("array", "boolean", "integer", "number", "object", "string")


def definition_errors(definition: Object) -> list[FieldError]:
    spec, name = definition["spec"], definition["metadata"].get("name", "")
    plural, group = spec["names"].get("plural", ""), spec.get("group", "")
    errors = []
    if name != f"{plural}.{group}":
        errors.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    errors += _group_errors(group)
    if not spec.get("scope"):
        errors.append(required("spec.scope"))
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid_value("spec.preserveUnknownFields", True, detail))
    errors += _versions_errors(spec.get("versions") or [])
    errors += _names_errors(spec["names"])
    errors += _conversion_errors(spec.get("conversion") or {})
    return errors


def update_errors(new: Object, old: Object) -> list[FieldError]:
    """Beside what is wrong with the new one: what an established one cannot change."""
    errors = []
    spec, before = new["spec"], old["spec"]
    if is_true(old, ESTABLISHED):
        pairs = [("spec.scope", spec.get("scope"), before.get("scope"))]
        pairs.append(("spec.names.kind", spec["names"].get("kind"), before["names"].get("kind")))
        errors += [
            invalid_value(field, now, "field is immutable") for field, now, then in pairs if now != then
        ]
    for field, now, then in (
        ("spec.group", spec.get("group"), before.get("group")),
        ("spec.names.plural", spec["names"].get("plural"), before["names"].get("plural")),
    ):
        if now != then:
            errors.append(invalid_value(field, now, "field is immutable"))
    known = [version.get("name") for version in spec.get("versions") or ()]
    for at, stored in enumerate((new.get("status") or {}).get("storedVersions") or ()):
        if stored not in known:
            detail = (
                f"missing from spec.versions; {stored} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{stored} and removes {stored} from status.storedVersions"
            )
            errors.append(invalid_value(f"status.storedVersions[{at}]", stored, detail))
    return errors


def _group_errors(group: str) -> list[FieldError]:
    if not group:
        return [required("spec.group")]
    faults = list(faults_of(dns_subdomain, group))
    if faults:
        return [invalid_value("spec.group", group, ",".join(faults))]
    if "." not in group:
        return [invalid_value("spec.group", group, "should be a domain with at least one dot")]
    return []


def _versions_errors(versions: list[Object]) -> list[FieldError]:
    errors = []
    names = [version.get("name", "") for version in versions]
    for at, version in enumerate(versions):
        path = f"spec.versions[{at}]"
        faults = list(faults_of(dns1035_label, names[at]))
        if faults:
            errors.append(invalid_value(f"{path}.name", names[at], ",".join(faults)))
        errors += _version_errors(path, version)
    if len(set(names)) != len(names):
        errors.append(invalid_value("spec.versions", versions, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", versions, detail))
    return errors


def _version_errors(path: str, version: Object) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        return [required(f"{path}.schema.openAPIV3Schema", "schemas are required")]
    where = f"{path}.schema.openAPIV3Schema"
    errors = []
    if schema.get("type") != "object":
        given = schema.get("type")
        detail = "must be object at the root"
        errors.append(
            required(f"{where}.type", "must not be empty at the root")
            if not given
            else invalid_value(f"{where}.type", given, detail)
        )
    if schema.get("nullable"):
        errors.append(forbidden_value(f"{where}.nullable", "nullable cannot be true at the root"))
    errors += _schema_errors(where, schema, root=True)
    errors += _columns_errors(
        f"{path}.additionalPrinterColumns", version.get("additionalPrinterColumns") or []
    )
    for at, field in enumerate(version.get("selectableFields") or ()):
        given = field.get("jsonPath", "")
        if not given:
            errors.append(required(f"{path}.selectableFields[{at}].jsonPath"))
        elif given.startswith(".metadata"):
            detail = "must not point to fields in metadata"
            errors.append(invalid_value(f"{path}.selectableFields[{at}].jsonPath", given, detail))
    errors += _scale_errors(f"{path}.subresources.scale", (version.get("subresources") or {}).get("scale"))
    return errors


def _schema_errors(path: str, schema: Any, root: bool = False) -> list[FieldError]:
    """What makes a schema structural, and the rules of its extensions (ae/pkg/apiserver/schema/validation.go)."""
    if not isinstance(schema, dict):
        return []
    errors = []
    type = schema.get("type", "")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not type and not free and not root:
        errors.append(required(f"{path}.type", "must not be empty for specified object fields"))
    elif type and type not in _SCHEMA_TYPES:
        errors.append(not_supported(f"{path}.type", type, _SCHEMA_TYPES))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden_value(f"{path}.uniqueItems", detail))
    if schema.get("properties") and isinstance(schema.get("additionalProperties"), dict):
        detail = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden_value(f"{path}.additionalProperties", detail))
    errors += _list_errors(path, schema, type)
    for name, inner in (schema.get("properties") or {}).items():
        if not (root and name == "metadata"):
            errors += _schema_errors(f"{path}.properties[{name}]", inner)
    for name in ("items", "additionalProperties"):
        errors += _schema_errors(f"{path}.{name}", schema.get(name))
    if type == "array" and schema.get("items") is None:
        errors.append(required(f"{path}.items", "must be specified"))
    return errors


def _list_errors(path: str, schema: Object, type: str) -> list[FieldError]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    errors = []
    if list_type is not None:
        if type != "array":
            detail = "must be array if x-kubernetes-list-type is specified"
            errors.append(
                invalid_value(f"{path}.type", type, detail) if type else required(f"{path}.type", detail)
            )
        if list_type not in ("atomic", "set", "map"):
            errors.append(
                not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
            )
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        field = f"{path}.x-kubernetes-list-type"
        errors.append(
            required(field, detail) if list_type is None else invalid_value(field, list_type, detail)
        )
    if list_type == "map" and not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        errors.append(required(f"{path}.x-kubernetes-list-map-keys", detail))
    return errors


def _columns_errors(path: str, columns: list[Object]) -> list[FieldError]:
    errors = []
    for at, column in enumerate(columns):
        where, type, format = f"{path}[{at}]", column.get("type", ""), column.get("format", "")
        if not column.get("name"):
            errors.append(required(f"{where}.name"))
        if type not in _COLUMN_TYPES:
            detail = f"must be one of {','.join(_COLUMN_TYPES)}"
            errors.append(
                invalid_value(f"{where}.type", type, detail) if type else required(f"{where}.type", detail)
            )
        if format and format not in _FORMATS:
            errors.append(invalid_value(f"{where}.format", format, f"must be one of {','.join(_FORMATS)}"))
        if not column.get("jsonPath"):
            errors.append(required(f"{where}.jsonPath"))
    return errors


def _scale_errors(path: str, scale: Object | None) -> list[FieldError]:
    if not scale:
        return []
    errors = []
    for field, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        given = scale.get(field, "")
        if not given:
            errors.append(required(f"{path}.{field}"))
        elif not is_simple_path(given) or not given.startswith(root):
            detail = f"should be a json path under {root[:-1]}"
            errors.append(invalid_value(f"{path}.{field}", given, detail))
    return errors


def _names_errors(names: Object) -> list[FieldError]:
    errors = []
    for field in ("plural", "singular", "kind", "listKind"):
        given = names.get(field, "")
        if not given:
            errors.append(required(f"spec.names.{field}"))
            continue
        faults = ",".join(faults_of(dns1035_label, given.lower() if field in ("kind", "listKind") else given))
        if faults:
            case = (
                "may have mixed case, but should otherwise match: " if field in ("kind", "listKind") else ""
            )
            errors.append(invalid_value(f"spec.names.{field}", given, case + faults))
    for field in ("shortNames", "categories"):
        for at, given in enumerate(names.get(field) or ()):
            faults = ",".join(faults_of(dns1035_label, given))
            if faults:
                errors.append(invalid_value(f"spec.names.{field}[{at}]", given, faults))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        errors.append(invalid_value("spec.names.listKind", names["listKind"], detail))
    return errors


def _conversion_errors(conversion: Object) -> list[FieldError]:
    strategy = conversion.get("strategy")
    if strategy not in ("None", "Webhook"):
        return [not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))]
    if strategy == "None" and conversion.get("webhook"):
        detail = "should not be set when strategy is not set to Webhook"
        return [forbidden_value("spec.conversion.webhook", detail)]
    return []
