"""What a schema says is wrong with an object, in upstream's words (ae/pkg/apiserver/validation/validation.go over
kube-openapi's pkg/validation). Rules in CEL are not evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from harness.apiserver.apierrors import (
    FieldError,
    duplicate,
    invalid_value,
    not_supported,
    required,
    too_long,
)
from harness.wire.goprint import go_value
from harness.wire.gotext import quote
from harness.wire.status import Cause

Object = dict[str, Any]
_ROOT = ("apiVersion", "kind", "metadata")
_decode_time = msgspec.json.Decoder(datetime).decode


def schema_errors(obj: Object, schema: Object) -> list[FieldError]:
    """Faults of a whole object, in its own order; its metadata is not looked at."""
    value = {key: item for key, item in obj.items() if key not in _ROOT}
    rules = {key: item for key, item in (schema.get("properties") or {}).items() if key not in _ROOT}
    demanded = [name for name in schema.get("required") or () if name not in _ROOT]
    return list(_errors(value, {**schema, "properties": rules, "required": demanded}, ""))


def _errors(value: Any, schema: Object, path: str) -> Iterator[FieldError]:
    if value is None and (schema.get("nullable") or not schema.get("type")):
        return
    wrong = _type_error(value, schema, path)
    if wrong is not None:
        yield wrong
        return
    if schema.get("enum") is not None and value not in schema["enum"]:
        allowed = [item if isinstance(item, str) else json.dumps(item) for item in schema["enum"]]
        yield not_supported(path, value, allowed)
    if isinstance(value, str):
        yield from _string_errors(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_errors(value, schema, path)
    elif isinstance(value, list):
        yield from _list_errors(value, schema, path)
    elif isinstance(value, dict):
        yield from _object_errors(value, schema, path)
    yield from _combined_errors(value, schema, path)


# ---- types ------------------------------------------------------------------------------------------------------
def _kind(value: Any) -> str:
    for type_, name in (
        (bool, "boolean"),
        (str, "string"),
        (int, "integer"),
        (list, "array"),
        (dict, "object"),
    ):
        if isinstance(value, type_):
            return name
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return "null"


def _type_error(value: Any, schema: Object, path: str) -> FieldError | None:
    kind = _kind(value)
    if schema.get("x-kubernetes-int-or-string"):
        if kind in ("integer", "string"):
            return None
        return _mistyped(path, "integer,string", kind)
    wanted = schema.get("type")
    if not wanted or kind == wanted or (kind, wanted) == ("integer", "number"):
        return None
    return _mistyped(path, wanted, kind)


def _mistyped(path: str, wanted: str, kind: str) -> FieldError:
    """Upstream shows what the value is, not what it holds."""
    detail = f"{path} in body must be of type {wanted}: {quote(kind)}"
    return Cause("FieldValueTypeInvalid", f"Invalid value: {quote(kind)}: {detail}", path)


# ---- rules ------------------------------------------------------------------------------------------------------
def _in_body(path: str, what: str) -> str:
    return f"{path} in body {what}"


def _string_errors(value: str, schema: Object, path: str) -> Iterator[FieldError]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        yield too_long(path, longest)
    if shortest is not None and len(value) < shortest:
        yield invalid_value(path, value, _in_body(path, f"should be at least {shortest} chars long"))
    pattern = schema.get("pattern")
    if pattern and not _matches(pattern, value):
        yield invalid_value(path, value, _in_body(path, f"should match '{pattern}'"))
    format = schema.get("format")
    if format == "date-time" and not _is_time(value):
        yield invalid_value(path, value, f"{path} in body must be of type {format}: {quote(value)}")


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern.replace(r"\z", r"\Z"))
    except re.error:
        return None


def _matches(pattern: str, value: str) -> bool:
    """A pattern that only Go's regexp can read is taken to match."""
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(value) is not None


def _is_time(value: str) -> bool:
    try:
        return _decode_time(json.dumps(value)).tzinfo is not None
    except msgspec.ValidationError:
        return False


def _number_errors(value: float, schema: Object, path: str) -> Iterator[FieldError]:
    most, least, factor = schema.get("maximum"), schema.get("minimum"), schema.get("multipleOf")
    if most is not None:
        if schema.get("exclusiveMaximum") and value >= most:
            yield invalid_value(path, value, _in_body(path, f"should be less than {go_value(most)}"))
        elif value > most:
            detail = _in_body(path, f"should be less than or equal to {go_value(most)}")
            yield invalid_value(path, value, detail)
    if least is not None:
        if schema.get("exclusiveMinimum") and value <= least:
            yield invalid_value(path, value, _in_body(path, f"should be greater than {go_value(least)}"))
        elif value < least:
            detail = _in_body(path, f"should be greater than or equal to {go_value(least)}")
            yield invalid_value(path, value, detail)
    if factor and not float(value / factor).is_integer():
        yield invalid_value(path, value, _in_body(path, f"should be a multiple of {go_value(factor)}"))


def _too_many(path: str, count: int, most: int) -> FieldError:
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", path)


def _list_errors(value: list[Any], schema: Object, path: str) -> Iterator[FieldError]:
    most, least, items = schema.get("maxItems"), schema.get("minItems"), schema.get("items")
    if most is not None and len(value) > most:
        yield _too_many(path, len(value), most)
    if least is not None and len(value) < least:
        yield invalid_value(path, len(value), _in_body(path, f"should have at least {least} items"))
    if isinstance(items, dict):
        for at, item in enumerate(value):
            yield from _errors(item, items, f"{path}[{at}]")
    yield from _repeated(value, schema, path)


def _repeated(value: list[Any], schema: Object, path: str) -> Iterator[FieldError]:
    """Elements of sets and maps that stand twice (ae/pkg/apiserver/schema/listtype/validation.go)."""
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if list_type not in ("set", "map"):
        return
    seen: set[str] = set()
    for at, item in enumerate(value):
        if list_type == "map":
            if not isinstance(item, dict):
                continue
            item = {key: item[key] for key in keys if key in item}
        text = json.dumps(item, sort_keys=True)
        if text in seen:
            yield duplicate(f"{path}[{at}]", item)
        seen.add(text)


def _object_errors(value: Object, schema: Object, path: str) -> Iterator[FieldError]:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        yield _too_many(path, len(value), most)
    if least is not None and len(value) < least:
        yield invalid_value(path, len(value), _in_body(path, f"should have at least {least} properties"))
    for name in schema.get("required") or ():
        if name not in value:
            yield required(_below(path, name))
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        rule = properties.get(name) or (additional if isinstance(additional, dict) else None)
        if rule is not None:
            yield from _errors(item, rule, _below(path, name))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _combined_errors(value: Any, schema: Object, path: str) -> Iterator[FieldError]:
    for rule in schema.get("allOf") or ():
        yield from _errors(value, rule, path)
    if (rules := schema.get("anyOf")) and not _passed(value, rules, path):
        yield _uncombined(path, "must validate at least one schema (anyOf)")
    if (rules := schema.get("oneOf")) and (passed := _passed(value, rules, path)) != 1:
        found = f"{passed} valid alternatives" if passed else "none valid"
        yield _uncombined(path, f"must validate one and only one schema (oneOf). Found {found}")
    rule = schema.get("not")
    if rule and _passed(value, [rule], path):
        yield _uncombined(path, "must not validate the schema (not)")


def _passed(value: Any, rules: list[Object], path: str) -> int:
    return sum(not list(_errors(value, rule, path)) for rule in rules)


def _uncombined(path: str, what: str) -> FieldError:
    return invalid_value("<nil>", "", f"{quote(path)} {what}")
