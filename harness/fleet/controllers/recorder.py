"""Events of a controller: one after the other, correlated as client-go's recorder does. tools/record/event.go."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Protocol
from zlib import crc32

import msgspec

from harness.client.machine import Answered, Arm, Event, Failed, Fired, Sample, Send
from harness.client.requests import EVENTS, create_, patch_
from harness.fleet.context import Out
from harness.fleet.controllers.views import Object
from harness.fleet.eventcorrelator import Correlator, Occurrence
from harness.wire.request import Request


class Clock(Protocol):
    """The wall clock of whoever records, as text and as seconds since 1970."""

    def stamp(self) -> str: ...

    def wall_s(self) -> float: ...


class Process(Clock, Protocol):
    """What a recorder needs of the process that it is in (`controller.Hub`)."""

    rng: Random
    now: float
    out: Out


MAX_QUEUED = 1000  # maxQueuedEvents
_TRIES = 12  # maxTriesPerEvent
_RETRY_S = 10.0  # defaultSleepDuration


def occurrence(
    about: Object, kind: str, reason: str, message: str, clock: Clock, component: str, serial: int
) -> Occurrence:
    """An event about a whole object, which happens now; `serial` tells apart those of one moment."""
    metadata = about["metadata"]
    involved = {
        "kind": about["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": about["apiVersion"],
        "resourceVersion": metadata["resourceVersion"],
    }
    stamp = clock.stamp()
    name = f"{metadata['name']}.{int(clock.wall_s() * 1e9) + serial:x}"
    text = msgspec.json.encode(involved).decode()
    namespace = metadata.get("namespace") or "default"
    event = Occurrence(namespace, name, metadata["uid"], text, kind, reason, message, stamp, stamp)
    event.reporter = component
    return event


def counting(event: Occurrence, client: str) -> Request:
    """The request that raises the count of an event which is there already."""
    body = {"count": event.count, "lastTimestamp": event.last, "message": event.message}
    return patch_(EVENTS, event.namespace, event.name, msgspec.json.encode(body), client=client)


def creation(event: Occurrence, client: str, component: str) -> Request:
    """The request that makes an event. Its source is `component`; nothing reports one that is combined."""
    body = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": event.name, "namespace": event.namespace},
        "involvedObject": msgspec.Raw(event.involved.encode()),
        "reason": event.reason,
        "message": event.message,
        "source": {"component": component},
        "firstTimestamp": event.first,
        "lastTimestamp": event.last,
        "count": event.count,
        "type": event.kind,
        "eventTime": None,
        "reportingComponent": event.reporter,
        "reportingInstance": "",
    }
    return create_(EVENTS, event.namespace, msgspec.json.encode(body), client=client)


class Recorder:
    """Keys: (client, "record") of requests and of the timer. What is not recorded is sampled:
    ``controller_events_lost``, why = queue full, held back, refused, unreachable."""

    __slots__ = (
        "_client",
        "_component",
        "_correlator",
        "_current",
        "_hub",
        "_patching",
        "_queue",
        "_serial",
        "_tries",
    )

    def __init__(self, client: str, component: str, hub: Process) -> None:
        self._client = client
        self._component = component
        self._hub = hub
        self._correlator = Correlator()
        self._queue: deque[Occurrence] = deque()
        self._current: Occurrence | None = None
        self._patching = False
        self._tries = 0
        self._serial = crc32(component.encode())  # two recorders of one moment name their events apart

    def normal(self, about: Object, reason: str, message: str) -> None:
        self._record(about, "Normal", reason, message)

    def warning(self, about: Object, reason: str, message: str) -> None:
        self._record(about, "Warning", reason, message)

    def handle(self, event: Event) -> None:
        if self._current is None:
            return
        if isinstance(event, Fired):
            self._attempt(self._current)
        elif isinstance(event, Answered):
            self._answered(self._current, event)
        elif isinstance(event, Failed):
            self._unanswered()

    def _record(self, about: Object, kind: str, reason: str, message: str) -> None:
        """`about` is the whole object."""
        if len(self._queue) >= MAX_QUEUED:
            self._lost("queue full")
            return
        self._serial += 1
        self._queue.append(occurrence(about, kind, reason, message, self._hub, self._component, self._serial))
        if self._current is None:
            self._next()

    def _next(self) -> None:
        self._current = None
        while self._queue:
            event = self._queue.popleft()
            if self._correlator.correlate(event, self._hub.now):
                self._current, self._tries = event, 0
                self._attempt(event)
                return
            self._lost("held back")

    def _attempt(self, event: Occurrence) -> None:
        self._patching = event.count > 1
        request = (
            counting(event, self._client)
            if self._patching
            else creation(event, self._client, self._component)
        )
        self._hub.out.append(Send((self._client, "record"), request))

    def _answered(self, event: Occurrence, answer: Answered) -> None:
        if self._patching and answer.response.status == 404:  # it has expired, or was never created
            self._patching = False
            self._hub.out.append(
                Send((self._client, "record"), creation(event, self._client, self._component))
            )
            return
        if not answer.response.ok:
            self._lost("refused")
        self._next()

    def _unanswered(self) -> None:
        self._tries += 1
        if self._tries >= _TRIES:
            self._lost("unreachable")
            self._next()
            return
        share = self._hub.rng.random() if self._tries == 1 else 1.0  # spreads clients after an outage
        self._hub.out.append(Arm((self._client, "record"), self._hub.now + _RETRY_S * share))

    def _lost(self, why: str) -> None:
        labels = (("controller", self._client), ("why", why))
        self._hub.out.append(Sample("controller_events_lost", 1.0, labels))
