"""Events that a kubelet posts, with the real texts. client-go tools/record/event.go and events_cache.go.

Each is a POST through the client "events"; the same warning again is a PATCH of its count. A warning storm is held back
as upstream does it: 25 at once, then one in 300 s for each pod. A try that got no answer is repeated, 12 times in all,
10 s apart; an answer, whatever it says, ends it. Left out: merging of unlike messages after ten of a kind.
"""

from __future__ import annotations

import msgspec

from harness.client.machine import Answered, Arm, Event, Failed, Fired, Key, Send
from harness.client.requests import EVENTS, create_, patch_
from harness.fleet.context import Context, Out
from harness.fleet.pods import Pod
from harness.wire.request import Request

PART = "events"
_TRIES = 12
_RETRY_S = 10.0
_SPAM_BURST = 25.0
_SPAM_REFILL_S = 300.0


class _Posted:
    """A warning that was posted before."""

    __slots__ = ("count", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 1


class _Warnings:
    """The warnings about one pod."""

    __slots__ = ("at", "posted", "tokens")

    def __init__(self, now: float) -> None:
        self.tokens = _SPAM_BURST
        self.at = now
        self.posted: dict[str, _Posted] = {}

    def admit(self, now: float) -> bool:
        self.tokens = min(_SPAM_BURST, self.tokens + (now - self.at) / _SPAM_REFILL_S)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class EventRecorder:
    """Posts events about pods and about the node; silent where the options say so."""

    __slots__ = ("_context", "_on", "_sent", "_serial", "_warnings")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._on = context.options.events
        self._serial = 0
        self._sent: dict[Key, tuple[Request, int]] = {}  # unanswered: request, tries so far
        self._warnings: dict[str, _Warnings] = {}

    def normal(self, pod: Pod, reason: str, message: str, now: float, out: Out, container: str = "") -> None:
        if self._on:
            name = self._name(pod.name, now)
            self._send(
                create_(
                    EVENTS,
                    pod.namespace,
                    self._about(pod, name, reason, message, container, now, "Normal"),
                    client=PART,
                ),
                out,
            )

    def warning(self, pod: Pod, reason: str, message: str, now: float, out: Out, container: str = "") -> None:
        if not self._on:
            return
        warnings = self._warnings.get(pod.uid)
        if warnings is None:
            warnings = self._warnings[pod.uid] = _Warnings(now)
        if not warnings.admit(now):
            return
        posted = warnings.posted.get(message)
        if posted is None:
            name = self._name(pod.name, now)
            warnings.posted[message] = _Posted(name)
            body = self._about(pod, name, reason, message, container, now, "Warning")
            self._send(create_(EVENTS, pod.namespace, body, client=PART), out)
        else:
            posted.count += 1
            patch = f'{{"count":{posted.count},"lastTimestamp":"{self._context.stamp(now)}"}}'.encode()
            self._send(patch_(EVENTS, pod.namespace, posted.name, patch, client=PART), out)

    def node(self, reason: str, message: str, now: float, out: Out) -> None:
        """About the node itself; such events live in the namespace "default" and have the node's name as uid."""
        if self._on:
            name = self._context.name
            involved = f'{{"kind":"Node","name":"{name}","uid":"{name}"}}'
            body = self._body("default", self._name(name, now), involved, reason, message, now, "Normal")
            self._send(create_(EVENTS, "default", body, client=PART), out)

    def forget(self, uid: str) -> None:
        self._warnings.pop(uid, None)

    def handle(self, event: Event, now: float, out: Out) -> None:
        entry = self._sent.get(event.key)
        if entry is None:
            return
        request, tries = entry
        if isinstance(event, Fired):
            out.append(Send(event.key, request))
        elif isinstance(event, Failed) and tries < _TRIES:
            self._sent[event.key] = (request, tries + 1)
            out.append(Arm(event.key, now + _RETRY_S))
        elif isinstance(event, Answered | Failed):
            del self._sent[event.key]

    # ---- inner -------------------------------------------------------------------------------------------------------
    def _send(self, request: Request, out: Out) -> None:
        self._serial += 1
        key = (PART, self._serial)
        self._sent[key] = (request, 1)
        out.append(Send(key, request))

    def _name(self, about: str, now: float) -> str:
        """Object and time in nanoseconds; the serial number keeps two of one moment apart."""
        nanoseconds = int((self._context.epoch_s + now) * 1e9) + self._serial
        return f"{about}.{nanoseconds:x}"

    def _about(
        self, pod: Pod, name: str, reason: str, message: str, container: str, now: float, kind: str
    ) -> bytes:
        path = f',"fieldPath":"spec.containers{{{container}}}"' if container else ""
        involved = (
            f'{{"kind":"Pod","namespace":"{pod.namespace}","name":"{pod.name}","uid":"{pod.uid}",'
            f'"apiVersion":"v1","resourceVersion":"{pod.resource_version}"{path}}}'
        )
        return self._body(pod.namespace, name, involved, reason, message, now, kind)

    def _body(
        self, namespace: str, name: str, involved: str, reason: str, message: str, now: float, kind: str
    ) -> bytes:
        stamp, host = self._context.stamp(now), self._context.name
        text = msgspec.json.encode(message).decode()
        return (
            '{"kind":"Event","apiVersion":"v1",'
            f'"metadata":{{"name":"{name}","namespace":"{namespace}"}},"involvedObject":{involved},'
            f'"reason":"{reason}","message":{text},"source":{{"component":"kubelet","host":"{host}"}},'
            f'"firstTimestamp":"{stamp}","lastTimestamp":"{stamp}","count":1,"type":"{kind}",'
            f'"eventTime":null,"reportingComponent":"kubelet","reportingInstance":"{host}"}}'
        ).encode()
