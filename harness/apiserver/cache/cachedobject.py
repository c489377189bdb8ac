"""An object as a watch cache holds it: its bytes, and what selectors need to know of it.

Objects live as bytes: encoded once by whoever wrote them, stored without metadata.resourceVersion, spliced with it here
and sent as they are to every reader. Only labels and selectable fields are decoded, through a msgspec view that skips
the rest (design.md, decision 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from sys import intern
from typing import Any

import msgspec

from harness.apiserver.resources import Resource
from harness.wire.selectors import FieldSelector, FieldTerm, LabelSelector

Object = dict[str, Any]

_METADATA = b'"metadata":{'
_VERSION = b'"resourceVersion":"'
_decode_json = msgspec.json.Decoder().decode
_encode_json = msgspec.json.Encoder().encode
_EMPTY: dict[str, str] = {}


def encode_stored(obj: Mapping[str, Any]) -> bytes:
    """The bytes that the store keeps of an object: kind, apiVersion and metadata first, no resourceVersion.

    `splice` relies on that order: nothing before metadata may contain an object. The argument is left as it is.
    """
    metadata = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    ordered = {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": metadata}
    ordered.update((key, value) for key, value in obj.items() if key not in ordered)
    return _encode_json(ordered)


def splice(value: bytes, revision: int) -> bytes:
    """Stored bytes with metadata.resourceVersion put in."""
    at = value.index(_METADATA) + len(_METADATA)
    comma = b"" if value[at] == 0x7D else b","  # }
    return b'%b"resourceVersion":"%d"%b%b' % (value[:at], revision, comma, value[at:])


def respliced(body: bytes, revision: int) -> bytes:
    """A spliced body with another resourceVersion: of a deletion, the object before with the deletion's."""
    at = body.index(_METADATA) + len(_METADATA) + len(_VERSION)
    return b"%b%d%b" % (body[:at], revision, body[body.index(b'"', at) :])


class CachedObject:
    """One version of one object. Never changed once made.

    `body` is its JSON with resourceVersion; `fields` are what field selectors see: metadata.name,
    metadata.namespace (namespaced resources) and those of the resource's row, absent ones as upstream's defaults.
    `protobuf` is set once somebody has needed it (`views.protobuf`).
    """

    __slots__ = (
        "_attributes",
        "_positions",
        "body",
        "key",
        "labels",
        "name",
        "namespace",
        "protobuf",
        "revision",
    )

    protobuf: bytes

    def __init__(
        self,
        key: str,
        revision: int,
        body: bytes,
        namespace: str,
        name: str,
        labels: dict[str, str],
        positions: Mapping[str, int],
        attributes: tuple[str, ...],
    ) -> None:
        self.key = key
        self.revision = revision
        self.body = body
        self.namespace = namespace
        self.name = name
        self.labels = labels
        self._positions = positions
        self._attributes = attributes

    @property
    def fields(self) -> dict[str, str]:
        """Made on each call: a tuple for each object is a sixth of a dict."""
        fields = {name: self._attributes[at] for name, at in self._positions.items()}
        fields["metadata.name"] = self.name
        if self.namespace:
            fields["metadata.namespace"] = self.namespace
        return fields

    def field(self, name: str) -> str:
        """One of `fields`; "" where the resource has no such field."""
        if name == "metadata.name":
            return self.name
        if name == "metadata.namespace":
            return self.namespace
        at = self._positions.get(name)
        return "" if at is None else self._attributes[at]

    def decode(self) -> Object:
        """The whole object, a new one on each call, so that the caller may change it."""
        decoded: Object = _decode_json(self.body)
        return decoded

    def at_revision(self, revision: int) -> CachedObject:
        """The same object under another resourceVersion."""
        return self._with(revision, respliced(self.body, revision))

    def altered(self) -> CachedObject:
        """The same but for one byte, and still JSON: what a broken cache might hold."""
        at = self.body.index(b'"name":"') + len(b'"name":"')
        other = b"y" if self.body[at : at + 1] == b"x" else b"x"
        return self._with(self.revision, self.body[:at] + other + self.body[at + 1 :])

    def _with(self, revision: int, body: bytes) -> CachedObject:
        return CachedObject(
            self.key,
            revision,
            body,
            self.namespace,
            self.name,
            self.labels,
            self._positions,
            self._attributes,
        )

    def __repr__(self) -> str:
        return f"<CachedObject {self.key} at {self.revision}, {len(self.body)} bytes>"


class Selection:
    """Which objects a list or a watch is about: namespace, name, selectors; the exact terms of a field selector on
    metadata.name and metadata.namespace become the name and the namespace (cacher.go, Watch: scope)."""

    __slots__ = ("_labels", "_terms", "everything", "name", "namespace", "unselected")

    def __init__(
        self,
        namespace: str = "",
        name: str = "",
        labels: LabelSelector | None = None,
        fields: FieldSelector | None = None,
    ) -> None:
        terms: tuple[FieldTerm, ...] = fields.terms if fields is not None else ()
        for term in terms:
            if term.equal and term.field == "metadata.name":
                name = name or term.value
            elif term.equal and term.field == "metadata.namespace":
                namespace = namespace or term.value
        self.namespace = intern(namespace)
        self.name = name
        scope = (("metadata.name", name), ("metadata.namespace", namespace))
        self._terms = tuple(term for term in terms if not (term.equal and (term.field, term.value) in scope))
        self._labels = labels if labels is not None and not labels.empty else None
        self.everything = not self._terms and self._labels is None
        """True where namespace and name say it all."""
        self.unselected = not terms and self._labels is None
        """True where there is no selector: then a page says how many objects follow (as/storage/continue.go)."""

    def required(self, field: str) -> str | None:
        """The value that a field other than name and namespace must have, None if it is not asked for."""
        for term in self._terms:
            if term.equal and term.field == field:
                return term.value
        return None

    def in_scope(self, obj: CachedObject) -> bool:
        return (not self.namespace or obj.namespace == self.namespace) and (
            not self.name or obj.name == self.name
        )

    def selected(self, obj: CachedObject) -> bool:
        """Whether the selectors take an object that is in scope."""
        for term in self._terms:
            if (obj.field(term.field) == term.value) is not term.equal:
                return False
        return self._labels is None or self._labels.match(obj.labels)

    def matches(self, obj: CachedObject) -> bool:
        return self.in_scope(obj) and self.selected(obj)


class _Metadata(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


# Bools among selectable fields; upstream prints them, absent ones as "false"
# (kk/pkg/registry/core/pod/strategy.go and node/strategy.go, ToSelectableFields).
_BOOLS = frozenset({"spec.hostNetwork", "spec.unschedulable"})
# Numbers among them, absent ones as "0" (kk/pkg/registry/{apps/replicaset,batch/job}/strategy.go).
_NUMBERS = frozenset({"status.replicas", "status.successful"})
# Fields whose value does not stand under their own path (ToSelectableFields in kk/pkg/registry/core/event/strategy.go
# and kk/pkg/registry/batch/job/strategy.go).
_ELSEWHERE = {"source": "source.component", "status.successful": "status.succeeded"}


class ObjectReader:
    """Makes `CachedObject`s of one resource out of stored bytes. Makes its view once; about 4 us for a pod."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        names = resource.selectable
        self._positions = {name: at for at, name in enumerate(names)}
        self._paths = tuple(_ELSEWHERE.get(name, name) for name in names)
        self._bools = tuple(at for at, name in enumerate(names) if name in _BOOLS)
        self._numbers = tuple(at for at, name in enumerate(names) if name in _NUMBERS)
        self._get = attrgetter(*self._paths) if len(names) > 1 else None
        self._decode = msgspec.json.Decoder(_view(resource)).decode
        self._head = (
            b""  # with which what is stored must begin, where it may have been stored in another version
        )
        if resource.custom:
            self._head = b'{"kind":"%b","apiVersion":"%b",' % (
                resource.kind.encode(),
                resource.api_version.encode(),
            )

    def read(self, key: str, value: bytes, revision: int) -> CachedObject:
        """`value` is what the store keeps: without resourceVersion."""
        if self._head and not value.startswith(self._head):
            value = self._head + value[value.index(_METADATA) :]
        view: Any = self._decode(value)
        metadata: _Metadata = view.metadata
        return CachedObject(
            key,
            revision,
            splice(value, revision),
            intern(metadata.namespace),
            metadata.name,
            metadata.labels or _EMPTY,
            self._positions,
            self._values(view) if self._paths else (),
        )

    def _values(self, view: Any) -> tuple[str, ...]:
        try:
            raw = self._get(view) if self._get is not None else (_follow(view, self._paths[0]),)
        except AttributeError:  # a null on the way
            raw = tuple(_follow(view, path) for path in self._paths)
        if self._head:
            return tuple(map(_text, raw))
        values = ["" if value is None else value for value in raw]
        for at in self._bools:
            values[at] = "true" if values[at] is True else "false"
        for at in self._numbers:
            values[at] = str(values[at] or 0)
        return tuple(map(intern, values))


def _text(value: Any) -> str:
    """A field of a custom resource, of whatever type its definition gives it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _follow(view: Any, path: str) -> Any:
    for part in path.split("."):
        view = getattr(view, part, None)
    return view


@lru_cache(maxsize=256)
def _view(resource: Resource) -> type[msgspec.Struct]:
    """A Struct type with just the selectable fields, nested as their paths are; everything else is skipped. Making one
    takes 0.3 ms."""
    tree: dict[str, Any] = {}
    for name in resource.selectable:
        *parents, leaf = _ELSEWHERE.get(name, name).split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        plain = bool if name in _BOOLS else int if name in _NUMBERS else str
        node[leaf] = str | int | bool if resource.custom else plain
    return _struct(f"{resource.kind}View", tree, [("metadata", _Metadata)])


def _struct(name: str, tree: dict[str, Any], fields: Sequence[tuple[str, Any]] = ()) -> type[msgspec.Struct]:
    members: list[Any] = list(fields)
    for part, kind in tree.items():
        if isinstance(kind, dict):
            kind = _struct(f"{name}_{part}", kind)
            members.append((part, kind | None, msgspec.field(default_factory=kind)))
        else:
            members.append((part, kind | None, None))
    return msgspec.defstruct(name, members, gc=False)
