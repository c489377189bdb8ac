"""managedFields as a table by manager, and its JSON (am/util/managedfields/internal/managedfields.go)."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from harness.apiserver.apply.encoding import FieldsError, from_fields, to_fields
from harness.apiserver.apply.fieldset import FieldSet
from harness.wire.rfc3339 import parse

APPLY = "Apply"
UPDATE = "Update"
FIELDS_TYPE = "FieldsV1"
Encoded = dict[str, Any]


class Manager(NamedTuple):
    """Who owns fields: as upstream's manager identifier, an applier is the same whatever version it applies
    (BuildManagerIdentifier)."""

    name: str
    operation: str
    api_version: str = ""
    subresource: str = ""


class Owned(msgspec.Struct, frozen=True):
    """What a manager owns: `fields` of `api_version`; `time` is when that last changed, as RFC 3339, "" unknown."""

    fields: FieldSet
    api_version: str
    time: str = ""


Managers = dict[Manager, Owned]


def manager_for(name: str, operation: str, api_version: str, subresource: str) -> Manager:
    return Manager(name or "unknown", operation, "" if operation == APPLY else api_version, subresource)


def decode(entries: Any) -> Managers:
    """The table of metadata.managedFields, empty where that is unset. Raises FieldsError."""
    if entries is None:
        return {}
    if not isinstance(entries, list):
        raise FieldsError(f"managedFields are no list: {entries!r}")
    found: Managers = {}
    for index, entry in enumerate(entries):
        manager, owned = _entry(index, entry)
        found[manager] = owned
    return found


def _entry(index: int, entry: Any) -> tuple[Manager, Owned]:
    if not isinstance(entry, dict):
        raise FieldsError(f"managed fields entry {index} is no object")
    operation, version = entry.get("operation"), entry.get("apiVersion")
    if operation not in (APPLY, UPDATE):
        raise FieldsError("operation must be `Apply` or `Update`")
    if not isinstance(version, str) or not version:
        raise FieldsError("apiVersion must not be empty")
    kind = entry.get("fieldsType")
    if not kind:
        raise FieldsError(f"missing fieldsType in managed fields entry {index}")
    if kind != FIELDS_TYPE:
        raise FieldsError(f'invalid fieldsType "{kind}" in managed fields entry {index}')
    name, subresource = entry.get("manager") or "", entry.get("subresource") or ""
    time = entry.get("time") or ""
    if not all(isinstance(text, str) for text in (name, subresource, time)):
        raise FieldsError(f"managed fields entry {index} has a field of a wrong type")
    manager = Manager(name, operation, "" if operation == APPLY else version, subresource)
    return manager, Owned(from_fields(entry.get("fieldsV1") or {}), version, time)


def encode(managers: Managers) -> list[Encoded]:
    """The entries in upstream's order: by operation, time, name, version, subresource (:208)."""
    return [_encoded(manager, managers[manager]) for manager in sorted(managers, key=_sort_key(managers))]


def _sort_key(managers: Managers) -> Any:
    def key(manager: Manager) -> tuple[Any, ...]:
        owned = managers[manager]
        at = seconds_of(owned.time)
        return manager.operation, at, manager.name, owned.api_version, manager.subresource

    return key


def seconds_of(time: str) -> int:
    try:
        return int(parse(time)) if time else 0
    except ValueError:
        return 0


def _encoded(manager: Manager, owned: Owned) -> Encoded:
    entry: Encoded = {"manager": manager.name} if manager.name else {}
    entry |= {"operation": manager.operation, "apiVersion": owned.api_version}
    if owned.time:
        entry["time"] = owned.time
    entry |= {"fieldsType": FIELDS_TYPE, "fieldsV1": to_fields(owned.fields)}
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def is_reset(entries: Any) -> bool:
    """Whether a client wants managedFields gone: it sends an empty list, or one with one empty entry
    (fieldmanager.go:173)."""
    return isinstance(entries, list) and (not entries or entries == [{}])
