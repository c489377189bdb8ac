"""Bodies as their kind's type takes them: fields it does not have, keys that stand twice, values of another type.

Unknown fields are always dropped, as decoding into a struct drops them; whether the client hears of it is its
``fieldValidation`` (as/endpoints/handlers/create.go:125, update.go:95, patch.go:342 and 755).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import yaml

from harness.apiserver.apierrors import bad_request, invalid
from harness.apiserver.handlers.bodies import settled_nulls
from harness.apiserver.handlers.negotiate import PROTOBUF, YAML
from harness.apiserver.resources import Resource
from harness.apiserver.schema import Schema
from harness.apiserver.schema.checked import check_of, no_key_is_lost
from harness.apiserver.schema.decode import Decoded, decode_strictly, decode_value, repeated_keys
from harness.apiserver.schema.tree import ANY, LIST, OBJECT, STRING
from harness.wire.goprint import go_value
from harness.wire.gotext import quote
from harness.wire.request import JSON_PATCH, STRATEGIC_MERGE_PATCH
from harness.wire.status import Cause, StatusError

Object = dict[str, Any]
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_YAML_ERROR = "error converting YAML to JSON: yaml: unmarshal errors:"
_OPERATION = {name: Schema(STRING) for name in ("op", "path", "from")} | {
    "value": Schema(ANY, preserve_unknown=True)
}
_OPERATIONS = Schema(LIST, items=Schema(OBJECT, name="jsonPatchOp", fields=_OPERATION))
_NULL_ITEM = re.compile(rb"[\[,]\s*null")
STRICT, IGNORE = "Strict", "Ignore"


def typed(new: Object, document: bytes, media_type: str, schema: Schema) -> Decoded:
    """The object that decoding a body leaves. `new` is the body as read without a type, its nulls left out."""
    if media_type == PROTOBUF:  # whose fields are known by their numbers
        return Decoded(new, [])
    if media_type == YAML:
        return _typed_yaml(new, document, schema)
    if check_of(schema).fits(document):
        plain = _decode(document) if b"null" in document or not new["metadata"] else new
        if no_key_is_lost(document, plain):
            return Decoded(new, [])
    return _with_metadata(decode_strictly(document, schema))


def _typed_yaml(new: Object, document: bytes, schema: Schema) -> Decoded:
    decoded = _with_metadata(decode_value(new, schema))
    repeated = _repeated_in_yaml(document)
    if repeated:
        decoded.strict.insert(0, "\n".join((_YAML_ERROR, *repeated)))
    return decoded


def _with_metadata(decoded: Decoded) -> Decoded:
    if not decoded.fatal:
        decoded.value.setdefault("metadata", {})
    return decoded


def _repeated_in_yaml(document: bytes) -> list[str]:
    """Keys that stand twice, as go-yaml lists them."""
    found: list[str] = []
    pending = [yaml.compose(document, yaml.SafeLoader)]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.SequenceNode):
            pending += reversed(node.value)
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, _ in node.value:
                if key.value in seen:
                    line = key.start_mark.line + 1
                    found.append(f"  line {line}: key {quote(key.value)} already set in map")
                seen.add(key.value)
            pending += [value for _, value in reversed(node.value)]
    return found


def unknown_fields(paths: Sequence[str]) -> list[str]:
    return [f"unknown field {quote(path)}" for path in paths]


def warnings_of(strict: Sequence[str]) -> list[str]:
    """Faults as they stand in Warning headers: YAML's one by one."""
    lines: list[str] = []
    for fault in strict:
        if fault.startswith(_YAML_ERROR):
            lines += [line.strip() for line in fault.splitlines()[1:]]
        else:
            lines.append(fault)
    return list(dict.fromkeys(lines))


def strict_text(strict: Sequence[str]) -> str:
    return f"strict decoding error: {', '.join(strict)}"


class PatchFields:
    """What a patch is told about fields. `warnings` are those of the last attempt to apply it; while `careful` each
    patched object is decoded before anything else looks at it."""

    def __init__(self, media_type: str, body: bytes, validation: str) -> None:
        self._media_type = media_type
        self._body = body
        self._validation = validation
        self._read: Any = None
        self._repeated = [] if validation == IGNORE else self._repeated_keys()
        self.warnings: list[str] = []
        self.careful = False

    def _repeated_keys(self) -> list[str]:
        """Keys that stand twice in the patch itself; a body that is no JSON is for whoever applies it."""
        try:
            value = self._read = _decode(self._body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return []
        if no_key_is_lost(self._body, value) and self._media_type != JSON_PATCH:
            return []
        if self._media_type != JSON_PATCH:
            return repeated_keys(self._body)
        return [f"json patch {fault}" for fault in decode_strictly(self._body, _OPERATIONS).strict]

    def begin(self) -> Any:
        """An attempt to apply the patch. Raises StatusError 422 where repeated keys are refused. What has been read of
        the body already, for the first attempt only: objects come to share parts with it."""
        self.warnings = []
        if self._repeated:
            self.heard(Decoded(None, []), None)
        read, self._read = self._read, None
        return read

    def without_nulls(self, patched: Object, schema: Schema, resource: Resource) -> Object:
        """A patched object without the nulls that the patch has brought: in lists they are zero values. Raises
        StatusError 422 where that cannot be decoded."""
        body = self._body
        as_members = body.count(b":null") == body.count(
            b"null"
        )  # all of them: a look that costs next to nothing
        if as_members or _NULL_ITEM.search(body) is None or resource.custom:
            # A strategic merge has dropped those of objects itself.
            return patched if self._media_type == STRATEGIC_MERGE_PATCH else settled_nulls(patched, resource)
        decoded = decode_value(patched, schema)
        self.heard(decoded, patched)
        settled: Object = decoded.value
        return settled

    def heard(self, decoded: Decoded, patched: Object | None) -> None:
        """What came of decoding the patched object. Raises StatusError 422 where that is refused."""
        if decoded.fatal:
            strategic = self._media_type == STRATEGIC_MERGE_PATCH
            raise self._invalid(decoded.converting if strategic else decoded.fatal, patched)
        unknown = sorted(decoded.strict) if self._media_type == STRATEGIC_MERGE_PATCH else decoded.strict
        strict = list(dict.fromkeys((*self._repeated, *unknown)))
        if strict and self._validation == STRICT:
            raise self._invalid(strict_text(strict), patched)
        if self._validation != IGNORE:
            self.warnings = list(dict.fromkeys((*self.warnings, *strict)))

    def _invalid(self, why: str, patched: Object | None) -> StatusError:
        if self._media_type == STRATEGIC_MERGE_PATCH or patched is None:
            shown = go_value(_decode(self._body))
        else:
            shown = _encode(patched).decode()
        cause = Cause("FieldValueInvalid", f"Invalid value: {quote(shown)}: {why}", "patch")
        return invalid("", "", "", [cause])


def refused(kind: str, version: str, why: str) -> StatusError:
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')
