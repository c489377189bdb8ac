"""What all controllers have in common: a queue, workers that run syncs, a client, an event recorder."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

import msgspec

from harness.client import requests
from harness.client.machine import Answered, Arm, Disarm, Event, Failed, Fired, Send
from harness.client.requests import ResourceRef
from harness.client.store import Change
from harness.fleet.context import Out
from harness.fleet.controllers.api import Answer, ApiError, Steps, SyncError
from harness.fleet.controllers.informers import Informer, PodInformer
from harness.fleet.controllers.recorder import Recorder
from harness.fleet.controllers.views import NotAnObject, Object
from harness.fleet.controllers.workqueue import WorkQueue
from harness.wire import rfc3339
from harness.wire.request import Request, Response


class Hub:
    """What the controllers of one manager share: the time, the random source, the informers, where actions go."""

    def __init__(self, rng: Random, epoch_s: float) -> None:
        self.rng = rng
        self.epoch_s = epoch_s
        self.now = 0.0
        self.out: Out = []
        self.informers: dict[tuple[str, str], Informer] = {}
        self.provisioned_elsewhere: frozenset[str] = frozenset()
        self.labels: Mapping[str, str] = {}

    def informer(self, ref: ResourceRef, *, metadata_only: bool = False) -> Informer:
        """The shared informer of a resource, made where nobody asked for it before."""
        key = ("informer", str(ref))
        found = self.informers.get(key)
        if found is None:
            if ref == requests.PODS:
                found = PodInformer(self.rng)
            else:
                found = Informer(ref, self.rng, metadata_only=metadata_only)
            self.informers[key] = found
        return found

    def pods(self) -> PodInformer:
        found = self.informer(requests.PODS)
        assert isinstance(found, PodInformer)
        return found

    def stamp(self) -> str:
        """metav1.Time of now."""
        return rfc3339.seconds(self.epoch_s + self.now)

    def wall_s(self) -> float:
        return self.epoch_s + self.now


class _Worker:
    """A sync under way and the answers it waits for."""

    __slots__ = ("answers", "key", "missing", "steps")

    def __init__(self, key: str, steps: Steps[None]) -> None:
        self.key = key
        self.steps = steps
        self.answers: list[Answer | None] = []
        self.missing = 0


class Controller:
    """Base of the controllers. `name` is the service account, and the client of its requests; `component` the source
    of its events; `most_retries` how often a key is tried before it is dropped, None for ever."""

    name: ClassVar[str] = ""
    component: ClassVar[str] = ""
    workers: ClassVar[int] = 5
    most_retries: ClassVar[int | None] = None
    qps_factor: ClassVar[float] = 1.0
    period_s: ClassVar[float | None] = None
    """How often `tick` is called; None never."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.queue = self.make_queue()
        self.recorder = Recorder(self.name, self.component or self.name, hub)
        self.informers: list[Informer] = []
        self._active: dict[int, _Worker] = {}
        self._idle = list(range(self.workers))
        self._armed_at: float | None = None
        self._started = False
        self._written: dict[str, dict[Informer, int]] = {}
        self.subscribe()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(queue={len(self.queue)}, active={len(self._active)})"

    # ---- what a controller is ----------------------------------------------------------------------------------------
    def make_queue(self) -> WorkQueue:
        return WorkQueue()

    def subscribe(self) -> None:
        """Ask the hub for informers and hear of their changes."""

    def sync(self, key: str) -> Steps[None]:
        """Bring one object to what it should be. Raises ApiError or SyncError to be tried again."""
        raise NotImplementedError

    def tick(self) -> None:
        """Once each `period_s`."""

    def watch(self, ref: ResourceRef, subscriber: Any = None, *, metadata_only: bool = False) -> Informer:
        """The informer of `ref`, which must be synced before the first sync."""
        informer = self.hub.informer(ref, metadata_only=metadata_only)
        if informer not in self.informers:
            self.informers.append(informer)
        if subscriber is not None:
            informer.subscribers.append(subscriber)
        return informer

    def watch_pods(self, subscriber: Any = None) -> PodInformer:
        informer = self.watch(requests.PODS, subscriber)
        assert isinstance(informer, PodInformer)
        return informer

    def enqueue(self, change: Change, new: Any, old: Any) -> None:
        """A subscriber: the object itself is to be synced."""
        self.queue.add(new.key)

    def add_after(self, key: str, delay_s: float) -> None:
        self.queue.add_at(key, self.hub.now + delay_s, self.hub.now)

    # ---- its own writes ----------------------------------------------------------------------------------------------
    def wrote(self, key: str, informer: Informer, response: Response) -> None:
        """Remember what a sync of `key` has written (consistency store, kk/pkg/controller/util/consistency)."""
        version = _decode_version(response.body).metadata.resource_version
        if version.isdecimal():
            self._written.setdefault(key, {})[informer] = int(version)

    def check_fresh(self, key: str) -> None:
        """Raise SyncError where an informer does not show yet what was written for `key`. ReplicaSets, StatefulSets,
        DaemonSets and Jobs wait for it (StaleControllerConsistency gates, on since v1.36); others run into
        conflicts."""
        written = self._written.get(key)
        if written is None:
            return
        for informer, version in written.items():
            seen = informer.reflector.last_resource_version
            if seen.isdecimal() and int(seen) < version:
                raise SyncError(f"{informer!r} is behind {version}")
        del self._written[key]

    # ---- its requests ------------------------------------------------------------------------------------------------
    def create(
        self,
        ref: ResourceRef,
        namespace: str | None,
        body: Object | bytes,
        subresource: str = "",
        name: str = "",
    ) -> Request:
        return requests.create_(
            ref, namespace, _encoded(body), subresource=subresource, name=name, client=self.name
        )

    def update(self, ref: ResourceRef, obj: Object, subresource: str = "") -> Request:
        metadata = obj["metadata"]
        return requests.update_(
            ref,
            metadata.get("namespace"),
            metadata["name"],
            _encoded(obj),
            subresource=subresource,
            client=self.name,
        )

    def patch(self, ref: ResourceRef, namespace: str | None, name: str, body: Object, **more: Any) -> Request:
        return requests.patch_(ref, namespace, name, _encoded(body), client=self.name, **more)

    def get(self, ref: ResourceRef, namespace: str | None, name: str) -> Request:
        return requests.get_(ref, namespace, name, client=self.name)

    def delete(self, ref: ResourceRef, namespace: str | None, name: str, **more: Any) -> Request:
        return requests.delete_(ref, namespace, name, client=self.name, **more)

    # ---- the machine's part ------------------------------------------------------------------------------------------
    def start(self) -> None:
        if self.period_s is not None:
            self.hub.out.append(Arm((self.name, "tick"), self.hub.now + self.period_s))

    def stop(self) -> None:
        self.hub.out += [Disarm((self.name, part)) for part in ("queue", "tick", "record")]

    def handle(self, event: Event) -> None:
        part = event.key[1]
        if part == "record":
            self.recorder.handle(event)
        elif isinstance(event, Fired):
            self._fired(part)
        elif isinstance(event, Answered | Failed):
            index, place = event.key[2], event.key[3]
            assert isinstance(index, int)
            assert isinstance(place, int)
            self._answered(index, place, event.response if isinstance(event, Answered) else event.error)

    def pump(self) -> None:
        """Give what is ready to workers that are free; nothing before the informers have synced."""
        if not self._started:
            if not all(informer.synced for informer in self.informers):
                return
            self._started = True
        while self._idle and len(self.queue):
            key = self.queue.get()
            index = self._idle.pop()
            worker = self._active[index] = _Worker(key, self.sync(key))
            self._step(index, worker, None)
        if len(self.queue):
            self.hub.out.append(self.queue.depth(self.name))
        self.queue.touched = False
        self._rearm()

    def _fired(self, part: object) -> None:
        if part == "tick":
            if self._started:
                self.tick()
            assert self.period_s is not None
            self.hub.out.append(Arm((self.name, "tick"), self.hub.now + self.period_s))
        else:
            self._armed_at = None
            self.queue.touched = True
            self.queue.wake(self.hub.now)

    def _rearm(self) -> None:
        due = self.queue.next_at
        if due is not None and (self._armed_at is None or due < self._armed_at):
            self._armed_at = due
            self.hub.out.append(Arm((self.name, "queue"), due))

    def _answered(self, index: int, place: int, answer: Answer) -> None:
        worker = self._active[index]
        worker.answers[place] = answer
        worker.missing -= 1
        if worker.missing == 0:
            self._step(index, worker, worker.answers)  # type: ignore[arg-type]  # none is missing

    def _step(self, index: int, worker: _Worker, answers: list[Answer] | None) -> None:
        try:
            asked = next(worker.steps) if answers is None else worker.steps.send(answers)
        except StopIteration:
            self.queue.forget(worker.key)
        except (ApiError, SyncError, NotAnObject, msgspec.DecodeError):
            self._failed(worker.key)
        else:
            worker.answers = [None] * len(asked)
            worker.missing = len(asked)
            for place, request in enumerate(asked):
                self.hub.out.append(Send((self.name, "work", index, place), request))
            return
        del self._active[index]
        self._idle.append(index)
        self.queue.done(worker.key)

    def _failed(self, key: str) -> None:
        if self.most_retries is not None and self.queue.requeues(key) >= self.most_retries:
            self.queue.forget(key)
        else:
            self.queue.add_rate_limited(key, self.hub.now)


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""


class _Versioned(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_decode_version = msgspec.json.Decoder(_Versioned).decode
_encode = msgspec.json.encode


def _encoded(body: Object | bytes) -> bytes:
    return body if isinstance(body, bytes) else _encode(body)
