"""From parsed YAML to structs: keys to fields as a Go decoder matches them, and mistakes in one line.

An unknown key is passed over (unless it looks like a slip), and null leaves the default.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import msgspec

from harness.wire.errors import ConfigError

T = TypeVar("T", bound=msgspec.Struct)
Where = Callable[[str], str]
"""File and line of a key of the document that is read."""

_NEAR = (
    0.75  # how alike an unknown key and a field are for the one to be a slip for the other (difflib's ratio)
)


def decode_struct(
    document: object,
    kind: type[T],
    where: Where,
    ignored: list[str] | None = None,
    *,
    dec_hook: Callable[[type, object], object] | None = None,
    any_case: bool = True,
) -> T:
    """Read `kind` from parsed YAML; the paths of keys that mean nothing are added to `ignored`.

    `dec_hook` is msgspec's. With `any_case` a key matches its field without regard to case, as in Go's JSON; without it
    exactly, as in go-yaml. Raises ConfigError: file and line by `where`, the key's path, what is allowed. An unknown
    key that is one letter or so away from one that is missing is taken for a mistake, whereas upstream passes over that
    one too.
    """
    unknown: list[_Unknown] = []
    folded = _Folding(any_case, unknown).fold(document, kind, "")
    for key, meant in unknown:
        if meant:
            raise ConfigError(f"{where(key)}: {key}: no such key; did you mean {meant}?")
    try:
        found = msgspec.convert(folded, kind, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `")
        path = path.removesuffix("`").removeprefix("$").removeprefix(".")
        shown = f" ({_value_at(folded, path)!r:.60})" if "got `" in problem else ""
        key = path or "the document"
        raise ConfigError(f"{where(path)}: {key}: {problem[:1].lower()}{problem[1:]}{shown}") from error
    if ignored is not None:
        ignored += [f"{where(key)}: {key}" for key, _ in unknown]
    return found


def _value_at(value: Any, path: str) -> object:
    """What stands at a path such as ``steps[0].phases``; None where the path leads nowhere."""
    for part in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
    return cast(object, value)


class _Unknown(NamedTuple):
    """A key that no field has; `meant` is the field that was probably meant, "" where none is like it."""

    key: str
    meant: str


class _Folding:
    """Spells keys as fields are; `unknown` takes what has no field."""

    def __init__(self, any_case: bool, unknown: list[_Unknown]) -> None:
        self._any_case = any_case
        self._unknown = unknown

    def fold(self, value: object, kind: object, path: str) -> object:
        """`value` with the keys that are fields of `kind` spelled as the field is, and null fields left out."""
        if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
            kind = next(option for option in typing.get_args(kind) if option is not type(None))
        if typing.get_origin(kind) is list and isinstance(value, list):
            (item,) = typing.get_args(kind)
            return [self.fold(entry, item, f"{path}[{index}]") for index, entry in enumerate(value)]
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict)):
            return value
        fields = {field.encode_name.lower(): field for field in msgspec.structs.fields(kind)}
        given = {str(key).lower() for key in value}
        folded = {}
        for key, entry in value.items():
            field = fields.get(str(key).lower())
            place = f"{path}.{key}" if path else str(key)
            if field is None:
                near = difflib.get_close_matches(str(key).lower(), fields.keys() - given, 1, _NEAR)
                self._unknown.append(_Unknown(place, fields[near[0]].encode_name if near else ""))
            elif not self._any_case and key != field.encode_name:
                self._unknown.append(_Unknown(place, field.encode_name))
            elif entry is not None:
                folded[field.encode_name] = self.fold(entry, field.type, place)
        return folded
