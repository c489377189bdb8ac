"""Small schemas, as OpenAPI writes them, for the tables of this folder."""

from __future__ import annotations

from typing import Any

from harness.apiserver.schema import Schema, schema_from_openapi

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def struct(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def mapping(value: Any, atomic: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "additionalProperties": value}
    return made | {"x-kubernetes-map-type": "atomic"} if atomic else made


def listing(item: Any, kind: str = "atomic", *keys: str) -> dict[str, Any]:
    made = {"type": "array", "items": item, "x-kubernetes-list-type": kind}
    return made | {"x-kubernetes-list-map-keys": list(keys)} if keys else made


PORT = struct(port=INTEGER, protocol=STRING, name=STRING)
ITEM = struct(name=STRING, value=STRING, tags=listing(STRING, "set"), inner=struct(a=STRING, b=STRING))
EVERYTHING = struct(
    text=STRING,
    number=INTEGER,
    inner=struct(a=STRING, b=STRING, deep=struct(c=STRING)),
    atom={**struct(a=STRING, b=STRING), "x-kubernetes-map-type": "atomic"},
    labels=mapping(STRING),
    selector=mapping(STRING, atomic=True),
    words=listing(STRING),
    finalizers=listing(STRING, "set"),
    items=listing(ITEM, "map", "name"),
    ports=listing(PORT, "map", "port", "protocol"),
    free={"x-kubernetes-preserve-unknown-fields": True},
)


def everything() -> Schema:
    """Its root also has apiVersion, kind and metadata."""
    return schema_from_openapi(EVERYTHING)
