"""The type trees of built-in kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial

from harness.apiserver.schema import models
from harness.apiserver.schema.listtypes import ATOMIC_MAPS, ATOMIC_TYPES, GRANULAR_FIELDS, MAP_LISTS, SETS
from harness.apiserver.schema.scalars import MICRO_TIMES, number_format, refined
from harness.apiserver.schema.tree import (
    ANY,
    BOOLEAN,
    BYTES,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    OBJECT,
    STRING,
    TIME,
    Schema,
)

_NAMED = {
    "str": STRING,
    "int": INTEGER,
    "float": NUMBER,
    "bool": BOOLEAN,
    "bytes": BYTES,
    "datetime": TIME,
    "object": ANY,
}
_CONTAINER = re.compile(r"(List|Dict)\[(?:str, )?(.*)\]$")


@cache
def schema_for(api_version: str, kind: str) -> Schema | None:
    """The structure of a built-in kind, None of one that is not known."""
    group, _, version = api_version.rpartition("/")
    for model in models.candidates(group, version, kind):
        if models.source(model) is not None:
            return _of_model(model)
    return None


@cache
def structure_of(api_version: str, kind: str) -> Schema:
    """As `schema_for`; of a kind that is not known only its metadata has a structure."""
    return schema_for(api_version, kind) or Schema(
        OBJECT, name=kind, fields=any_object(), preserve_unknown=True
    )


def any_object() -> dict[str, Schema]:
    """The fields that every object has."""
    return {"apiVersion": Schema(STRING), "kind": Schema(STRING), "metadata": _of_model("V1ObjectMeta")}


@cache
def _of_model(model: str, atomic: bool | None = None) -> Schema:
    name = models.go_name(model)
    return Schema(
        OBJECT,
        name=name,
        model=model,
        resolve=partial(_fields, model, name),
        atomic=name in ATOMIC_TYPES if atomic is None else atomic,
    )


def _fields(model: str, owner: str) -> Mapping[str, Schema]:
    types = models.read(model) or {}
    return {field: _of(owner, field, text) for field, text in types.items()}


def _of(owner: str, field: str, text: str) -> Schema:
    """The type that `text` writes, of a field of `owner`."""
    found = _CONTAINER.match(text)
    if found is None:
        return _plain(owner, field, text)
    items = _of(owner, field, found[2])
    if found[1] == "Dict":
        return Schema(MAP, items=items, atomic=(owner, field) in ATOMIC_MAPS)
    keys = MAP_LISTS.get(owner, {}).get(field, ())
    list_type = "map" if keys else "set" if field in SETS.get(owner, ()) else "atomic"
    return Schema(LIST, items=items, list_type=list_type, keys=keys)


def _plain(owner: str, field: str, text: str) -> Schema:
    type = _NAMED.get(text)
    if type is None:
        return _of_model(text, False if (owner, field) in GRANULAR_FIELDS else None)
    if type == INTEGER:
        return Schema(type, format=number_format(owner, field))
    if type == TIME:
        return Schema(type, format="micro" if f".{field}" in MICRO_TIMES else "date-time")
    return Schema(refined(owner, field, type))
