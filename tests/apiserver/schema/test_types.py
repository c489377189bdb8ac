"""Type trees: of built-in kinds out of the client's models, of custom ones out of their schemas."""

import subprocess
import sys

import pytest

from harness.apiserver.resources import RESOURCES
from harness.apiserver.schema import Schema, models, schema_for, schema_from_openapi, structure_of
from harness.apiserver.schema.listtypes import ATOMIC_MAPS, ATOMIC_TYPES, MAP_LISTS, SETS


def at(schema: Schema | None, path: str) -> Schema:
    for part in path.split("."):
        assert schema is not None
        schema = schema.items if part == "*" else schema.fields[part]
    assert schema is not None
    return schema


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.group_resource)
def test_every_served_kind_has_a_structure(resource: object) -> None:
    schema = schema_for(resource.api_version, resource.kind)  # type: ignore[attr-defined]
    assert schema is not None
    assert {"apiVersion", "kind", "metadata"} <= schema.fields.keys()


@pytest.mark.parametrize(
    ("kind", "path", "type", "format"),
    [
        ("v1/Pod", "spec.priority", "integer", "int32"),
        ("v1/Pod", "spec.terminationGracePeriodSeconds", "integer", "int64"),
        ("v1/Pod", "spec.containers.*.ports.*.containerPort", "integer", "int32"),
        ("v1/Pod", "spec.containers.*.resources.limits.*", "quantity", ""),
        ("v1/Pod", "spec.containers.*.livenessProbe.httpGet.port", "int-or-string", ""),
        ("v1/Pod", "spec.hostNetwork", "boolean", ""),
        ("v1/Pod", "metadata.labels.*", "string", ""),
        ("v1/Pod", "metadata.creationTimestamp", "time", "date-time"),
        ("v1/Pod", "metadata.managedFields.*.fieldsV1", "any", ""),
        ("v1/Secret", "data.*", "bytes", ""),
        ("v1/Node", "status.capacity.*", "quantity", ""),
        ("v1/Service", "spec.ports.*.targetPort", "int-or-string", ""),
        ("coordination.k8s.io/v1/Lease", "spec.renewTime", "time", "micro"),
        ("apps/v1/Deployment", "spec.strategy.rollingUpdate.maxSurge", "int-or-string", ""),
    ],
)
def test_fields_have_their_types(kind: str, path: str, type: str, format: str) -> None:
    api_version, _, name = kind.rpartition("/")
    found = at(schema_for(api_version, name), path)
    assert (found.type, found.format) == (type, format)


@pytest.mark.parametrize(
    ("kind", "path", "list_type", "keys"),
    [
        ("v1/Pod", "spec.containers", "map", ("name",)),
        ("v1/Pod", "spec.containers.*.ports", "map", ("containerPort", "protocol")),
        ("v1/Pod", "spec.topologySpreadConstraints", "map", ("topologyKey", "whenUnsatisfiable")),
        ("v1/Pod", "spec.tolerations", "atomic", ()),
        ("v1/Pod", "metadata.ownerReferences", "map", ("uid",)),
        ("v1/Pod", "metadata.finalizers", "set", ()),
        ("v1/Node", "spec.taints", "atomic", ()),
        ("v1/Node", "status.conditions", "map", ("type",)),
        ("v1/Service", "spec.ports", "map", ("port", "protocol")),
        ("discovery.k8s.io/v1/EndpointSlice", "endpoints", "atomic", ()),
        ("storage.k8s.io/v1/CSINode", "spec.drivers", "map", ("name",)),
    ],
)
def test_lists_merge_as_upstream_s_do(kind: str, path: str, list_type: str, keys: tuple[str, ...]) -> None:
    api_version, _, name = kind.rpartition("/")
    found = at(schema_for(api_version, name), path)
    assert (found.list_type, found.keys) == (list_type, keys)


def test_selectors_and_references_are_atomic() -> None:
    assert at(schema_for("v1", "Service"), "spec.selector").atomic
    assert at(schema_for("v1", "Pod"), "spec.imagePullSecrets.*").atomic
    assert at(schema_for("apps/v1", "Deployment"), "spec.selector").atomic
    assert not at(schema_for("apps/v1", "Deployment"), "spec.template").atomic
    assert not at(schema_for("v1", "PersistentVolume"), "spec.claimRef").atomic


def test_the_tables_name_types_and_fields_that_there_are() -> None:
    known: dict[str, set[str]] = {}

    def walk(schema: Schema, seen: set[str]) -> None:
        if schema.items is not None:
            walk(schema.items, seen)
        if schema.model and schema.model not in seen:
            seen.add(schema.model)
            known.setdefault(schema.name, set()).update(schema.fields)
            for item in schema.fields.values():
                walk(item, seen)

    seen: set[str] = set()
    kinds = [(resource.api_version, resource.kind) for resource in RESOURCES]
    kinds += [("v1", "ComponentStatus"), ("apiregistration.k8s.io/v1", "APIService")]
    kinds += [("certificates.k8s.io/v1", "PodCertificateRequest")]
    kinds += [
        ("resource.k8s.io/v1", "DeviceTaintRule"),
        ("storagemigration.k8s.io/v1", "StorageVersionMigration"),
    ]
    for api_version, kind in kinds:
        if (schema := schema_for(api_version, kind)) is not None:
            walk(schema, seen)
    named = {(owner, field) for owner, fields in MAP_LISTS.items() for field in fields if owner in known}
    named |= {(owner, field) for owner, fields in SETS.items() for field in fields if owner in known}
    named |= set(ATOMIC_MAPS)
    assert not {(owner, field) for owner, field in named if field not in known[owner]}
    assert not ATOMIC_TYPES - known.keys()


def test_kinds_of_several_groups_are_told_apart() -> None:
    core, newer = schema_for("v1", "Event"), schema_for("events.k8s.io/v1", "Event")
    assert core is not None
    assert newer is not None
    assert "involvedObject" in core.fields
    assert "regarding" in newer.fields
    assert core.name == newer.name == "Event"


def test_an_unknown_kind_has_but_metadata() -> None:
    assert schema_for("example.com/v1", "Widget") is None
    plain = structure_of("example.com/v1", "Widget")
    assert plain.preserve_unknown
    assert at(plain, "metadata.labels.*").type == "string"


def test_the_client_package_is_not_imported() -> None:
    code = (
        "import sys; from harness.apiserver.schema import schema_for; schema_for('v1', 'Pod').fields['spec'].fields;"
        "sys.exit('kubernetes' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_models_are_named_after_their_files() -> None:
    assert models.candidates("rbac.authorization.k8s.io", "v1", "Subject") == ("RbacV1Subject", "V1Subject")
    assert models.go_name("CoreV1EventSeries") == "EventSeries"
    assert models.version_of("V1beta1PodCertificateRequest") == "v1beta1"
    assert models.source("V1NoSuchThing") is None


def test_a_structural_schema_becomes_a_tree() -> None:
    tree = schema_from_openapi(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {
                        "parts": {
                            "type": "array",
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                        },
                        "port": {"x-kubernetes-int-or-string": True},
                        "labels": {
                            "type": "object",
                            "additionalProperties": {"type": "string"},
                            "x-kubernetes-map-type": "atomic",
                        },
                        "at": {"type": "string", "format": "date-time"},
                        "any": {},
                    },
                }
            },
        }
    )
    spec = at(tree, "spec")
    assert spec.preserve_unknown
    assert (at(spec, "parts").list_type, at(spec, "parts").keys) == ("map", ("name",))
    assert at(spec, "port").type == "int-or-string"
    assert (at(spec, "labels").type, at(spec, "labels").atomic) == ("map", True)
    assert at(spec, "at").type == "time"
    assert at(spec, "any").type == "any"
    assert at(tree, "metadata.finalizers").list_type == "set"
