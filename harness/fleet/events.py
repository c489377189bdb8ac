"""Events that a kubelet posts, with the real texts. client-go tools/record/event.go.

One worker records them one after the other, as upstream's goroutine for a sink does: an event is correlated when its
turn comes, then POSTed, or, where it was counted before, PATCHed, and POSTed after all where the server answers 404.
Until that is answered, whatever the client's limits and retries below make of it, the others wait; more than 1,000
waiting are dropped. A try that got no answer is repeated, 12 in all, 10 s apart; an answer, whatever it says, ends it.
"""

from __future__ import annotations

import msgspec

from harness.client.machine import Answered, Arm, Disarm, Event, Failed, Fired, Sample, Send
from harness.client.requests import EVENTS, create_, patch_
from harness.fleet.context import Context, Out
from harness.fleet.eventcorrelator import WARNING, Correlator, Occurrence
from harness.fleet.pods import Pod
from harness.wire.request import Request

PART = "events"
MAX_QUEUED = 1000  # maxQueuedEvents
_TRIES = 12  # maxTriesPerEvent
_RETRY_S = 10.0  # defaultSleepDuration


class EventRecorder:
    """Posts events about pods and about the node; silent where the options say so. Keys: ("events", "record") and the
    timer ("events", "retry"). What is not recorded is sampled: ``kubelet_events_lost``, why = queue full, held back
    (the spam filter), refused, unreachable."""

    __slots__ = ("_context", "_correlator", "_current", "_on", "_patching", "_queue", "_serial", "_tries")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._on = context.options.events
        self._correlator = Correlator()
        self._queue: list[Occurrence] = []  # a deque begins with 0.6 KB
        self._current: Occurrence | None = None  # the one that is being recorded
        self._patching = False
        self._tries = 0
        self._serial = 0

    def __len__(self) -> int:
        """Events that are not recorded yet."""
        return len(self._queue) + (self._current is not None)

    def normal(
        self,
        pod: Pod,
        reason: str,
        message: str,
        now: float,
        out: Out,
        container: str = "",
        *,
        repeats: bool = False,
    ) -> None:
        """`container` is its field path below ``spec.``; `repeats` says that the same may come again."""
        if self._on:
            self._about(pod, "Normal", reason, message, container, now, out, repeats)

    def warning(self, pod: Pod, reason: str, message: str, now: float, out: Out, container: str = "") -> None:
        if self._on:
            self._about(pod, WARNING, reason, message, container, now, out)

    def node(self, reason: str, message: str, now: float, out: Out, kind: str = "Normal") -> None:
        """About the node itself; such events live in the namespace "default" and have the node's name as uid."""
        if self._on:
            name, stamp = self._context.name, self._context.stamp(now)
            involved = f'{{"kind":"Node","name":"{name}","uid":"{name}"}}'
            event = Occurrence(
                "default", self._name(name, now), name, involved, kind, reason, message, stamp, stamp
            )
            self._record(event, now, out)

    def forget(self, uid: str) -> None:
        self._correlator.forget(uid)

    def handle(self, event: Event, now: float, out: Out) -> None:
        if self._current is None:
            return
        if isinstance(event, Fired):
            self._attempt(self._current, out)
        elif isinstance(event, Answered):
            self._answered(self._current, event, now, out)
        elif isinstance(event, Failed):
            self._unanswered(now, out)

    def stop(self, out: Out) -> None:
        out.append(Disarm((PART, "retry")))

    # ---- the queue ---------------------------------------------------------------------------------------------------
    def _about(
        self,
        pod: Pod,
        kind: str,
        reason: str,
        message: str,
        container: str,
        now: float,
        out: Out,
        repeats: bool = False,
    ) -> None:
        path = f',"fieldPath":"spec.{container}"' if container else ""
        involved = (
            f'{{"kind":"Pod","namespace":"{pod.namespace}","name":"{pod.name}","uid":"{pod.uid}",'
            f'"apiVersion":"v1","resourceVersion":"{pod.resource_version}"{path}}}'
        )
        name, stamp = self._name(pod.name, now), self._context.stamp(now)
        event = Occurrence(
            pod.namespace,
            name,
            pod.uid,
            involved,
            kind,
            reason,
            message,
            stamp,
            stamp,
            container,
            repeats=repeats,
        )
        self._record(event, now, out)

    def _name(self, about: str, now: float) -> str:
        """Object and time in nanoseconds; the serial number keeps two of one moment apart."""
        self._serial += 1
        return f"{about}.{int((self._context.epoch_s + now) * 1e9) + self._serial:x}"

    def _record(self, event: Occurrence, now: float, out: Out) -> None:
        if len(self._queue) >= MAX_QUEUED:
            _lost("queue full", out)
            return
        self._queue.append(event)
        if self._current is None:
            self._next(now, out)

    def _next(self, now: float, out: Out) -> None:
        self._current = None
        while self._queue:
            event = self._queue.pop(0)
            if self._correlator.correlate(event, now):
                self._current, self._tries = event, 0
                self._attempt(event, out)
                return
            _lost("held back", out)

    # ---- one event ---------------------------------------------------------------------------------------------------
    def _attempt(self, event: Occurrence, out: Out) -> None:
        self._patching = event.count > 1
        if self._patching:
            request = patch_(EVENTS, event.namespace, event.name, _patch(event), client=PART)
        else:
            request = self._create(event)
        out.append(Send((PART, "record"), request))

    def _answered(self, event: Occurrence, answer: Answered, now: float, out: Out) -> None:
        if self._patching and answer.response.status == 404:  # it has expired, or was never created
            self._patching = False
            out.append(Send((PART, "record"), self._create(event)))
            return
        if not answer.response.ok:
            _lost("refused", out)
        self._next(now, out)

    def _unanswered(self, now: float, out: Out) -> None:
        self._tries += 1
        if self._tries >= _TRIES:
            _lost("unreachable", out)
            self._next(now, out)
            return
        share = self._context.rng.random() if self._tries == 1 else 1.0  # spreads clients after an outage
        out.append(Arm((PART, "retry"), now + _RETRY_S * share))

    def _create(self, event: Occurrence) -> Request:
        host = self._context.name
        text = msgspec.json.encode(event.message).decode()
        instance = host if event.reporter else ""
        body = (
            '{"kind":"Event","apiVersion":"v1",'
            f'"metadata":{{"name":"{event.name}","namespace":"{event.namespace}"}},'
            f'"involvedObject":{event.involved},'
            f'"reason":"{event.reason}","message":{text},"source":{{"component":"kubelet","host":"{host}"}},'
            f'"firstTimestamp":"{event.first}","lastTimestamp":"{event.last}","count":{event.count},'
            f'"type":"{event.kind}","eventTime":null,"reportingComponent":"{event.reporter}",'
            f'"reportingInstance":"{instance}"}}'
        )
        return create_(EVENTS, event.namespace, body.encode(), client=PART)


def _patch(event: Occurrence) -> bytes:
    """What eventObserve makes: the fields that it blanked on the old side."""
    text = msgspec.json.encode(event.message).decode()
    return f'{{"count":{event.count},"lastTimestamp":"{event.last}","message":{text}}}'.encode()


def _lost(why: str, out: Out) -> None:
    out.append(Sample("kubelet_events_lost", 1.0, (("why", why),)))
