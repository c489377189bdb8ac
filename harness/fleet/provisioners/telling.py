"""A provisioner's events, and in which way it waits for them."""

from __future__ import annotations

from zlib import crc32

from harness.client.machine import Event
from harness.fleet.controllers.recorder import Process, Recorder, counting, creation, occurrence
from harness.fleet.controllers.views import Object
from harness.fleet.eventcorrelator import Correlator
from harness.fleet.provisioners.options import Events
from harness.fleet.provisioners.threads import Routine
from harness.wire.request import Response

CLIENT = "main"  # of the requests, and so of the recorder's keys


class Teller:
    """`tell` is part of the routine that has something to tell. Keys: ("main", "record") of the recorder."""

    def __init__(self, events: Events, component: str, process: Process) -> None:
        self._events = events
        self._component = component
        self._process = process
        self._correlator = Correlator()
        self._recorder = Recorder(CLIENT, component, process)
        self._serial = crc32(component.encode())

    def tell(self, about: Object, kind: str, reason: str, message: str) -> Routine[None]:
        """What becomes of the event is nobody's concern, as upstream."""
        if self._events == "broadcast":
            record = self._recorder.warning if kind == "Warning" else self._recorder.normal
            record(about, reason, message)
        elif self._events == "in-order":
            yield from self._write(about, kind, reason, message)

    def handle(self, event: Event) -> None:
        self._recorder.handle(event)

    def _write(self, about: Object, kind: str, reason: str, message: str) -> Routine[None]:
        self._serial += 1
        event = occurrence(about, kind, reason, message, self._process, self._component, self._serial)
        if not self._correlator.correlate(event, self._process.now):
            return
        if event.count > 1:
            answer = yield counting(event, CLIENT)
            if not isinstance(answer, Response) or answer.status != 404:
                return
        yield creation(event, CLIENT, self._component)
