"""JSON patch (RFC 6902) on plain values, with the liberties of evanphx/json-patch that apiservers use."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.wire.errors import SwarmletError


class Operation(msgspec.Struct, rename={"source": "from"}):
    """One operation; `value` is UNSET where the document has none, which counts as null."""

    op: str = ""
    path: str = ""
    source: str = ""
    value: Any = msgspec.UNSET


class JsonPatchError(SwarmletError):
    """An operation that does not apply."""


def json_patch(original: Any, operations: list[Operation]) -> Any:
    """`original`, which stays as it is, after all the operations. Raises JsonPatchError where one does not apply."""
    document = _clone(original)
    for operation in operations:
        try:
            document = _apply(document, operation)
        except (_Rejected, KeyError):
            raise JsonPatchError(f"{operation.op} {operation.path!r} does not apply") from None
    return document


class _Rejected(Exception):
    """Raised below for whatever does not apply."""


def _apply(document: Any, operation: Operation) -> Any:
    kind, path = operation.op, _pointer(operation.path)
    if kind in ("add", "replace", "test"):
        value = None if operation.value is msgspec.UNSET else operation.value
        if kind == "add":
            return _add(document, path, _clone(value))
        if kind == "replace":
            _get(document, path)
            return _clone(value) if not path else _replace(document, path, _clone(value))
        if not _equal(_get(document, path, missing_ok=value is None), value):
            raise _Rejected
        return document
    if kind == "remove":
        return _remove(document, path)
    if kind == "move":
        source = _pointer(operation.source)
        if path[: len(source)] == source and path != source:
            raise _Rejected  # into its own child
        value = _get(document, source)
        return _add(_remove(document, source), path, value)
    if kind == "copy":
        return _add(document, path, _clone(_get(document, _pointer(operation.source))))
    raise _Rejected


def _pointer(text: str) -> list[str]:
    """RFC 6901."""
    if not text:
        return []
    if not text.startswith("/"):
        raise _Rejected
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _get(document: Any, path: list[str], *, missing_ok: bool = False) -> Any:
    for at, part in enumerate(path):
        if isinstance(document, dict):
            if part not in document:
                if missing_ok and at == len(path) - 1:
                    return None
                raise _Rejected
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document))]
        else:
            raise _Rejected
    return document


def _index(part: str, length: int) -> int:
    """A place in an array; negative ones count from the end (evanphx/json-patch: SupportNegativeIndices)."""
    digits = part[1:] if part.startswith("-") else part
    if not digits.isdecimal() or not digits.isascii() or (len(digits) > 1 and digits[0] == "0"):
        raise _Rejected
    index = int(part)
    if index < 0:
        index += length
    if not 0 <= index < length:
        raise _Rejected
    return index


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(last, len(parent) + 1), value)
    else:
        raise _Rejected
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    else:
        parent[_index(last, len(parent))] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise _Rejected
    parent, last = _get(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        del parent[last]
    elif isinstance(parent, list):
        del parent[_index(last, len(parent))]
    else:
        raise _Rejected
    return document


def _equal(left: Any, right: Any) -> bool:
    """JSON equality: 1 is 1.0 but not true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)


def _clone(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clone(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clone(item) for item in value]
    return value
