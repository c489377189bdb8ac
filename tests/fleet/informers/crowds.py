"""A crowd, a writer and an auditor against emulated members, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from harness.client.machine import Action, Event, Fired, Machine, Note, Received, Sample
from harness.client.rest import Rest
from harness.fleet.informers.auditor import CHECKED, LAST_WITHIN_S, VIOLATION, Auditor, auditor_limiters
from harness.fleet.informers.checker import Checker
from harness.fleet.informers.informer import Informer, informer_limiters
from harness.fleet.informers.lister import Lister
from harness.fleet.informers.listmix import ListMix
from harness.fleet.informers.options import NAMESPACE, Crowd, WriterOptions
from harness.fleet.informers.tally import Tally
from harness.fleet.informers.writer import READY, Writer
from harness.virtual.observer import Call, Observer
from harness.virtual.pool import VirtualPool
from harness.virtual.world import World, account
from harness.wire.request import Response

READER = account("informer", NAMESPACE)


class Tampered:
    """A machine whose watches something is done to: `change` gives what it receives instead."""

    def __init__(self, inner: Machine, change: Callable[[bytes], list[bytes]]) -> None:
        self._inner = inner
        self._change = change

    def start(self, now: float) -> list[Action]:
        return self._inner.start(now)

    def handle(self, event: Event, now: float) -> list[Action]:
        if not isinstance(event, Received):
            return self._inner.handle(event, now)
        out: list[Action] = []
        for data in self._change(event.data):
            out += self._inner.handle(Received(event.key, data), now)
        return out

    def stop(self, now: float) -> list[Action]:
        return self._inner.stop(now)


class Heard(Observer):
    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.notes: list[Note] = []
        self.answers: list[tuple[Call, int]] = []

    def sampled(self, kind: str, sample: Sample) -> None:
        self.samples.append(sample)

    def noted(self, kind: str, note: Note) -> None:
        self.notes.append(note)

    def answered(self, call: Call, response: Response, seconds: float, error: str = "") -> None:
        self.answers.append((call, response.status))

    def of(self, name: str) -> list[Sample]:
        return [sample for sample in self.samples if sample.name == name]

    def note(self, kind: str) -> list[dict[str, Any]]:
        return [note.fields for note in self.notes if note.kind == kind]


class Play:
    """The objects of a writer are there when it is made; `go` begins the churn, `end` ends it."""

    def __init__(
        self,
        writer: WriterOptions,
        *,
        members: int = 1,
        seed: int = 1,
        **options: Any,
    ) -> None:
        self.pool = VirtualPool(members, seed=seed, **options)
        self.heard = Heard()
        self.world = World(self.pool, seed=seed, observer=self.heard)
        self.checker = Checker()
        self.tally = Tally()
        self.seed = seed
        self._crowd = 0
        resources = (Crowd().ref,)
        self._writer = Writer(writer, resources, "run", {"swarmlet.io/run": "run"}, Random(seed))
        self._auditor = Auditor(self.checker, 0.0)
        self.writer = self._add(self._writer, "writer")
        ready = self.world.run_until(lambda: bool(self.heard.note(READY)), 60.0)
        assert ready, self.heard.notes

    def _add(self, machine: Machine, kind: str) -> int:
        return self.world.add(Rest(machine, {"main": None}), kind)

    def fire(self, client: int, key: tuple[str]) -> None:
        self.world._tell(self.world._clients[client], Fired(key))

    def go(self) -> None:
        self.auditor = self.world.add(Rest(self._auditor, auditor_limiters()), "auditor")
        self.fire(self.writer, Writer.GO)

    def informers(
        self, crowd: Crowd, tamper: Callable[[bytes], list[bytes]] | None = None, member: int | None = None
    ) -> list[int]:
        made = []
        for _ in range(crowd.count):
            name = f"informer-{self._crowd}"
            self._crowd += 1
            informer: Machine = Informer(
                name, crowd, self.checker, self.tally, Random(f"{self.seed}/{name}"), 1
            )
            if tamper is not None:
                informer = Tampered(informer, tamper)
            rest = Rest(informer, informer_limiters(crowd), content=crowd.content_type)
            made.append(self.world.add(rest, "informer", READER, member=member))
        return made

    def lister(self, mix: ListMix) -> int:
        lister = Lister("lister-0", mix, self.checker, self.tally, Random(self.seed))
        return self.world.add(Rest(lister, {"main": None}), "lister", READER)

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def end(self) -> dict[str, Any]:
        """Writes end, all is compared a last time; what the auditor says."""
        self.fire(self.writer, Writer.HALT)
        self.fire(self.auditor, Auditor.LAST)
        checked = self.world.run_until(lambda: bool(self.heard.note(CHECKED)), LAST_WITHIN_S + 1)
        assert checked, "the auditor does not end"
        for watched in self.checker._scopes.values():
            assert watched.reference is not None
            watched.reference.validate()
        return self.heard.note(CHECKED)[0]

    @property
    def violations(self) -> list[tuple[str, str]]:
        return [(fields["violation"], fields["who"]) for fields in self.heard.note(VIOLATION)]

    def close(self) -> None:
        self.world.close()
