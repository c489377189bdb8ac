"""The EndpointSlices of one service: who is in which, and what to write where some of its pods have changed.

staging endpointslice/reconciler.go (reconcileByPortMapping, finalize), but with the slices indexed by pod: one pod's
change costs the slice that it is in and a look at how full the others are, where upstream compares every endpoint of
the service (in Go, which can afford it). What a slice holds is not kept twice: endpoints stay in the bytes that the
informer has and are copied as bytes; only those of pods that changed are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.fleet.controllers.serviceviews import sort_key
from harness.fleet.controllers.views import Object, WholeView

MOST = 100  # max-endpoints-per-slice


@dataclass(slots=True)
class Wanted:
    """A pod that belongs into a slice: its endpoint, and the ports (with their key) that the slice must have."""

    ports_key: bytes
    ports: list[Object]
    endpoint: msgspec.Raw


@dataclass(slots=True)
class Slice:
    """One that exists. `uids` are the pods of its endpoints in their order, "" for what is none of ours."""

    name: str
    version: str
    labels: Mapping[str, str]
    ports_key: bytes
    uids: list[str]


@dataclass(slots=True)
class Draft:
    """One to be written: a new one where `of` is None."""

    of: Slice | None
    ports_key: bytes
    ports: list[Object] | None
    uids: list[str]
    endpoints: list[msgspec.Raw]

    def add(self, uid: str, endpoint: msgspec.Raw) -> None:
        self.uids.append(uid)
        self.endpoints.append(endpoint)

    @property
    def room(self) -> int:
        return MOST - len(self.uids)


@dataclass(slots=True)
class Writes:
    create: list[Draft] = field(default_factory=list)
    update: list[Draft] = field(default_factory=list)
    delete: list[Slice] = field(default_factory=list)


class SliceSet:
    """`broken`: something may differ from what is known here, so all must be looked at; `writing`: answers are out;
    `deleting`: slices whose deletion the informer has not shown yet."""

    __slots__ = ("_strays", "broken", "deleting", "holder", "slices", "writing")

    def __init__(self) -> None:
        self.slices: dict[str, Slice] = {}
        self.holder: dict[str, str] = {}  # pods to the slices that they are in
        self.deleting: set[str] = set()
        self.broken = True
        self.writing = False
        self._strays: set[str] = set()  # slices with endpoints that nothing speaks for

    def __repr__(self) -> str:
        return f"SliceSet(slices={len(self.slices)}, pods={len(self.holder)}, broken={self.broken})"

    def matches(self, views: Mapping[str, WholeView]) -> bool:
        """Whether the informer shows what was last written here, by name."""
        slices = self.slices
        return len(views) == len(slices) and all(
            (found := slices.get(name)) is not None and found.version == view.resource_version
            for name, view in views.items()
        )

    def version_of(self, name: str) -> str:
        """The version of a slice that is known of; of another one, one that no version is newer than."""
        found = self.slices.get(name)
        return "~" if found is None else found.version

    def load(self, views: Mapping[str, WholeView]) -> None:
        """Begin anew from what the informer shows."""
        self.slices, self.holder, self._strays, self.broken = {}, {}, set(), False
        for view in views.values():
            stored = _decode_members(view.raw)
            uids = [_uid(each) for each in stored.endpoints or ()]
            ports_key = sort_key(sorted(stored.ports or [], key=sort_key))
            self._put(Slice(view.name, view.resource_version, view.labels, ports_key, uids))

    def _put(self, each: Slice) -> None:
        """A pod that is in another slice already is a stray in this one."""
        self.slices[each.name] = each
        holder = self.holder
        for index, uid in enumerate(each.uids):
            if not uid or holder.setdefault(uid, each.name) != each.name:
                each.uids[index] = ""
                self._strays.add(each.name)

    def drop(self, name: str) -> None:
        each = self.slices.pop(name, None)
        for uid in each.uids if each is not None else ():
            if self.holder.get(uid) == name:
                del self.holder[uid]
        self._strays.discard(name)

    def wrote(self, draft: Draft, name: str, version: str, labels: Mapping[str, str]) -> None:
        """The server has taken a draft."""
        self.drop(name)
        self._put(Slice(name, version, labels, draft.ports_key, list(draft.uids)))

    # ---- what to write -----------------------------------------------------------------------------------------------
    def plan(
        self,
        views: Mapping[str, WholeView],
        pods: Mapping[str, Wanted | None],
        labels: Mapping[str, str],
    ) -> Writes:
        """`pods` are those that may have changed, by uid, None for one that belongs into no slice. A service without
        endpoints has one slice that is empty."""
        edits: dict[str, dict[str, msgspec.Raw | None]] = {name: {"": None} for name in self._strays}
        fresh: dict[bytes, dict[str, Wanted]] = {}
        for uid, want in pods.items():
            name = self.holder.get(uid)
            if name is not None:
                stays = want is not None and want.ports_key == self.slices[name].ports_key
                edits.setdefault(name, {})[uid] = want.endpoint if stays and want is not None else None
                if stays:
                    continue
            if want is not None:
                fresh.setdefault(want.ports_key, {})[uid] = want
        groups: dict[bytes, list[Slice]] = {key: [] for key in fresh}
        for each in self.slices.values():
            groups.setdefault(each.ports_key, []).append(each)
        writes = Writes()
        for ports_key, slices in groups.items():
            drafts = [_drafted(each, views, edits.get(each.name), labels) for each in slices]
            _fill(writes, slices, drafts, views, ports_key, fresh.get(ports_key, {}))
        self._keep_one(writes, labels)
        return writes

    def _keep_one(self, writes: Writes, labels: Mapping[str, str]) -> None:
        """The empty slice of a service without endpoints; and a slice that would be deleted becomes one that would be
        created (finalize)."""
        if len(writes.delete) == len(self.slices) and not writes.create:
            if len(writes.delete) == 1:
                (only,) = writes.delete
                if not only.uids and only.ports_key == _NO_PORTS and only.labels == labels:
                    writes.delete = []
                    return
            writes.create.append(Draft(None, _NO_PORTS, [], [], []))
        while writes.create and writes.delete:
            draft = writes.create.pop()
            draft.of = writes.delete.pop()
            writes.update.append(draft)


def _drafted(
    each: Slice,
    views: Mapping[str, WholeView],
    edits: Mapping[str, msgspec.Raw | None] | None,
    labels: Mapping[str, str],
) -> Draft | None:
    """The slice with its `edits`, None where they change nothing."""
    changed = each.labels != labels
    if not changed and not edits:
        return None
    draft = Draft(each, each.ports_key, None, [], [])
    for uid, endpoint in zip(each.uids, endpoints_of(views[each.name]), strict=True):
        new = edits.get(uid, endpoint) if edits else endpoint
        if new is None:
            changed = True
            continue
        if new is not endpoint and not _same(new, endpoint):
            changed, endpoint = True, new
        draft.add(uid, endpoint)
    return draft if changed else None


def _fill(
    writes: Writes,
    slices: list[Slice],
    drafts: list[Draft | None],
    views: Mapping[str, WholeView],
    ports_key: bytes,
    fresh: Mapping[str, Wanted],
) -> None:
    """reconcileByPortMapping for one set of ports: `fresh` endpoints go into slices that are written anyway, then into
    one more that has room, then into new ones; what is left without any goes."""
    untouched = [each for each, draft in zip(slices, drafts, strict=True) if draft is None]
    changed = [draft for draft in drafts if draft is not None and draft.uids]
    emptied = [draft for draft in drafts if draft is not None and not draft.uids]
    if not fresh and not changed and not any(each.uids for each in untouched):
        writes.delete += slices
        return
    if fresh and emptied and not changed:
        changed.append(emptied.pop())
    new = [(uid, want.endpoint) for uid, want in fresh.items()]
    for draft in changed:
        taken, new = new[: draft.room], new[draft.room :]
        for uid, endpoint in taken:
            draft.add(uid, endpoint)
    if new:
        new = _into_fullest(untouched, views, changed, new)
    ports = next(iter(fresh.values())).ports if fresh else []
    for start in range(0, len(new), MOST):
        made = Draft(None, ports_key, ports, [], [])
        for uid, endpoint in new[start : start + MOST]:
            made.add(uid, endpoint)
        writes.create.append(made)
    writes.update += changed
    writes.delete += [draft.of for draft in emptied if draft.of is not None]


def _into_fullest(
    untouched: Iterable[Slice],
    views: Mapping[str, WholeView],
    changed: list[Draft],
    new: list[tuple[str, msgspec.Raw]],
) -> list[tuple[str, msgspec.Raw]]:
    """The rest goes into the fullest slice that has room for all of it (getSliceToFill); returns what is over."""
    rest = len(new) % MOST or MOST
    fitting = [each for each in untouched if len(each.uids) + rest <= MOST]
    if not fitting:
        return new
    fullest = max(fitting, key=lambda each: len(each.uids))
    draft = Draft(fullest, fullest.ports_key, None, list(fullest.uids), endpoints_of(views[fullest.name]))
    for uid, endpoint in new[-rest:]:
        draft.add(uid, endpoint)
    changed.append(draft)
    return new[:-rest]


# ---- bytes -----------------------------------------------------------------------------------------------------------
class _Target(msgspec.Struct, gc=False):
    uid: str = ""


class _Member(msgspec.Struct, gc=False, rename="camel"):
    target_ref: _Target | None = None


class _Members(msgspec.Struct, gc=False):
    endpoints: list[_Member] | None = None
    ports: list[Object] | None = None


class _Endpoints(msgspec.Struct, gc=False):
    endpoints: list[msgspec.Raw] | None = None


class _Stored(msgspec.Struct, gc=False, rename="camel"):
    metadata: dict[str, Any]
    address_type: str = ""
    ports: list[Object] | None = None


_decode_members = msgspec.json.Decoder(_Members).decode
_decode_endpoints = msgspec.json.Decoder(_Endpoints).decode
_decode_stored = msgspec.json.Decoder(_Stored).decode
_decode = msgspec.json.decode
_NO_PORTS = sort_key([])


def endpoints_of(view: WholeView) -> list[msgspec.Raw]:
    return _decode_endpoints(view.raw).endpoints or []


def _uid(member: _Member) -> str:
    return member.target_ref.uid if member.target_ref is not None else ""


def _same(one: msgspec.Raw, other: msgspec.Raw) -> bool:
    """Whatever the order of their keys."""
    return bool(_decode(one) == _decode(other))


def updated(view: WholeView, draft: Draft, labels: Mapping[str, str]) -> Object:
    """The slice as it is to be, to send back."""
    stored = _decode_stored(view.raw)
    metadata = stored.metadata
    metadata.pop("managedFields", None)
    metadata["labels"] = labels
    ports = stored.ports or [] if draft.ports is None else draft.ports
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": metadata,
        "addressType": stored.address_type,
        "endpoints": draft.endpoints,
        "ports": ports,
    }
