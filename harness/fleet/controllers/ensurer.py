"""A controller that sees to it that each active namespace has one object: what two of kube-controller-manager's do.

Informers on namespaces and on the object's resource (all of it, as the shared informers upstream); a queue with one
worker. A create that fails is tried again 5 ms later, then twice as long, up to 1000 s (client-go's default rate limit
of a work queue); one refused because the namespace is terminating is not tried again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Answered, Arm, Event, Failed, Fired, Send
from harness.client.reflector import Output, Reflector
from harness.client.requests import NAMESPACES, ResourceRef, create_, update_
from harness.client.store import Change, Changed, Decode, ObjectMeta
from harness.fleet.context import Out

_RETRY_S, _RETRY_CAP_S = 0.005, 1000.0
_QPS, _BURST = (
    20.0,
    30,
)  # kube-api-qps and kube-api-burst of kube-controller-manager, for each controller's client


def controller_limiters() -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around one controller."""
    return {"main": TokenBucket(_QPS, _BURST)}


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class NamespaceMeta(
    ObjectMeta, rename={"resource_version": "resourceVersion", "deleted": "deletionTimestamp"}
):
    deleted: str | None = None


class NamespaceView(msgspec.Struct, gc=False):
    """A namespace as controllers need it."""

    metadata: NamespaceMeta
    status: _Status = _Status()

    @property
    def active(self) -> bool:
        return self.metadata.deleted is None and self.status.phase != "Terminating"


decode_namespace: Decode = msgspec.json.Decoder(NamespaceView).decode


class Ensurer:
    """A machine. `body` is what is created; `correct` says whether an object found is as it should be, else it is
    updated to `body`. With `asks_first` nothing is sent into a namespace that is terminating; without it the server
    refuses what is deleted there and made again, as it does to root-ca-cert-publisher."""

    __slots__ = (
        "_asks_first",
        "_body",
        "_busy",
        "_correct",
        "_delays_s",
        "_name",
        "_namespaces",
        "_objects",
        "_queue",
        "_queued",
        "_resource",
    )

    def __init__(
        self,
        resource: ResourceRef,
        name: str,
        body: bytes,
        rng: Random,
        *,
        decode: Decode,
        correct: Callable[[Any], bool] = lambda found: True,
        asks_first: bool = True,
    ) -> None:
        self._asks_first = asks_first
        self._resource = resource
        self._name = name
        self._body = body
        self._correct = correct
        self._namespaces = Reflector("namespaces", NAMESPACES, None, "", "", rng, decode=decode_namespace)
        self._objects = Reflector("objects", resource, None, "", "", rng, decode=decode)
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self._delays_s: dict[str, float] = {}  # next wait of namespaces that failed
        self._busy = ""

    def __repr__(self) -> str:
        return (
            f"Ensurer({self._resource}/{self._name}, queue={len(self._queue)}, failing={len(self._delays_s)})"
        )

    def start(self, now: float) -> list[Action]:
        out: Out = []
        self._take(self._namespaces.start(now), out)
        self._take(self._objects.start(now), out)
        return out

    def handle(self, event: Event, now: float) -> list[Action]:
        out: Out = []
        part = event.key[0]
        if part == "namespaces":
            self._take(self._namespaces.handle(event, now), out)
        elif part == "objects":
            self._take(self._objects.handle(event, now), out)
        elif isinstance(event, Fired):
            self._add(str(event.key[1]))
        elif isinstance(event, Answered | Failed):
            self._answered(event, now, out)
        self._work(out)
        return out

    def stop(self, now: float) -> list[Action]:
        out: Out = []
        self._take(self._namespaces.stop(now), out)
        self._take(self._objects.stop(now), out)
        return out

    # ---- the queue ---------------------------------------------------------------------------------------------------
    def _take(self, outputs: list[Output], out: Out) -> None:
        for output in outputs:
            if not isinstance(output, Changed):
                out.append(output)
            elif output.change is Change.REPLACED:
                continue
            elif isinstance(output.object, NamespaceView):
                if output.change is not Change.DELETED and output.object.active:
                    self._add(output.object.metadata.name)
            elif output.change is not Change.ADDED and output.object.metadata.name == self._name:
                self._add(output.object.metadata.namespace)

    def _add(self, namespace: str) -> None:
        if namespace not in self._queued:
            self._queued.add(namespace)
            self._queue.append(namespace)

    def _work(self, out: Out) -> None:
        """One namespace at a time, and none before both informers have synced."""
        while self._queue and not self._busy and self._namespaces.synced and self._objects.synced:
            namespace = self._queue.popleft()
            self._queued.discard(namespace)
            self._sync(namespace, out)

    def _sync(self, namespace: str, out: Out) -> None:
        known = self._namespaces.store.get(namespace)
        if known is None or (self._asks_first and not known.active):
            return
        found = self._objects.store.get(f"{namespace}/{self._name}")
        if found is None:
            request = create_(self._resource, namespace, self._body)
        elif not self._correct(found):
            request = update_(self._resource, namespace, self._name, self._body)
        else:
            return
        self._busy = namespace
        out.append(Send(("write", namespace), request))

    def _answered(self, event: Answered | Failed, now: float, out: Out) -> None:
        namespace, self._busy = self._busy, ""
        if isinstance(event, Answered):
            response = event.response
            settled = response.ok or response.status in (404, 409) or b"NamespaceTerminating" in response.body
            if settled:
                self._delays_s.pop(namespace, None)
                return
        delay_s = self._delays_s.get(namespace, _RETRY_S)
        self._delays_s[namespace] = min(2 * delay_s, _RETRY_CAP_S)
        out.append(Arm(("retry", namespace), now + delay_s))
