"""The body of a PATCH, applied: JSON patch (RFC 6902), JSON merge patch (RFC 7386), strategic merge patch.

Objects are plain values as msgspec decodes JSON. An object is never changed in place; results may share parts with
it. What goes wrong is a `PatchError` with the Status that a real apiserver answers
(as/endpoints/handlers/patch.go of v1.36).
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.wire.gojson import syntax_error
from harness.wire.jsonpatch import JsonPatchError, Operation, json_patch
from harness.wire.request import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from harness.wire.status import (
    Status,
    StatusError,
    bad_request,
    rejected_patch,
    unclassified,
    unsupported_media_type,
)
from harness.wire.strategic import MergeError, apply_strategic

MAX_OPERATIONS = 10_000  # patch.go: maxJSONPatchOperations


class PatchError(StatusError):
    """A patch that a real server refuses, with its Status."""


def apply_patch(
    content_type: str, original: dict[str, Any], body: bytes, kind: str, decoded: Any = None
) -> dict[str, Any]:
    """The object that PATCH with this body makes of `original`, which is of `kind` (for strategic merge).

    `decoded` is the body as JSON where it has been read already, for this call alone: the result may share its parts.
    `content_type` may carry parameters. Raises PatchError; also 415 for a type that is none of the three.
    """
    media_type = content_type.partition(";")[0].strip()
    if media_type == STRATEGIC_MERGE_PATCH:
        patch = decoded if isinstance(decoded, dict) else _decode_map(body, "")
        return _strategic(original, patch, kind)
    if media_type == MERGE_PATCH:
        patched: dict[str, Any] = merge_patch(original, _decode_map(body, "error decoding patch: "))
        return patched
    if media_type == JSON_PATCH:
        return _json_patched(original, body)
    raise PatchError(unsupported_media_type())


def _strategic(original: dict[str, Any], patch: dict[str, Any], kind: str) -> dict[str, Any]:
    try:
        return apply_strategic(original, patch, kind)
    except MergeError as error:
        status = bad_request(str(error)) if error.bad_request else unclassified(str(error))
        raise PatchError(status) from None


def _decode(body: bytes, prefix: str, wanted: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = syntax_error(body) or f"json: cannot unmarshal into Go value of type {wanted}: {error}"
        raise PatchError(bad_request(prefix + problem)) from None


def _decode_map(body: bytes, prefix: str) -> dict[str, Any]:
    wanted = "map[string]interface {}"
    patch = _decode(body, prefix, wanted)
    if patch is None:  # Go decodes null into an empty map
        return {}
    if not isinstance(patch, dict):
        raise PatchError(
            bad_request(f"{prefix}json: cannot unmarshal {_json_name(patch)} into Go value of type {wanted}")
        )
    return patch


def _json_name(value: object) -> str:
    """What encoding/json calls a value in its messages."""
    for type_, name in ((bool, "bool"), (list, "array"), (str, "string"), (dict, "object")):
        if isinstance(value, type_):
            return name
    return "number"


def _json_patched(original: dict[str, Any], body: bytes) -> dict[str, Any]:
    try:
        result = json_patch(original, _decode_operations(body))
    except JsonPatchError:
        raise PatchError(rejected_patch()) from None
    if not isinstance(result, dict):
        raise PatchError(rejected_patch())
    return result


def _decode_operations(body: bytes) -> list[Operation]:
    prefix, wanted = "error decoding patch: ", "[]handlers.jsonPatchOp"
    raw = _decode(body, prefix, wanted)
    if not isinstance(raw, list):
        name = _json_name(raw)
        raise PatchError(bad_request(f"{prefix}json: cannot unmarshal {name} into Go value of type {wanted}"))
    try:
        operations = msgspec.convert(raw, list[Operation])
    except msgspec.ValidationError as error:
        raise PatchError(bad_request(f"{prefix}{error}")) from None
    if len(operations) > MAX_OPERATIONS:
        message = (
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}"
        )
        raise PatchError(Status(413, "RequestEntityTooLarge", message))
    return operations


# ---- RFC 7386 ------------------------------------------------------------------------------------------------------
def merge_patch(original: Any, patch: Any) -> Any:
    """Apply a merge patch: maps merge, null deletes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge_patch(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def diff_merge(original: dict[str, Any], modified: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that makes `modified` of `original`; {} where nothing differs. Neither may hold nulls."""
    patch: dict[str, Any] = {key: None for key in original if key not in modified}
    for key, value in modified.items():
        before = original.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            if changes := diff_merge(before, value):
                patch[key] = changes
        elif key not in original or not _same(before, value):
            patch[key] = value
    return patch


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; Python takes False, 0 and 0.0 as equal."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return bool(one == other)
