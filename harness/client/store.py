"""What an informer keeps: objects by ``namespace/name`` (cg/tools/cache/store.go), as small views of them.

An object here is whatever the owner's decode function returns. It needs a `metadata` with `name`, `namespace`, `uid`
and `resource_version`; `ObjectMeta` has these and is meant to be subclassed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from enum import Enum
from functools import cache
from typing import Any, TypeAlias

import msgspec

from harness.wire.objectviews import view_decoder

Decode: TypeAlias = Callable[[bytes], Any]


class ObjectMeta(msgspec.Struct, gc=False, rename={"resource_version": "resourceVersion"}):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class ObjectView(msgspec.Struct, gc=False):
    """The least that an informer needs of an object."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


@cache
def decoder_for(view: type[Any]) -> Decode:
    """The decode function of a msgspec Struct, one for all who ask: decoders are not small."""
    return view_decoder(view)


decode_object_view: Decode = decoder_for(ObjectView)


class Change(Enum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    REPLACED = "replaced"
    """The store holds a whole new state. What differs came before it as ADDED, MODIFIED and DELETED."""


class Changed(msgspec.Struct, frozen=True, gc=False):
    """A store changed. `key` is the reflector's key prefix; `object` is None for REPLACED; `old` is what was there
    before, None for ADDED and REPLACED. For DELETED `object` is the state that the deletion carried, or, where a
    deletion was missed and a new list lacks the object, the last known one."""

    key: Hashable
    change: Change
    object: Any = None
    old: Any = None


def object_key(obj: Any) -> str:
    """``namespace/name``, or ``name`` at cluster scope."""
    metadata = obj.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else str(metadata.name)


class Store:
    """Objects by key. Changes are returned, not called back."""

    __slots__ = ("_objects",)

    def __init__(self) -> None:
        self._objects: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        """The object, None if there is none."""
        return self._objects.get(key)

    def values(self) -> Iterable[Any]:
        return self._objects.values()

    def keys(self) -> Iterable[str]:
        return self._objects.keys()

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def apply(self, prefix: Hashable, deleted: bool, obj: Any) -> Changed | None:
        """Take one ADDED, MODIFIED or DELETED event; None if it changes nothing (an unknown object's deletion).

        Whether it counts as added or modified depends on what is there, not on the event, as in an informer.
        """
        key = object_key(obj)
        if deleted:
            old = self._objects.pop(key, None)
            return None if old is None else Changed(prefix, Change.DELETED, obj, old)
        old = self._objects.get(key)
        self._objects[key] = obj
        return Changed(prefix, Change.ADDED if old is None else Change.MODIFIED, obj, old)

    def replace(self, prefix: Hashable, objects: dict[str, Any]) -> list[Changed]:
        """Take a whole state (kept, not copied); the differences, then REPLACED."""
        before, self._objects = self._objects, objects
        changes = list(_differences(prefix, before, objects))
        changes.append(Changed(prefix, Change.REPLACED))
        return changes


class SingleStore(msgspec.Struct, gc=False, eq=False):
    """A `Store` of at most one object: for who watches by name. A dictionary for it would be five times the size."""

    _object: Any = None

    def get(self, key: str) -> Any:
        return self._object if key in self else None

    def values(self) -> Iterable[Any]:
        return () if self._object is None else (self._object,)

    def keys(self) -> Iterable[str]:
        return () if self._object is None else (object_key(self._object),)

    def __len__(self) -> int:
        return self._object is not None

    def __contains__(self, key: object) -> bool:
        return self._object is not None and object_key(self._object) == key

    def apply(self, prefix: Hashable, deleted: bool, obj: Any) -> Changed | None:
        old = self._object
        if deleted:
            self._object = None
            return None if old is None else Changed(prefix, Change.DELETED, obj, old)
        self._object = obj
        return Changed(prefix, Change.ADDED if old is None else Change.MODIFIED, obj, old)

    def replace(self, prefix: Hashable, objects: dict[str, Any]) -> list[Changed]:
        """As `Store.replace`; `objects` has at most one."""
        old, self._object = self._object, next(iter(objects.values()), None)
        before = {} if old is None else {object_key(old): old}
        changes = list(_differences(prefix, before, objects))
        changes.append(Changed(prefix, Change.REPLACED))
        return changes


class NoStore(Store):
    """For one who only hears of objects: a replacement is told, no object and no change is kept. What thousands of
    kube-proxies in one process would keep of all endpoint slices is the same thousands of times over."""

    __slots__ = ()

    def apply(self, prefix: Hashable, deleted: bool, obj: Any) -> Changed | None:
        return None

    def replace(self, prefix: Hashable, objects: dict[str, Any]) -> list[Changed]:
        return [Changed(prefix, Change.REPLACED)]


def _differences(prefix: Hashable, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Changed]:
    for key, old in before.items():
        if key not in after:
            yield Changed(prefix, Change.DELETED, old, old)
    for key, obj in after.items():
        old = before.get(key)
        if old is None:
            yield Changed(prefix, Change.ADDED, obj)
        elif old.metadata.uid != obj.metadata.uid:
            yield Changed(prefix, Change.DELETED, old, old)
            yield Changed(prefix, Change.ADDED, obj)
        elif old.metadata.resource_version != obj.metadata.resource_version:
            yield Changed(prefix, Change.MODIFIED, obj, old)
