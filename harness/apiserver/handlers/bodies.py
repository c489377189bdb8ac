"""Reading a request's body, with the faults that encoding/json and the decoders of apimachinery report."""

from __future__ import annotations

import operator
from typing import Any

import msgspec

from harness.apiserver.apierrors import bad_request
from harness.apiserver.handlers.negotiate import JSON, PROTOBUF, YAML
from harness.apiserver.handlers.yamltext import YamlError, from_yaml
from harness.apiserver.resources import RESOURCES, Resource
from harness.apiserver.schema.scalars import WRITTEN_AS_NULL
from harness.wire import protobuf
from harness.wire.gojson import syntax_error
from harness.wire.status import StatusError, unsupported_media_type

Object = dict[str, Any]
_decode = msgspec.json.Decoder().decode
_KINDS = {(resource.api_version, resource.kind) for resource in RESOURCES}
_GO_NAMES = {list: "array", str: "string", bool: "bool", type(None): "null"}
_SHOWN_BYTES = 1000


def decode_json(body: bytes) -> Any:
    """Any JSON value. Raises ValueError with Go's text."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ValueError(syntax_error(body) or "invalid character encoding") from None


def decode_object(
    body: bytes, media_type: str, resource: Resource, kind: str = "", version: str = ""
) -> Object:
    """A body that must be one object of `resource` (or of `kind` in `version`, for subresources that take another).

    kind and apiVersion are optional, as upstream defaults them; what else the body holds is not looked at. Raises
    StatusError 400.
    """
    kind, version = kind or resource.kind, version or resource.api_version
    if media_type == YAML:
        value = _from_yaml(body, kind)
    elif media_type == PROTOBUF:
        value = _from_protobuf(body, kind)
    else:
        try:
            value = decode_json(body)
        except ValueError as error:
            raise _unrecognized(kind, f"couldn't get version/kind; json parse error: {error}", body) from None
    if not isinstance(value, dict):
        go = _GO_NAMES.get(type(value), "number")
        text = f"json: cannot unmarshal {go} into Go value of type struct"
        raise _unrecognized(kind, f"couldn't get version/kind; json parse error: {text}", body)
    new: Object = value
    if b"null" in body or media_type == YAML:
        new = settled_nulls(value, resource) if kind == resource.kind else without_nulls(value)
    given_kind, given_version = new.get("kind") or kind, new.get("apiVersion") or version
    if (given_kind, given_version) != (kind, version):
        raise _wrong_kind(given_kind, given_version, kind)
    if new.get("metadata") is None:
        new["metadata"] = {}
    return new


def without_nulls(value: Any) -> Any:
    """`value` without the null members of its objects and lists, which Go's types do not hold; itself where it has
    none. Not changed in place.

    Kept are the nulls that Go writes itself, for times that are zero: an object that a client
    read and sends back has not changed.
    """
    if isinstance(value, dict):
        kept: Any = {
            key: item if item is None else without_nulls(item)
            for key, item in value.items()
            if item is not None or key in WRITTEN_AS_NULL
        }
        same = len(kept) == len(value) and all(kept[key] is item for key, item in value.items())
    elif isinstance(value, list):
        kept = [without_nulls(item) for item in value if item is not None]
        same = len(kept) == len(value) and all(map(operator.is_, kept, value))
    else:
        return value
    return value if same else kept


def settled_nulls(value: Object, resource: Resource) -> Object:
    """An object of `resource` without the nulls that its Go type would not hold: a custom resource has one only for its
    metadata, of all else its schema says what may be null."""
    metadata = value.get("metadata")
    if not resource.custom or not isinstance(metadata, dict):
        settled: Object = without_nulls(value)
        return settled
    return {**value, "metadata": without_nulls(metadata)}


def decode_options(body: bytes, media_type: str) -> Object | None:
    """DeleteOptions, None where there is no body."""
    if not body.strip():
        return None
    if media_type == PROTOBUF:
        return _from_protobuf(body, "DeleteOptions")
    value = _from_yaml(body, "DeleteOptions") if media_type == YAML else _options_json(body)
    return value if isinstance(value, dict) else None


def _options_json(body: bytes) -> Any:
    try:
        return decode_json(body)
    except ValueError as error:
        raise _unrecognized(
            "DeleteOptions", f"couldn't get version/kind; json parse error: {error}", body
        ) from None


def _from_protobuf(body: bytes, kind: str) -> Object:
    try:
        return protobuf.decode_object(body)
    except protobuf.UnknownKind:  # so that a client which can send JSON does
        raise StatusError(unsupported_media_type((JSON, YAML))) from None
    except protobuf.ProtobufError as error:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from None


def _from_yaml(body: bytes, kind: str) -> Any:
    try:
        return from_yaml(body)
    except YamlError as error:
        raise _unrecognized(kind, f"couldn't get version/kind; {error}", body) from None


def _unrecognized(kind: str, why: str, body: bytes) -> StatusError:
    shown = body[:_SHOWN_BYTES].decode("utf-8", "replace") if body else "<empty>"
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({shown})")


def _wrong_kind(kind: object, api_version: object, wanted: str) -> StatusError:
    group, _, version = str(api_version).rpartition("/")
    text = f'{kind} in version "{version}" cannot be handled as a {wanted}: '
    if (api_version, kind) in _KINDS or group in ("", "apps", "batch"):
        return bad_request(text + f"converting ({version}.{kind}) to (core.{wanted}): unknown conversion")
    return bad_request(
        f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'
    )
