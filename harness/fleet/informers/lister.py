"""A client that LISTs and GETs what a mix says, and sees to it that the pages of each list are one snapshot."""

from __future__ import annotations

from collections import deque
from random import Random

import msgspec

from harness.client.machine import Action, Answered, Arm, Cancel, Disarm, Event, Failed, Sample, Send
from harness.client.requests import get_, list_
from harness.fleet.informers.checker import Checker
from harness.fleet.informers.keyed import decode_keyed
from harness.fleet.informers.listmix import ListKind, ListMix
from harness.fleet.informers.options import resource_of
from harness.fleet.informers.pages import Pages
from harness.fleet.informers.reference import revision_of
from harness.fleet.informers.tally import Tally
from harness.fleet.informers.views import Scope
from harness.wire.objectviews import decode_list
from harness.wire.request import Request, Response
from harness.wire.status import parse_status

IN_FLIGHT = 50
"""Requests of one client under way; what comes due beyond that is counted and left out."""
AGAIN_S = 1.0  # a client without a pause pauses where it was refused
_NAMES = 1000
_REVISIONS = 256


class _List(msgspec.Struct, gc=False):
    """One request of the mix, until its last page. `due` is when it should have been sent."""

    kind: ListKind
    due: float
    pages: Pages
    exact: str = ""
    asked_at: float = 0.0
    name: str = ""


class Lister:
    """A machine: client `name`.

    Samples, with the label `kind`: ``list_ms`` from when a list was due to its last page, ``list_page_ms`` of one page,
    ``list_objects`` and ``list_bytes`` of a whole list (the value is the number), ``list_failed`` (code), and
    ``list_left_out`` where too many were under way.
    """

    __slots__ = (
        "_busy",
        "_checker",
        "_mix",
        "_next",
        "_objects",
        "_revisions",
        "_rng",
        "_sizes",
        "_tally",
        "name",
    )

    def __init__(self, name: str, mix: ListMix, checker: Checker, tally: Tally, rng: Random) -> None:
        self.name = name
        self._mix = mix
        self._checker = checker
        self._tally = tally
        self._rng = rng
        self._busy: dict[int, _List] = {}
        self._sizes: dict[int, int] = {}
        self._next = 0
        self._objects: dict[str, deque[str]] = {}
        self._revisions: dict[str, deque[tuple[float, str]]] = {}

    def __repr__(self) -> str:
        return f"Lister({self.name!r}, under_way={len(self._busy)})"

    # ---- the machine -------------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Action]:
        rate = self._mix.rate
        return [Arm(("due",), now + (self._rng.random() / rate if rate else 0.0))]

    def handle(self, event: Event, now: float) -> list[Action]:
        out: list[Action] = []
        if event.key[0] == "due":
            self._due(now, out)
        elif isinstance(event, Answered):
            self._answered(int(str(event.key[1])), event.response, now, out)
        elif isinstance(event, Failed):
            self._failed(int(str(event.key[1])), event.error.failure.name.lower(), now, out)
        return out

    def stop(self, now: float) -> list[Action]:
        out: list[Action] = [Disarm(("due",)), *(Cancel(("list", number)) for number in self._busy)]
        self._busy.clear()
        return out

    # ---- what is asked -----------------------------------------------------------------------------------------------
    def _due(self, now: float, out: list[Action]) -> None:
        kind = self._mix.draw(self._rng)
        if self._mix.rate:
            out.append(Arm(("due",), now + self._rng.expovariate(self._mix.rate)))
        if len(self._busy) >= IN_FLIGHT:
            out.append(Sample("list_left_out", 1.0, (("kind", kind.name),)))
            return
        self._next += 1
        under_way = _List(kind, now, Pages())
        self._busy[self._next] = under_way
        self._sizes[self._next] = 0
        self._ask(self._next, under_way, "", now, out)

    def _ask(self, number: int, under_way: _List, token: str, now: float, out: list[Action]) -> None:
        under_way.asked_at = now
        request = self._request(under_way, token, now)
        named = msgspec.structs.replace(request, name=f"{request.name} {under_way.kind.name}")
        out.append(Send(("list", number), named))

    def _request(self, under_way: _List, token: str, now: float) -> Request:
        kind = under_way.kind
        ref = resource_of(kind.resource, "resource")
        known = self._objects.get(kind.resource)
        if kind.get and known:
            under_way.name = self._rng.choice(known)
            namespace, _, name = under_way.name.rpartition("/")
            return get_(ref, namespace or None, name, resource_version=kind.resource_version or None)
        if kind.get:  # nothing is known to be there yet: this first one is a small list
            return list_(ref, kind.namespace or None, resource_version="0", limit=_NAMES)
        version: str = kind.resource_version
        if version == "exact":
            if not token:
                under_way.exact = self._revision(kind, now)
            version = under_way.exact
        return list_(
            ref,
            kind.namespace or None,
            field_selector=kind.field_selector,
            label_selector=kind.label_selector,
            resource_version="" if token else version,
            resource_version_match="Exact" if under_way.exact and not token else "",
            limit=kind.limit,
            continue_token=token,
        )

    def _revision(self, kind: ListKind, now: float) -> str:
        """The latest that is as old as the kind asks; the oldest where none is; "" where none is known."""
        known = self._revisions.get(kind.resource)
        if not known:
            return ""
        old = [revision for at, revision in known if now - at >= kind.age_s]
        return old[-1] if old else known[0][1]

    # ---- what comes back ---------------------------------------------------------------------------------------------
    def _answered(self, number: int, response: Response, now: float, out: list[Action]) -> None:
        under_way = self._busy.get(number)
        if under_way is None:
            return
        self._tally.bytes += len(response.body)
        self._sizes[number] += len(response.body)
        if not response.ok:
            status = parse_status(response.body, response.status)
            self._tally.expired += status.code == 410
            self._failed(number, str(response.status), now, out)
            return
        kind = under_way.kind
        if kind.get and under_way.name:
            self._done(number, under_way, 1, now, out)
            return
        try:
            metadata, items = decode_list(response.body)
            found = [decode_keyed(item) for item in items]
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._failed(number, "undecodable", now, out)
            return
        took_ms = (now - under_way.asked_at) * 1000.0
        out.append(Sample("list_page_ms", took_ms, (("kind", kind.name),)))
        versions = [(obj.metadata.name, revision_of(obj.metadata.resource_version)) for obj in found]
        self._remember(kind, metadata.resource_version, versions, now)
        pages = under_way.pages
        pages.add(revision_of(metadata.resource_version), versions)
        if metadata.continue_token and (not kind.pages or pages.pages < kind.pages) and not kind.get:
            self._ask(number, under_way, metadata.continue_token, now, out)
            return
        if not kind.get:
            self._check(under_way, whole=not metadata.continue_token, now=now)
        self._done(number, under_way, len(pages.objects), now, out)

    def _check(self, under_way: _List, *, whole: bool, now: float) -> None:
        kind, pages = under_way.kind, under_way.pages
        scope = Scope(
            str(resource_of(kind.resource, "resource")),
            kind.namespace,
            kind.label_selector,
            kind.field_selector,
        )
        who = f"{self.name} {kind.name}"
        if under_way.exact and pages.revision != revision_of(under_way.exact):
            text = f"asked for exactly revision {under_way.exact}, it is of {pages.revision}"
            pages.problems.append(("", text))
        if pages.problems:
            self._checker.mixed(who, scope, pages.revision, pages.problems, now)
        elif whole:
            self._checker.listed(who, scope, pages.revision, pages.objects, now)

    def _remember(self, kind: ListKind, revision: str, versions: list[tuple[str, int]], now: float) -> None:
        """Names for gets, and revisions for exact lists."""
        objects = self._objects.setdefault(kind.resource, deque(maxlen=_NAMES))
        if len(objects) < _NAMES:
            objects.extend(key for key, _ in versions[:_NAMES])
        revisions = self._revisions.setdefault(kind.resource, deque(maxlen=_REVISIONS))
        if not revisions or revision_of(revision) > revision_of(revisions[-1][1]):
            revisions.append((now, revision))

    def _done(self, number: int, under_way: _List, objects: int, now: float, out: list[Action]) -> None:
        learning = under_way.kind.get and not under_way.name
        labels = (("kind", "names" if learning else under_way.kind.name),)
        size = self._sizes.pop(number)
        del self._busy[number]
        out.append(Sample("list_ms", (now - under_way.due) * 1000.0, labels))
        out.append(Sample("list_objects", float(objects), labels))
        out.append(Sample("list_bytes", float(size), labels))
        if not self._mix.rate:
            out.append(Arm(("due",), now))

    def _failed(self, number: int, code: str, now: float, out: list[Action]) -> None:
        under_way = self._busy.pop(number, None)
        if under_way is None:
            return
        del self._sizes[number]
        out.append(Sample("list_failed", 1.0, (("kind", under_way.kind.name), ("code", code))))
        if not self._mix.rate:
            out.append(Arm(("due",), now + AGAIN_S))
