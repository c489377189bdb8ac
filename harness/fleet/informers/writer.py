"""The writer: makes the objects that informers follow, and changes them beside the crowd.

Each object is one of a number, named by it, so that an earlier run's are found again and a later write knows what is
there. A change is an update without a resourceVersion, which no other write can make fail; a replacement is a deletion
and a creation of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from random import Random
from typing import Any

import msgspec

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Disarm,
    Event,
    Failed,
    Finished,
    Note,
    Sample,
    Send,
)
from harness.client.requests import NAMESPACES, ResourceRef, create_, delete_, update_
from harness.fleet.informers.options import SHARDS, WriterOptions
from harness.wire.request import Request

AT_ONCE = 100
"""Writes under way beside the crowd; what comes due beyond that is counted and left out."""
TRIES = 5
"""Of a creation that got no answer; what was answered is asked again by `harness.client.rest` alone."""
AGAIN_S = 1.0
READY = "writer-ready"
"""Note: the objects are there (objects, seconds)."""
READERS = "system:serviceaccounts:informers"
"""The group that informers and listers belong to, so that flow control treats them as it treats controllers."""
CLUSTERROLES = ResourceRef("rbac.authorization.k8s.io", "v1", "clusterroles")
CLUSTERROLEBINDINGS = ResourceRef("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
_PRINTABLE = b"abcdefghijklmnopqrstuvwxyz0123456789"
_MADE = (201, 409)


class Writer:
    """A machine. `labels` are put on all that it makes, `run` is part of cluster-wide names. It makes the right of the
    group `READERS` to read `resources`, the namespaces and the objects, says `READY`, and churns from ``Fired`` of `GO`
    to that of `HALT`. It finishes only where something could not be made, with the reason.

    Samples: ``write_left_out``; ``write_failed`` (verb, code: 0 for no answer).
    """

    GO = ("go",)
    HALT = ("halt",)

    __slots__ = (
        "_began",
        "_busy",
        "_churning",
        "_filler",
        "_first",
        "_generation",
        "_labels",
        "_left",
        "_options",
        "_ready",
        "_rng",
        "_tries",
    )

    def __init__(
        self,
        options: WriterOptions,
        resources: Iterable[ResourceRef],
        run: str,
        labels: Mapping[str, str],
        rng: Random,
    ) -> None:
        self._options = options
        self._labels = dict(labels)
        self._rng = rng
        self._filler = bytes(rng.choices(_PRINTABLE, k=options.size)).decode()
        namespaces = [options.namespace(number) for number in range(options.namespaces)]
        self._first = [
            *(create_(NAMESPACES, None, self._encode({"metadata": {"name": name}})) for name in namespaces),
            *self._rights(f"swarmlet-informers-{run}" if run else "swarmlet-informers", resources),
        ]
        self._left = list(range(options.objects - 1, -1, -1))
        self._tries: dict[tuple[str, int], int] = {}
        self._busy: set[int] = set()
        self._ready = False
        self._churning = False
        self._generation = 0
        self._began = 0.0

    def __repr__(self) -> str:
        return f"Writer(left={len(self._left)}, making={len(self._tries)}, churning={self._churning})"

    # ---- the machine -------------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Action]:
        self._began = now
        return [self._make("first", number) for number in range(len(self._first))]

    def handle(self, event: Event, now: float) -> list[Action]:
        out: list[Action] = []
        part = event.key[0]
        if event.key == self.GO:
            self._churning = self._options.rate > 0
            self._arm(now, out)
        elif event.key == self.HALT:
            self._churning = False
            out.append(Disarm(("due",)))
        elif part == "due":
            self._write(out)
            self._arm(now, out)
        elif part == "again":
            out.append(self._make(str(event.key[1]), _number(event, 2)))
        elif part in ("first", "make"):
            self._made(event, now, out)
        elif isinstance(event, Answered | Failed):
            self._written(event, out)
        return out

    def stop(self, now: float) -> list[Action]:
        self._churning = False
        making = [Cancel(key) for key in self._tries]
        writing = [Cancel((part, number)) for number in self._busy for part in ("update", "delete", "create")]
        return [Disarm(("due",)), *making, *writing]

    # ---- before the crowd --------------------------------------------------------------------------------------------
    def _make(self, part: str, number: int) -> Send:
        self._tries.setdefault((part, number), 0)
        request = self._first[number] if part == "first" else self._creation(number)
        return Send((part, number), request)

    def _made(self, event: Event, now: float, out: list[Action]) -> None:
        """Something was made; as many objects as may be under way follow."""
        part, number = str(event.key[0]), _number(event)
        if isinstance(event, Failed):
            self._tries[part, number] += 1
            if self._tries[part, number] < TRIES:
                out.append(Arm(("again", part, number), now + AGAIN_S))
                return
            self._give_up(f"{part} {number}: {event.error}", out)
        elif isinstance(event, Answered) and event.response.status not in _MADE:
            said = event.response.body[:200].decode("utf-8", "replace")
            self._give_up(f"{part} {number}: {event.response.status} {said}", out)
        self._tries.pop((part, number), None)
        if part == "first" and self._tries:
            return  # objects come when all of that is there
        while self._left and len(self._tries) < self._options.in_flight:
            out.append(self._make("make", self._left.pop()))
        if not self._left and not self._tries and not self._ready:
            self._ready = True
            fields: dict[str, object] = {"objects": self._options.objects, "seconds": now - self._began}
            out.append(Note(READY, fields))

    def _give_up(self, why: str, out: list[Action]) -> None:
        if not self._ready:
            self._ready = True
            self._left.clear()
            out.append(Finished((f"writer: could not make {why}",)))

    # ---- beside the crowd --------------------------------------------------------------------------------------------
    def _arm(self, now: float, out: list[Action]) -> None:
        if self._churning:
            out.append(Arm(("due",), now + self._rng.expovariate(self._options.rate)))

    def _write(self, out: list[Action]) -> None:
        """One change of an object that none is under way of."""
        if not self._churning:
            return
        number = self._rng.randrange(self._options.objects)
        if number in self._busy or len(self._busy) >= AT_ONCE:
            out.append(Sample("write_left_out", 1.0))
            return
        self._busy.add(number)
        self._generation += 1
        name, namespace, ref = _name(number), self._options.namespace(number), self._options.ref
        if self._rng.random() < self._options.replace_share:
            out.append(Send(("delete", number), delete_(ref, namespace, name)))
        else:
            out.append(Send(("update", number), update_(ref, namespace, name, self._body(number))))

    def _written(self, event: Answered | Failed, out: list[Action]) -> None:
        part, number = str(event.key[0]), _number(event)
        status = event.response.status if isinstance(event, Answered) else 0
        if part == "delete" and status in (200, 404):
            out.append(Send(("create", number), self._creation(number)))
            return
        self._busy.discard(number)
        if not 200 <= status < 300:
            out.append(Sample("write_failed", 1.0, (("verb", part), ("code", str(status)))))

    # ---- bodies ------------------------------------------------------------------------------------------------------
    def _rights(self, name: str, resources: Iterable[ResourceRef]) -> Iterator[Request]:
        rules = [
            {"apiGroups": [ref.group], "resources": [ref.resource], "verbs": ["get", "list", "watch"]}
            for ref in dict.fromkeys(resources)
        ]
        group = CLUSTERROLES.group
        role = {"metadata": {"name": name}, "rules": rules}
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": READERS}],
        }
        yield create_(CLUSTERROLES, None, self._encode(role))
        yield create_(CLUSTERROLEBINDINGS, None, self._encode(binding))

    def _creation(self, number: int) -> Request:
        return create_(self._options.ref, self._options.namespace(number), self._body(number))

    def _body(self, number: int) -> bytes:
        """A configmap or secret; each generation differs, so that writing it is a change. A secret takes the filler as
        base64, whose length is a multiple of 4."""
        labels = {"shard": str(number % SHARDS), "generation": str(self._generation)}
        filler = self._filler[: len(self._filler) // 4 * 4]
        namespace = self._options.namespace(number)
        metadata = {"name": _name(number), "namespace": namespace, "labels": labels}
        return self._encode({"metadata": metadata, "data": {"v": filler}})

    def _encode(self, body: dict[str, Any]) -> bytes:
        body["metadata"]["labels"] = {**self._labels, **body["metadata"].get("labels", {})}
        return msgspec.json.encode(body)


def _name(number: int) -> str:
    return f"o-{number:06d}"


def _number(event: Event, at: int = 1) -> int:
    number = event.key[at]
    assert isinstance(number, int)
    return number
