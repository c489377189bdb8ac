"""A driver that plays the shell of a client machine from a script: events in, actions out, in virtual time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

import pytest

from harness.client.machine import (
    Answered,
    Arm,
    Cancel,
    Closed,
    Disarm,
    Event,
    Failed,
    Fired,
    Key,
    Opened,
    Received,
    Sample,
    Send,
)
from harness.client.store import Changed
from harness.wire.request import Failure, Request, Response, TransportError
from harness.wire.status import Status


class Runnable(Protocol):
    def start(self, now: float) -> list[Any]: ...
    def handle(self, event: Event, now: float) -> list[Any]: ...
    def stop(self, now: float) -> list[Any]: ...


class Driver:
    """Carries out a machine's actions on paper.

    `sent` are the requests that went out since last looked at (`take`), `in_flight` those without an end, `timers`
    the armed ones. Firing, answering and closing are the test's to say; `now` moves only by `advance` and `fire`.
    """

    def __init__(self, machine: Runnable, now: float = 100.0) -> None:
        self.machine = machine
        self.now = now
        self.timers: dict[Key, float] = {}
        self.in_flight: dict[Key, Request] = {}
        self.sent: list[tuple[Key, Request]] = []
        self.cancelled: list[Key] = []
        self.samples: list[Sample] = []
        self.changes: list[Changed] = []

    def start(self) -> None:
        self._carry_out(self.machine.start(self.now))

    def stop(self) -> None:
        self._carry_out(self.machine.stop(self.now))

    def _carry_out(self, actions: Iterable[Any]) -> None:
        for action in actions:
            if isinstance(action, Send):
                assert action.key not in self.in_flight, f"{action.key} is still under way"
                self.in_flight[action.key] = action.request
                self.sent.append((action.key, action.request))
            elif isinstance(action, Cancel):
                self.in_flight.pop(action.key, None)
                self.cancelled.append(action.key)
            elif isinstance(action, Arm):
                assert action.at >= self.now
                self.timers[action.key] = action.at
            elif isinstance(action, Disarm):
                self.timers.pop(action.key, None)
            elif isinstance(action, Sample):
                self.samples.append(action)
            else:
                assert isinstance(action, Changed), action
                self.changes.append(action)
        validate = getattr(self.machine, "validate", None)
        if validate is not None:
            validate()

    def event(self, event: Event) -> None:
        self._carry_out(self.machine.handle(event, self.now))

    # ---- what the other side does ------------------------------------------------------------------------------
    def _key(self, key: Key | None) -> Key:
        if key is not None:
            return key
        (only,) = self.in_flight
        return only

    def answer(
        self,
        body: Any = b"",
        status: int = 200,
        key: Key | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer a unary request, or a watch with something else than a stream; a Status brings its code."""
        key = self._key(key)
        if isinstance(body, Status):
            status, body = body.http_status, body.body()
        elif not isinstance(body, bytes):
            body = json.dumps(body).encode()
        del self.in_flight[key]
        self.event(Answered(key, Response(status, headers or {}, body, "m0")))

    def fail(self, failure: Failure, key: Key | None = None) -> None:
        key = self._key(key)
        del self.in_flight[key]
        self.event(Failed(key, TransportError(failure, "scripted", "m0")))

    def open(self, member: str = "m0") -> None:
        self.event(Opened(self._key(None), member))

    def receive(self, *lines: tuple[str, Any] | bytes) -> None:
        """Events of the open watch, all in one piece of bytes."""
        data = b"".join(
            line
            if isinstance(line, bytes)
            else json.dumps({"type": line[0], "object": line[1]}).encode() + b"\n"
            for line in lines
        )
        self.event(Received(self._key(None), data))

    def close(self, failure: Failure | None = None) -> None:
        key = self._key(None)
        del self.in_flight[key]
        error = None if failure is None else TransportError(failure, "scripted", "m0")
        self.event(Closed(key, error))

    # ---- time --------------------------------------------------------------------------------------------------
    def advance(self, seconds: float) -> None:
        """Let time pass in which no timer is due."""
        self.now += seconds
        assert all(at >= self.now for at in self.timers.values()), self.timers

    def fire(self) -> float:
        """Go to the next timer and fire it; how long that took."""
        key = min(self.timers, key=lambda each: self.timers[each])
        waited = self.timers.pop(key) - self.now
        self.now += waited
        self.event(Fired(key))
        return waited

    # ---- looking -----------------------------------------------------------------------------------------------
    def take(self) -> list[str]:
        """Paths of what was sent since the last look."""
        paths = [request.path for _, request in self.sent]
        self.sent.clear()
        return paths

    def take_samples(self, name: str) -> list[tuple[float, dict[str, str]]]:
        found = [(sample.value, dict(sample.labels)) for sample in self.samples if sample.name == name]
        self.samples = [sample for sample in self.samples if sample.name != name]
        return found

    def take_changes(self) -> list[tuple[str, str]]:
        """(change, name) of each store change since the last look."""
        found = [
            (changed.change.value, "" if changed.object is None else changed.object.metadata.name)
            for changed in self.changes
        ]
        self.changes.clear()
        return found


def obj(name: str, version: str | int, uid: str = "u", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, **more}


def bookmark(version: str | int, *, end: bool = False) -> tuple[str, dict[str, Any]]:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return "BOOKMARK", {"metadata": metadata}


class FixedRandom:
    """Returns the given numbers in turn, then the last one for ever."""

    def __init__(self, *values: float) -> None:
        self._values = list(values)

    def random(self) -> float:
        return self._values.pop(0) if len(self._values) > 1 else self._values[0]


@pytest.fixture
def middle() -> Any:
    """A random source whose every draw is 0.5."""
    return FixedRandom(0.5)
