"""Events of a controller: one after the other, correlated as client-go's recorder does. tools/record/event.go."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from harness.client.machine import Answered, Arm, Event, Failed, Fired, Sample, Send
from harness.client.requests import EVENTS, create_, patch_
from harness.fleet.controllers.views import Object
from harness.fleet.eventcorrelator import Correlator, Occurrence

if TYPE_CHECKING:
    from harness.fleet.controllers.controller import Hub

MAX_QUEUED = 1000  # maxQueuedEvents
_TRIES = 12  # maxTriesPerEvent
_RETRY_S = 10.0  # defaultSleepDuration


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

    def __init__(self, client: str, component: str, hub: Hub) -> None:
        self._client = client
        self._component = component
        self._hub = hub
        self._correlator = Correlator()
        self._queue: deque[Occurrence] = deque()
        self._current: Occurrence | None = None
        self._patching = False
        self._tries = 0
        self._serial = 0

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
        metadata = about["metadata"]
        involved = {
            "kind": about["kind"],
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata["uid"],
            "apiVersion": about["apiVersion"],
            "resourceVersion": metadata["resourceVersion"],
        }
        self._serial += 1
        stamp = self._hub.stamp()
        name = f"{metadata['name']}.{int(self._hub.wall_s() * 1e9) + self._serial:x}"
        text = msgspec.json.encode(involved).decode()
        namespace = metadata.get("namespace") or "default"
        event = Occurrence(namespace, name, metadata["uid"], text, kind, reason, message, stamp, stamp)
        event.reporter = self._component
        self._queue.append(event)
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
        if self._patching:
            body = {"count": event.count, "lastTimestamp": event.last, "message": event.message}
            encoded = msgspec.json.encode(body)
            request = patch_(EVENTS, event.namespace, event.name, encoded, client=self._client)
            self._hub.out.append(Send((self._client, "record"), request))
        else:
            self._create(event)

    def _create(self, event: Occurrence) -> None:
        body = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": event.name, "namespace": event.namespace},
            "involvedObject": msgspec.Raw(event.involved.encode()),
            "reason": event.reason,
            "message": event.message,
            "source": {"component": self._component},
            "firstTimestamp": event.first,
            "lastTimestamp": event.last,
            "count": event.count,
            "type": event.kind,
            "eventTime": None,
            "reportingComponent": event.reporter,
            "reportingInstance": "",
        }
        request = create_(EVENTS, event.namespace, msgspec.json.encode(body), client=self._client)
        self._hub.out.append(Send((self._client, "record"), request))

    def _answered(self, event: Occurrence, answer: Answered) -> None:
        if self._patching and answer.response.status == 404:  # it has expired, or was never created
            self._patching = False
            self._create(event)
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
