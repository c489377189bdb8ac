"""Sets of fields of an object, as a tree (smd/fieldpath/set.go, element.go, path.go).

A field is a path of elements; an element is the text that FieldsV1 has for it: ``f:name`` a field or a key of a map,
``k:{"port":80}`` an item of a list by its keys, ``v:"x"`` an item of a set, ``i:0`` an index. Elements are canonical:
JSON without spaces, keys sorted. So they compare as strings; only their order needs a look inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from harness.wire.gotext import quote

Path = tuple[str, ...]
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def field(name: str) -> str:
    """The element of an object's field or a map's key."""
    return "f:" + name


def keyed(keys: Mapping[str, Any]) -> str:
    """The element of a list's item with these values of its keys."""
    return "k:" + _compact({name: _plain(keys[name]) for name in sorted(keys)})


def valued(value: Any) -> str:
    """The element of a set's item."""
    return "v:" + _compact(_plain(value))


def _compact(value: Any) -> str:
    return _encode(value).decode()


def _plain(value: Any) -> Any:
    """Numbers are equal by value, whatever their type (smd/value/value.go:277)."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=4096)
def order(element: str) -> tuple[Any, ...]:
    """A sort key: fields, then keys, then values, then indexes (element.go:87)."""
    kind, text = element[0], element[2:]
    if kind == "f":
        return 0, text
    if kind == "k":
        return 1, tuple((name, _value_order(value)) for name, value in _decode(text.encode()).items())
    if kind == "v":
        return 2, _value_order(_decode(text.encode()))
    return 3, int(text)


def _value_order(value: Any) -> tuple[Any, ...]:
    """Numbers, strings, bools, and the rest by its text: sets have scalars only."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return 3, _compact(value)


def shown(path: Path) -> str:
    """A path as messages have it: ``.spec.ports[port=80,protocol="TCP"].name``."""
    return "".join(map(_shown, path))


def _shown(element: str) -> str:
    kind, text = element[0], element[2:]
    if kind == "f":
        return "." + text
    if kind == "k":
        pairs = _decode(text.encode()).items()
        return "[" + ",".join(f"{name}={_shown_value(value)}" for name, value in pairs) + "]"
    return f"[={_shown_value(_decode(text.encode()))}]" if kind == "v" else f"[{text}]"


def _shown_value(value: Any) -> str:
    return quote(value) if isinstance(value, str) else _compact(value)


class FieldSet:
    """Operations give new sets; parts are shared, so nothing but `insert` changes one, and only its maker calls it.

    `members` are the elements that are in the set themselves, `children` the sets below elements. No child is empty.
    """

    __slots__ = ("children", "members")

    def __init__(self, members: Iterable[str] = (), children: Mapping[str, FieldSet] | None = None) -> None:
        self.members = set(members)
        self.children: dict[str, FieldSet] = dict(children) if children else {}

    @classmethod
    def of(cls, *paths: Path) -> FieldSet:
        made = cls()
        for path in paths:
            made.insert(path)
        return made

    def insert(self, path: Path) -> None:
        """The empty path, the object as a whole, is never tracked."""
        if not path:
            return
        at = self
        for element in path[:-1]:
            below = at.children.get(element)
            if below is None:
                below = at.children[element] = FieldSet()
            at = below
        at.members.add(path[-1])

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FieldSet) and self.members == other.members and self.children == other.children
        )

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, path: Path) -> bool:
        at = self
        for element in path[:-1]:
            below = at.children.get(element)
            if below is None:
                return False
            at = below
        return bool(path) and path[-1] in at.members

    def __iter__(self) -> Iterator[Path]:
        """All paths in upstream's order: the members of a level, then what is below it."""
        for element in sorted(self.members, key=order):
            yield (element,)
        for element in sorted(self.children, key=order):
            for rest in self.children[element]:
                yield (element, *rest)

    def __repr__(self) -> str:
        return f"<FieldSet {', '.join(map(shown, self))}>"

    def below(self, element: str) -> FieldSet:
        return self.children.get(element, EMPTY)

    def __or__(self, other: FieldSet) -> FieldSet:
        children = dict(self.children)
        for element, theirs in other.children.items():
            ours = children.get(element)
            children[element] = theirs if ours is None else ours | theirs
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        return FieldSet(
            self.members & other.members,
            {
                element: both
                for element in self.children.keys() & other.children.keys()
                if (both := self.children[element] & other.children[element])
            },
        )

    def __sub__(self, other: FieldSet) -> FieldSet:
        children = {}
        for element, ours in self.children.items():
            theirs = other.children.get(element)
            left = ours if theirs is None else ours - theirs
            if left:
                children[element] = left
        return FieldSet(self.members - other.members, children)

    def without(self, other: FieldSet) -> FieldSet:
        """Like `-`, but a member of `other` takes along all that is below it (RecursiveDifference)."""
        children = {}
        for element, ours in self.children.items():
            if element in other.members:
                continue
            theirs = other.children.get(element)
            left = ours if theirs is None else ours.without(theirs)
            if left:
                children[element] = left
        return FieldSet(self.members - other.members, children)


EMPTY = FieldSet()
