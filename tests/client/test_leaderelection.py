"""Leader election: two candidates over one lock that lives in this file, in virtual time."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import msgspec
import pytest

from harness.client.electionlocks import ANNOTATION, AnnotationLock, LeaseLock
from harness.client.leaderelection import PER_CLAIM, SIDECAR, Elector, Leadership, Policy, State, Turn
from harness.client.machine import Answered, Arm, Cancel, Disarm, Failed, Fired, Sample, Send
from harness.client.requests import PERSISTENTVOLUMECLAIMS
from harness.wire.request import Failure, Request, Response, TransportError

Object = dict[str, Any]


class Place:
    """The object that holds the lock, answered for at once, and the candidates' timers."""

    def __init__(self, found: Object | None = None) -> None:
        self.found = found
        self.now = 0.0
        self.down = False
        self.lines: list[tuple[float, str, str, int]] = []
        self.turns: list[tuple[float, str, Turn]] = []
        self.samples: list[str] = []
        self._timers: dict[tuple[str, str], float] = {}
        self._electors: dict[str, Elector] = {}

    def add(self, name: str, elector: Elector) -> None:
        self._electors[name] = elector
        self._take(name, elector.start(self.now))

    def stop(self, name: str) -> None:
        self._take(name, self._electors.pop(name).stop(self.now))

    def kill(self, name: str) -> None:
        del self._electors[name]
        self._timers = {key: due for key, due in self._timers.items() if key[0] != name}

    def run(self, until: float) -> None:
        while self._timers and min(self._timers.values()) <= until:
            key = min(self._timers, key=lambda each: self._timers[each])
            self.now = self._timers.pop(key)
            name, part = key
            self._take(name, self._electors[name].handle(Fired((name, part)), self.now))
        self.now = until

    def _take(self, name: str, outputs: list[Any]) -> None:
        for output in outputs:
            if isinstance(output, Leadership):
                self.turns.append((round(self.now, 2), name, output.turn))
            elif isinstance(output, Arm):
                self._timers[name, str(output.key[1])] = output.at
            elif isinstance(output, Disarm):
                self._timers.pop((name, str(output.key[1])), None)
            elif isinstance(output, Sample):
                self.samples.append(output.name)
            elif isinstance(output, Send):
                event = self._answer(name, output)
                self._take(name, self._electors[name].handle(event, self.now))
            else:
                assert isinstance(output, Cancel)

    def _answer(self, name: str, send: Send) -> Answered | Failed:
        if self.down:
            return Failed(send.key, TransportError(Failure.TIMEOUT, "down"))
        status, body = self._serve(send.request)
        self.lines.append((round(self.now, 2), name, send.request.verb, status))
        return Answered(send.key, Response(status, {}, body))

    def _serve(self, request: Request) -> tuple[int, bytes]:
        given = msgspec.json.decode(request.body) if request.body else {}
        if self.found is None and request.verb != "create":
            return 404, b"{}"
        if self.found is not None and request.verb == "create":
            return 409, b"{}"
        known = "" if self.found is None else self.found["metadata"]["resourceVersion"]
        if request.verb == "update" and given["metadata"].get("resourceVersion") != known:
            return 409, b"{}"
        if request.verb != "get":
            before = 0 if self.found is None else int(self.found["metadata"]["resourceVersion"])
            self.found = {
                **given,
                "metadata": {**given["metadata"], "resourceVersion": str(before + 1)},
            }
        return (201 if request.verb == "create" else 200), msgspec.json.encode(self.found)


def on_lease(name: str, seed: int = 1, policy: Policy = SIDECAR) -> Elector:
    return Elector(name, LeaseLock("kube-system", "driver", "lease"), name, policy, Random(seed), 1e9)


def on_claim(name: str, seed: int = 1) -> Elector:
    lock = AnnotationLock(PERSISTENTVOLUMECLAIMS, "ns", "c", "main")
    return Elector(name, lock, name, PER_CLAIM, Random(seed), 1e9)


def a_claim() -> Object:
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "resourceVersion": "1"}, "spec": {}}


def test_the_first_makes_the_lease_and_then_writes_it_every_five_seconds_without_reading() -> None:
    place = Place()
    place.add("a", on_lease("a"))
    place.run(12.0)
    assert place.lines == [
        (0.0, "a", "get", 404),
        (0.0, "a", "create", 201),
        (0.0, "a", "update", 200),
        (5.0, "a", "update", 200),
        (10.0, "a", "update", 200),
    ]
    assert place.turns == [(0.0, "a", Turn.BEGAN)]


def test_the_second_reads_every_five_to_eleven_seconds() -> None:
    place = Place()
    place.add("a", on_lease("a"))
    place.add("b", on_lease("b", 2))
    place.run(200.0)
    reads = [at for at, name, verb, _ in place.lines if name == "b"]
    gaps = [after - before for before, after in pairwise(reads)]
    assert {verb for _, name, verb, _ in place.lines if name == "b"} == {"get"}
    assert all(5.0 <= gap < 11.01 for gap in gaps)
    assert max(gaps) > 9.0


def test_a_lease_that_is_not_renewed_for_its_duration_is_taken_over() -> None:
    place = Place()
    place.add("a", on_lease("a"))
    place.add("b", on_lease("b", 2))
    place.run(20.0)
    place.kill("a")
    place.run(60.0)
    (at, name, turn) = place.turns[-1]
    assert (name, turn) == ("b", Turn.BEGAN)
    assert 35.0 <= at < 46.0  # 15 s after b saw the last renewal, at one of its tries
    assert place.found is not None
    assert place.found["spec"]["holderIdentity"] == "b"
    assert place.found["spec"]["leaseTransitions"] == 1
    assert place.samples == ["leader_changes"]


def test_a_leader_that_cannot_renew_for_ten_seconds_has_lost() -> None:
    place = Place()
    elector = on_lease("a")
    place.add("a", elector)
    place.run(6.0)
    place.down = True
    place.run(40.0)
    assert place.turns == [(0.0, "a", Turn.BEGAN), (20.0, "a", Turn.LOST)]  # the round began at 10
    assert elector.state is State.IDLE


def test_a_write_that_collides_reads_and_writes_again() -> None:
    place = Place()
    place.add("a", on_lease("a"))
    assert place.found is not None
    place.found["metadata"]["resourceVersion"] = "77"
    place.run(5.0)
    assert [line[2:] for line in place.lines[-3:]] == [("update", 409), ("get", 200), ("update", 200)]


def test_a_claim_is_locked_in_its_annotation_and_read_before_each_write() -> None:
    place = Place(a_claim())
    place.add("a", on_claim("a"))
    place.run(4.5)
    assert [(at, verb) for at, _, verb, _ in place.lines] == [
        (0.0, "get"),
        (0.0, "update"),
        (2.0, "get"),
        (2.0, "update"),
        (4.0, "get"),
        (4.0, "update"),
    ]
    assert place.found is not None
    record = msgspec.json.decode(place.found["metadata"]["annotations"][ANNOTATION])
    assert list(record) == [
        "holderIdentity",
        "leaseDurationSeconds",
        "acquireTime",
        "renewTime",
        "leaderTransitions",
    ]
    assert record["leaderTransitions"] == 1
    assert record["renewTime"].endswith("Z")
    assert "." not in record["renewTime"]


def test_a_claims_leader_gives_up_after_its_term() -> None:
    place = Place(a_claim())
    place.add("a", on_claim("a"))
    place.run(60.0)
    assert place.turns == [(0.0, "a", Turn.BEGAN), (30.0, "a", Turn.TERM)]


@pytest.mark.parametrize("succeeded", [True, False])
def test_a_leader_stops_at_the_next_round_once_its_task_has_ended(succeeded: bool) -> None:
    place = Place(a_claim())
    elector = on_claim("a")
    place.add("a", elector)
    place.run(2.5)
    elector.report(succeeded)
    place.run(60.0)
    assert place.turns == [(0.0, "a", Turn.BEGAN), (4.0, "a", Turn.TASK)]


def test_a_loser_stops_when_the_task_has_succeeded_and_goes_on_when_it_has_failed() -> None:
    place = Place(a_claim())
    loser = on_claim("b", 2)
    place.add("a", on_claim("a"))
    place.add("b", loser)
    place.run(3.0)
    loser.report(False)
    place.run(9.0)
    assert [name for _, name, _ in place.turns] == ["a"]
    loser.report(True)
    place.run(14.0)
    assert place.turns[-1][1:] == ("b", Turn.TASK)


def test_an_answer_that_is_no_lock_is_a_try_that_failed() -> None:
    place = Place({"metadata": {"name": "c", "resourceVersion": "1", "annotations": {ANNOTATION: "{"}}})
    place.add("a", on_claim("a"))
    place.run(30.0)
    assert place.turns == []
    assert {verb for _, _, verb, _ in place.lines} == {"get"}


def test_stopping_leaves_the_record_to_run_out() -> None:
    place = Place()
    place.add("a", on_lease("a"))
    place.run(1.0)
    place.stop("a")
    assert place.found is not None
    assert place.found["spec"]["holderIdentity"] == "a"
    place.run(30.0)
    assert len(place.lines) == 3
