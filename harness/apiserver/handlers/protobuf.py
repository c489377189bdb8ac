"""Request bodies in protobuf, as Go clients send them: the envelope, and the kinds that kubectl writes that way.

Messages are read by tables of field numbers (k8s.io/api/*/generated.proto); what comes out is the object as JSON would
have given it. Go encodes a string, number or bool that is not a pointer even when it is empty, where JSON leaves it
out, hence two forms of each. Answers stay JSON, which every client that sends protobuf accepts too.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from harness.wire.rfc3339 import micro, seconds

Object = dict[str, Any]
MAGIC = b"k8s\x00"


class ProtobufError(Exception):
    """A body that is no protobuf of a known kind; str() says why."""


class _Message:
    """Fields by number: (JSON name, how to read it, whether it repeats)."""

    def __init__(self, fields: dict[int, tuple[str, Any, bool]]) -> None:
        self.fields = fields


# How a field is read. A pointer keeps its zero value; without one a zero value is left out, as omitempty does.
STRING, NUMBER, BOOL, BYTES, TIME, MICRO, INT_OR_STRING = (
    "string",
    "number",
    "bool",
    "bytes",
    "time",
    "micro",
    "either",
)
POINTER_STRING, POINTER_NUMBER, POINTER_BOOL = "*string", "*number", "*bool"
STRING_MAP, BYTES_MAP = "map[string]", "map[bytes]"


def _one(name: str, how: Any) -> tuple[str, Any, bool]:
    return name, how, False


def _many(name: str, how: Any) -> tuple[str, Any, bool]:
    return name, how, True


_OWNER = _Message(
    {
        1: _one("kind", STRING),
        3: _one("name", STRING),
        4: _one("uid", STRING),
        5: _one("apiVersion", STRING),
        6: _one("controller", POINTER_BOOL),
        7: _one("blockOwnerDeletion", POINTER_BOOL),
    }
)
_META = _Message(
    {
        1: _one("name", STRING),
        2: _one("generateName", STRING),
        3: _one("namespace", STRING),
        5: _one("uid", STRING),
        6: _one("resourceVersion", STRING),
        7: _one("generation", NUMBER),
        8: _one("creationTimestamp", TIME),
        9: _one("deletionTimestamp", TIME),
        10: _one("deletionGracePeriodSeconds", POINTER_NUMBER),
        11: _one("labels", STRING_MAP),
        12: _one("annotations", STRING_MAP),
        13: _many("ownerReferences", _OWNER),
        14: _many("finalizers", STRING),
    }
)
_REFERENCE = _Message(
    {
        1: _one("kind", STRING),
        2: _one("namespace", STRING),
        3: _one("name", STRING),
        4: _one("uid", STRING),
        5: _one("apiVersion", STRING),
        6: _one("resourceVersion", STRING),
        7: _one("fieldPath", STRING),
    }
)
_LOCAL_REFERENCE = _Message({1: _one("name", STRING)})
_PORT = _Message(
    {
        1: _one("name", STRING),
        2: _one("protocol", STRING),
        3: _one("port", NUMBER),
        4: _one("targetPort", INT_OR_STRING),
        5: _one("nodePort", NUMBER),
        6: _one("appProtocol", POINTER_STRING),
    }
)
_SERVICE_SPEC = _Message(
    {
        1: _many("ports", _PORT),
        2: _one("selector", STRING_MAP),
        3: _one("clusterIP", STRING),
        4: _one("type", STRING),
        5: _many("externalIPs", STRING),
        7: _one("sessionAffinity", STRING),
        8: _one("loadBalancerIP", STRING),
        9: _many("loadBalancerSourceRanges", STRING),
        10: _one("externalName", STRING),
        11: _one("externalTrafficPolicy", STRING),
        12: _one("healthCheckNodePort", NUMBER),
        13: _one("publishNotReadyAddresses", BOOL),
        17: _one("ipFamilyPolicy", POINTER_STRING),
        18: _many("clusterIPs", STRING),
        19: _many("ipFamilies", STRING),
        20: _one("allocateLoadBalancerNodePorts", POINTER_BOOL),
        21: _one("loadBalancerClass", POINTER_STRING),
        22: _one("internalTrafficPolicy", POINTER_STRING),
    }
)
_LEASE_SPEC = _Message(
    {
        1: _one("holderIdentity", POINTER_STRING),
        2: _one("leaseDurationSeconds", POINTER_NUMBER),
        3: _one("acquireTime", MICRO),
        4: _one("renewTime", MICRO),
        5: _one("leaseTransitions", POINTER_NUMBER),
    }
)
_EVENT_SOURCE = _Message({1: _one("component", STRING), 2: _one("host", STRING)})
_EVENT_SERIES = _Message({1: _one("count", NUMBER), 2: _one("lastObservedTime", MICRO)})
_TOKEN_SPEC = _Message(
    {
        1: _many("audiences", STRING),
        3: _one(
            "boundObjectRef",
            _Message(
                {
                    1: _one("kind", STRING),
                    2: _one("apiVersion", STRING),
                    3: _one("name", STRING),
                    4: _one("uid", STRING),
                }
            ),
        ),
        4: _one("expirationSeconds", POINTER_NUMBER),
    }
)
_KINDS: dict[tuple[str, str], _Message] = {
    ("v1", "Namespace"): _Message(
        {
            1: _one("metadata", _META),
            2: _one("spec", _Message({1: _many("finalizers", STRING)})),
            3: _one("status", _Message({1: _one("phase", STRING)})),
        }
    ),
    ("v1", "ConfigMap"): _Message(
        {
            1: _one("metadata", _META),
            2: _one("data", STRING_MAP),
            3: _one("binaryData", BYTES_MAP),
            4: _one("immutable", POINTER_BOOL),
        }
    ),
    ("v1", "Secret"): _Message(
        {
            1: _one("metadata", _META),
            2: _one("data", BYTES_MAP),
            3: _one("type", STRING),
            4: _one("stringData", STRING_MAP),
            5: _one("immutable", POINTER_BOOL),
        }
    ),
    ("v1", "ServiceAccount"): _Message(
        {
            1: _one("metadata", _META),
            2: _many("secrets", _REFERENCE),
            3: _many("imagePullSecrets", _LOCAL_REFERENCE),
            4: _one("automountServiceAccountToken", POINTER_BOOL),
        }
    ),
    ("v1", "Service"): _Message({1: _one("metadata", _META), 2: _one("spec", _SERVICE_SPEC)}),
    ("v1", "Binding"): _Message({1: _one("metadata", _META), 2: _one("target", _REFERENCE)}),
    ("v1", "Event"): _Message(
        {
            1: _one("metadata", _META),
            2: _one("involvedObject", _REFERENCE),
            3: _one("reason", STRING),
            4: _one("message", STRING),
            5: _one("source", _EVENT_SOURCE),
            6: _one("firstTimestamp", TIME),
            7: _one("lastTimestamp", TIME),
            8: _one("count", NUMBER),
            9: _one("type", STRING),
            10: _one("eventTime", MICRO),
            11: _one("series", _EVENT_SERIES),
            12: _one("action", STRING),
            13: _one("related", _REFERENCE),
            14: _one("reportingComponent", STRING),
            15: _one("reportingInstance", STRING),
        }
    ),
    ("coordination.k8s.io/v1", "Lease"): _Message({1: _one("metadata", _META), 2: _one("spec", _LEASE_SPEC)}),
    ("authentication.k8s.io/v1", "TokenRequest"): _Message(
        {1: _one("metadata", _META), 2: _one("spec", _TOKEN_SPEC)}
    ),
    ("v1", "DeleteOptions"): _Message(
        {
            1: _one("gracePeriodSeconds", POINTER_NUMBER),
            2: _one(
                "preconditions",
                _Message({1: _one("uid", POINTER_STRING), 2: _one("resourceVersion", POINTER_STRING)}),
            ),
            3: _one("orphanDependents", POINTER_BOOL),
            4: _one("propagationPolicy", POINTER_STRING),
            5: _many("dryRun", STRING),
        }
    ),
}
_OPTIONS_KINDS = frozenset({"DeleteOptions"})  # of every group version


def decode(body: bytes) -> Object:
    """The object in an envelope, kind and apiVersion first. Raises ProtobufError."""
    if not body.startswith(MAGIC):
        raise ProtobufError(
            f"provided data does not appear to be a protobuf message, expected prefix {list(MAGIC)}"
        )
    version = kind = ""
    raw = b""
    for number, value in _fields(body[len(MAGIC) :]):  # runtime.Unknown
        if number == 1:
            for inner, text in _fields(_bytes(value)):
                if inner == 1:
                    version = _bytes(text).decode()
                elif inner == 2:
                    kind = _bytes(text).decode()
        elif number == 2:
            raw = _bytes(value)
    message = _KINDS.get(("v1" if kind in _OPTIONS_KINDS else version, kind))
    if message is None:
        raise ProtobufError(f"{kind} in version {version} is not decoded from protobuf")
    return {"kind": kind, "apiVersion": version, **_read(raw, message)}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers with their values: an int for varints, bytes for anything with a length."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        value: int | bytes
        if wire == 0:
            value, at = _varint(data, at)
        elif wire in (1, 2, 5):
            size, at = (8, at) if wire == 1 else (4, at) if wire == 5 else _varint(data, at)
            if at + size > len(data):
                raise ProtobufError("unexpected EOF")
            value = data[at : at + size]
            at += size
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        yield tag >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ProtobufError("unexpected EOF" if at >= len(data) else "proto: integer overflow")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 0")
    return value


def _read(data: bytes, message: _Message) -> Object:
    found: Object = {}
    for number, value in _fields(data):
        field = message.fields.get(number)
        if field is None:
            continue
        name, how, repeats = field
        if how in (STRING_MAP, BYTES_MAP):
            key, item = _entry(_bytes(value))
            text = base64.b64encode(item).decode() if how == BYTES_MAP else item.decode()
            found.setdefault(name, {})[key] = text
        elif repeats:
            found.setdefault(name, []).append(_value(value, how))
        else:
            read = _value(value, how)
            if read or (read is not None and isinstance(how, str) and how.startswith("*")):
                found[name] = read
    return found


def _entry(data: bytes) -> tuple[str, bytes]:
    key, item = "", b""
    for number, value in _fields(data):
        if number == 1:
            key = _bytes(value).decode()
        elif number == 2:
            item = _bytes(value)
    return key, item


def _value(value: int | bytes, how: Any) -> Any:
    if isinstance(how, _Message):
        return _read(_bytes(value), how)
    kind = how.lstrip("*")
    if kind == STRING:
        return _bytes(value).decode()
    if kind == BYTES:
        return base64.b64encode(_bytes(value)).decode()
    if kind in (TIME, MICRO):
        return _time(_bytes(value), kind)
    if kind == INT_OR_STRING:
        parts = dict(_fields(_bytes(value)))
        return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _signed(parts.get(2, 0))
    return bool(value) if kind == BOOL else _signed(value)


def _signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 2")
    return value - (1 << 64) if value >= 1 << 63 else value


def _time(data: bytes, kind: str) -> str | None:
    """A Timestamp; None for the zero time, which Go encodes as an empty message."""
    parts = dict(_fields(data))
    if not parts:
        return None
    whole, nanos = _signed(parts.get(1, 0)), _signed(parts.get(2, 0))
    return seconds(whole) if kind == TIME else micro(whole + nanos / 1e9)
