"""The strategic merge patch that turns one object into another, as client-go's CreateTwoWayMergePatch makes it
(am/util/strategicpatch/patch.go: diffMaps, diffLists), with ``$setElementOrder`` as kubelets send it.
"""

from __future__ import annotations

from typing import Any

from harness.wire.patchschema import Field, Fields, ListField, MapField, fields_of, fields_of_kind
from harness.wire.strategic import DELETE_SCALARS, DIRECTIVE, RETAIN_KEYS, SET_ORDER


def diff_strategic(original: dict[str, Any], modified: dict[str, Any], kind: str) -> dict[str, Any]:
    """A patch that makes `modified` of `original`; {} where nothing differs."""
    return _diff_map(original, modified, fields_of_kind(kind))


def _diff_map(
    original: dict[str, Any], modified: dict[str, Any], fields: Fields, *, retain: bool = False
) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for key, value in modified.items():
        if key in original:
            _diff_field(patch, key, original[key], value, fields.get(key))
        else:
            patch[key] = value
    for key in original:
        if key not in modified:
            patch[key] = None
    if retain and patch:
        patch[RETAIN_KEYS] = sorted(key for key, value in modified.items() if value is not None)
    return patch


def _diff_field(patch: dict[str, Any], key: str, before: Any, after: Any, field: Field | None) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        retain = isinstance(field, MapField) and field.retain_keys
        if changes := _diff_map(before, after, fields_of(field), retain=retain):
            patch[key] = changes
    elif isinstance(before, list) and isinstance(after, list) and isinstance(field, ListField):
        _diff_list(patch, key, before, after, field)
    elif before != after or type(before) is not type(after):
        patch[key] = after


def _diff_list(
    patch: dict[str, Any], name: str, before: list[Any], after: list[Any], field: ListField
) -> None:
    if not before:
        if after:
            patch[name] = after
        return
    if not isinstance(before[0], dict):
        _diff_scalars(patch, name, before, after)
        return
    key = field.key
    old = {element[key]: element for element in before}
    new = {element[key] for element in after}
    changes = []
    for element in after:
        previous = old.get(element[key])
        if previous is None:
            changes.append(element)
        elif difference := _diff_map(previous, element, fields_of(field), retain=field.retain_keys):
            changes.append({**difference, key: element[key]})
    changes += [{DIRECTIVE: "delete", key: gone} for gone in sorted(old.keys() - new, key=str)]
    if changes:
        patch[name] = changes
    if changes or [element[key] for element in before] != [element[key] for element in after]:
        order = [{key: element[key]} for element in after]
        if order:
            patch[SET_ORDER + name] = order


def _diff_scalars(patch: dict[str, Any], name: str, before: list[Any], after: list[Any]) -> None:
    added = [item for item in after if item not in before]
    deleted = sorted((item for item in set(before) if item not in after), key=str)
    if added:
        patch[name] = added
    if deleted:
        patch[DELETE_SCALARS + name] = deleted
    if after and before != after:
        patch[SET_ORDER + name] = after
