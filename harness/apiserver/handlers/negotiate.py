"""Content negotiation: what a request's Accept and Content-Type ask for (as/endpoints/handlers/negotiation)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

import msgspec

from harness.wire.status import StatusError, not_acceptable, unsupported_media_type

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
AVAILABLE = (JSON, YAML, PROTOBUF, "application/json;stream=watch", PROTOBUF + ";stream=watch")
BODIES = (JSON, YAML, PROTOBUF)


class View(Enum):
    """The shape in which an object or a list is returned."""

    OBJECT = ""
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"


class Representation(msgspec.Struct, frozen=True):
    """The outcome: media type and view; `version` is that of meta.k8s.io which the client asked for."""

    media_type: str = JSON
    view: View = View.OBJECT
    version: str = "v1"
    pretty: bool = False


_PLAIN = Representation()
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})  # strconv.ParseBool
_HUMANS = ("curl", "Wget", "Mozilla/5.0")
_VIEWS = {view.value: view for view in View if view.value}


def negotiate(accept: str, protobuf: bool = False, custom: bool = False) -> Representation:
    """The first acceptable clause. Raises StatusError 406 where there is none. `protobuf`: it is offered, else clients
    that prefer it also accept JSON; of `custom` resources it can hold metadata alone."""
    if not accept or accept in (JSON, "*/*"):
        return _PLAIN
    return _parse(accept, protobuf, custom)


@lru_cache(maxsize=256)
def _parse(accept: str, protobuf: bool, custom: bool) -> Representation:
    for media_type, values in sorted(map(_clause, accept.split(",")), key=_preference):
        if media_type in ("*/*", "application/*"):
            media_type = JSON
        wanted, pretty = values.get("as"), values.get("pretty") == "1"
        if media_type == PROTOBUF and protobuf:
            if wanted == View.TABLE.value or (custom and not wanted):
                continue
        elif media_type not in (JSON, YAML):
            continue
        if not wanted:
            return Representation(media_type, pretty=pretty)
        if wanted in _VIEWS and values.get("g") == "meta.k8s.io" and values.get("v") in ("v1", "v1beta1"):
            return Representation(media_type, _VIEWS[wanted], values["v"], pretty)
    raise StatusError(not_acceptable(AVAILABLE))


_Clause = tuple[str, dict[str, str]]


def _clause(text: str) -> _Clause:
    media_type, *parameters = (part.strip() for part in text.split(";"))
    values = (part.partition("=") for part in parameters)
    return media_type, {key.strip(): value.strip() for key, _, value in values}


def _preference(clause: _Clause) -> tuple[float, int]:
    """By weight, then what is named before what is anything (munnerz/goautoneg, ParseAccept)."""
    media_type, values = clause
    try:
        weight = float(values.get("q", "1"))
    except ValueError:
        weight = 1.0
    return -weight, media_type.count("*")


def wants_pretty(headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
    """Whether JSON is to be indented: the client says so, or is one that humans use (negotiate.go:92)."""
    asked = query.get("pretty")
    if asked:
        return asked in _TRUE
    return headers.get("user-agent", "").startswith(_HUMANS)


def body_type(content_type: str) -> str:
    """The media type of a request's body; JSON where none is stated. Raises StatusError 415."""
    media_type = content_type.partition(";")[0].strip()
    if not media_type or media_type == JSON:
        return JSON
    if media_type in (YAML, PROTOBUF):
        return media_type
    raise StatusError(unsupported_media_type(BODIES))
