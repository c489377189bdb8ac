"""What a profile must hold before it may run; the first rule that it breaks is a ConfigError of one line.

The rules are kperf/api/types/load_traffic.go's (Validate), and those that kperf finds out by a panic in the middle of a
run: requests with shares, a key space for patches, a template for objects that are posted. One request with two kinds
is an error here, where kperf takes the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from harness.kperf.profile import (
    CONTENT_TYPES,
    PATCH_TYPES,
    Get,
    GetPodLog,
    List,
    Patch,
    PostDel,
    Put,
    Resource,
    Spec,
    WeightedRequest,
)
from harness.wire.errors import ConfigError

_SHOWN = 80  # characters of a value in a message
_CORE = ("", "core")


class Rules:
    """`where` gives file and line of a key."""

    def __init__(self, where: Callable[[str], str]) -> None:
        self._where = where

    def expect(self, holds: bool, key: str, value: object, rule: str) -> None:
        """Raise ConfigError unless the rule holds."""
        if not holds:
            raise ConfigError(f"{self._where(key)}: {key}: {value!r:.{_SHOWN}}: {rule}")

    def spec(self, spec: Spec, key: str) -> None:
        self.expect(spec.conns > 0, f"{key}.conns", spec.conns, "requires > 0")
        self.expect(spec.rate >= 0, f"{key}.rate", spec.rate, "requires >= 0")
        self.expect(math.isfinite(spec.rate), f"{key}.rate", spec.rate, "requires a finite number")
        ends = spec.total > 0 or spec.duration > 0
        self.expect(ends, f"{key}.total", spec.total, "requires total > 0 or duration > 0")
        self.expect(spec.client > 0, f"{key}.client", spec.client, "requires > 0")
        rule = f"unsupported content type; allowed are {', '.join(CONTENT_TYPES)}"
        self.expect(spec.content_type in CONTENT_TYPES, f"{key}.contentType", spec.content_type, rule)
        for index, request in enumerate(spec.requests):
            self._request(request, f"{key}.requests[{index}]")
        picked = sum(request.shares for request in spec.requests)
        self.expect(picked > 0, f"{key}.requests", picked, "needs a request with shares > 0")

    def _request(self, request: WeightedRequest, key: str) -> None:
        self.expect(request.shares >= 0, f"{key}.shares", request.shares, "requires >= 0")
        kinds = request.kinds()
        self.expect(bool(kinds), key, "no kind of request", f"needs one of {', '.join(_KINDS)}")
        self.expect(len(kinds) == 1, key, list(kinds), "needs exactly one kind of request")
        ((name, kind),) = kinds.items()
        place = f"{key}.{name}"
        if isinstance(kind, Resource):
            for field in ("version", "resource"):
                value = getattr(kind, field)
                self.expect(bool(value), f"{place}.{field}", value, "is required")
        if isinstance(kind, (Get, Patch, Put, GetPodLog)):
            self.expect(bool(kind.name), f"{place}.name", kind.name, "is required")
        match kind:
            case List():
                self._list(kind, place, stale=name == "staleList")
            case Put():
                self._put(kind, place)
            case Patch():
                self._patch(kind, place)
            case GetPodLog():
                self.expect(bool(kind.namespace), f"{place}.namespace", kind.namespace, "is required")
            case PostDel():
                self._post_del(kind, place)

    def _list(self, kind: List, key: str, *, stale: bool) -> None:
        self.expect(kind.limit >= 0, f"{key}.limit", kind.limit, "must be >= 0")
        rule = "a stale list has no pages (kubernetes/kubernetes#108003)"
        self.expect(not (stale and kind.limit), f"{key}.limit", kind.limit, rule)

    def _put(self, kind: Put, key: str) -> None:
        supported = kind.group in _CORE and (kind.version, kind.resource) == ("v1", "configmaps")
        value = f"{kind.group}/{kind.version}/{kind.resource}"
        self.expect(supported, key, value, "only configmaps of core/v1 can be put")
        self._positive(f"{key}.keySpaceSize", kind.key_space_size)
        self._positive(f"{key}.payloadSize", kind.payload_size)

    def _patch(self, kind: Patch, key: str) -> None:
        self.expect(bool(kind.body), f"{key}.body", kind.body, "is required")
        rule = f"unknown patch type; allowed are {', '.join(PATCH_TYPES)}"
        self.expect(kind.patch_type in PATCH_TYPES, f"{key}.patchType", kind.patch_type, rule)
        self.expect(_is_json(kind.body), f"{key}.body", kind.body, "is no JSON")
        self._positive(f"{key}.keySpaceSize", kind.key_space_size)

    def _post_del(self, kind: PostDel, key: str) -> None:
        rule = "must be between 0 and 0.5: more is created than deleted"
        self.expect(0 <= kind.delete_ratio <= 0.5, f"{key}.deleteRatio", kind.delete_ratio, rule)
        self.expect(kind.payload_size >= 0, f"{key}.payloadSize", kind.payload_size, "must be >= 0")
        supported = kind.group in _CORE and (kind.version, kind.resource) == ("v1", "pods")
        value = f"{kind.group}/{kind.version}/{kind.resource}"
        self.expect(supported, key, value, "kperf has a template for pods of core/v1 alone")

    def _positive(self, key: str, value: int) -> None:
        self.expect(value > 0, key, value, "must be > 0")


_KINDS = [field.encode_name for field in msgspec.structs.fields(WeightedRequest) if field.name != "shares"]


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True
