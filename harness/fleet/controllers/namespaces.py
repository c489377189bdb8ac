"""Deletes what a terminating namespace holds, then the namespace. kk/pkg/controller/namespace.

Five seconds after the deletion is seen (and after each later change of the namespace), with up to ten namespaces at
once: GET the namespace; ask the server what resources it has (at each deletion anew); for pods LIST (how long they may
take), DELETECOLLECTION, LIST (what is left). Only when no pod is left DELETECOLLECTION and LIST of each other resource,
then PUT finalize. What remains is written into the namespace's status, and the next try comes after half of the pods'
grace period, or half of 15 s.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

import msgspec

from harness.client.discovery import GROUPS, PATHS, GroupList, discover_, namespaced
from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Answered, Arm, Disarm, Event, Failed, Sample, Send
from harness.client.reflector import Output, Reflector
from harness.client.requests import (
    NAMESPACES,
    PODS,
    ResourceRef,
    delete_collection_,
    get_,
    list_,
    update_,
)
from harness.client.store import Change, Changed
from harness.fleet.context import Out, parsed
from harness.fleet.controllers.ensurer import NamespaceView, decode_namespace
from harness.wire import rfc3339
from harness.wire.request import Response

_ESTIMATE_S = 15  # finalizerEstimateSeconds
_RETRY_S, _RETRY_CAP_S = 5.0, 60.0  # the controller's own rate limit of its queue


@dataclass(frozen=True, slots=True)
class NamespaceOptions:
    """Defaults are kube-controller-manager's."""

    resources: tuple[ResourceRef, ...] | None = None
    """What is deleted after the pods. None is whatever namespaced resources the target has, asked for at each deletion
    as upstream does (namespaced_resources_deleter.go, discoverResourcesFn)."""
    delay_s: float = 5.0
    """Wait after the deletion is seen; namespaceDeletionGracePeriod."""
    workers: int = 10
    """Namespaces at once; concurrent-namespace-syncs."""
    qps: float = 400.0
    """Requests a second: this controller alone gets 20 times kube-api-qps (20)."""
    burst: int = 3000
    """Tokens of its bucket: 100 times kube-api-burst (30)."""


def namespace_limiters(options: NamespaceOptions) -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around a `NamespaceController`."""
    return {"main": TokenBucket(options.qps, options.burst)}


class Step(Enum):
    """What a namespace waits for."""

    READ = "GET namespace"
    DISCOVER = "GET /api, then /apis"
    ESTIMATE = "LIST pods, for their grace periods"
    DELETE = "DELETECOLLECTION"
    REMAINING = "LIST of what is left"
    STATUS = "PUT namespaces/status"
    FINALIZE = "PUT namespaces/finalize"


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    termination_grace_period_seconds: int = 30


class _Item(msgspec.Struct, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()


class _Items(msgspec.Struct, frozen=True, gc=False):
    items: tuple[_Item, ...] | None = None


_ITEMS = msgspec.json.Decoder(_Items)
_OBJECT = msgspec.json.Decoder(dict[str, Any])


class _Deletion:
    """One namespace being worked on."""

    __slots__ = ("estimate_s", "groups", "index", "namespace", "remaining", "resources", "step")

    def __init__(self, resources: tuple[ResourceRef, ...] | None) -> None:
        self.resources = resources or ()
        self.groups: list[GroupList] = []
        self.step = Step.READ
        self.namespace: dict[str, Any] = {}
        self.index = -1  # of the resource at hand; -1 is pods
        self.estimate_s = 0
        self.remaining = 0


class NamespaceController:
    """A machine. Samples: ``namespace_deletion_ms``, from seeing the deletion to seeing it gone."""

    __slots__ = (
        "_active",
        "_delays_s",
        "_due",
        "_epoch_s",
        "_heap",
        "_informer",
        "_options",
        "_ready",
        "_seen_at",
    )

    def __init__(self, options: NamespaceOptions, rng: Random, epoch_s: float) -> None:
        self._options = options
        self._epoch_s = epoch_s
        self._informer = Reflector("namespaces", NAMESPACES, None, "", "", rng, decode=decode_namespace)
        self._active: dict[str, _Deletion] = {}
        self._due: dict[str, float] = {}  # namespaces that wait, each once, at its earliest time
        self._heap: list[tuple[float, str]] = []
        self._ready: list[str] = []  # due, but all workers are busy
        self._delays_s: dict[str, float] = {}
        self._seen_at: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"NamespaceController(active={len(self._active)}, waiting={len(self._due)})"

    def start(self, now: float) -> list[Action]:
        out: Out = []
        self._take(self._informer.start(now), now, out)
        return out

    def handle(self, event: Event, now: float) -> list[Action]:
        out: Out = []
        if event.key[0] == "namespaces":
            self._take(self._informer.handle(event, now), now, out)
        elif event.key[0] == "queue":
            self._fired(now, out)
        elif isinstance(event, Answered | Failed):
            name = str(event.key[1])
            self._answered(name, self._active[name], event, now, out)
            self._work(now, out)
        return out

    def stop(self, now: float) -> list[Action]:
        out: Out = []
        self._take(self._informer.stop(now), now, out)
        out.append(Disarm(("queue",)))
        return out

    # ---- the queue ---------------------------------------------------------------------------------------------------
    def _take(self, outputs: list[Output], now: float, out: Out) -> None:
        for output in outputs:
            if not isinstance(output, Changed):
                out.append(output)
            elif isinstance(output.object, NamespaceView):
                metadata = output.object.metadata
                if output.change is Change.DELETED:
                    if metadata.name in self._seen_at:
                        ms = (now - self._seen_at.pop(metadata.name)) * 1000.0
                        out.append(Sample("namespace_deletion_ms", ms))
                elif metadata.deleted is not None:
                    self._seen_at.setdefault(metadata.name, now)
                    self._add(metadata.name, now + self._options.delay_s, out)

    def _add(self, name: str, due: float, out: Out) -> None:
        if due < self._due.get(name, float("inf")):
            self._due[name] = due
            heapq.heappush(self._heap, (due, name))
            if self._heap[0] == (due, name):
                out.append(Arm(("queue",), due))

    def _fired(self, now: float, out: Out) -> None:
        while self._heap and self._heap[0][0] <= now:
            due, name = heapq.heappop(self._heap)
            if self._due.get(name) == due:
                del self._due[name]
                self._ready.append(name)
        if self._heap:
            out.append(Arm(("queue",), self._heap[0][0]))
        self._work(now, out)

    def _work(self, now: float, out: Out) -> None:
        """A namespace that a worker has in hand waits for that one to finish."""
        waiting = []
        for name in self._ready:
            if name in self._active or len(self._active) >= self._options.workers:
                waiting.append(name)
            else:
                self._active[name] = _Deletion(self._options.resources)
                out.append(Send(("work", name), get_(NAMESPACES, None, name)))
        self._ready = waiting

    # ---- one namespace -----------------------------------------------------------------------------------------------
    def _answered(self, name: str, work: _Deletion, event: Answered | Failed, now: float, out: Out) -> None:
        response = event.response if isinstance(event, Answered) else None
        if response is None or not response.ok:
            self._failed(name, work, response, now, out)
        elif work.step is Step.READ:
            namespace = parsed(_OBJECT, response)
            if namespace is None:
                self._failed(name, work, None, now, out)
                return
            work.namespace = namespace
            if "deletionTimestamp" not in namespace.get("metadata", {}):
                self._done(name)
            else:
                self._go(name, work, Step.DISCOVER if self._options.resources is None else Step.ESTIMATE, out)
        elif work.step is Step.DISCOVER:
            self._discovered(name, work, response, now, out)
        elif work.step is Step.ESTIMATE:
            grace_s = [pod.spec.termination_grace_period_seconds for pod in _items(response)]
            work.estimate_s = max(grace_s, default=0)
            self._go(name, work, Step.DELETE, out)
        elif work.step is Step.DELETE:
            self._go(name, work, Step.REMAINING, out)
        elif work.step is Step.REMAINING:
            self._counted(name, work, len(_items(response)), now, out)
        elif work.step is Step.STATUS:
            self._later(name, work, now, out)
        else:
            self._done(name)

    def _discovered(self, name: str, work: _Deletion, response: Response, now: float, out: Out) -> None:
        groups = parsed(GROUPS, response)
        if groups is None:
            self._failed(name, work, None, now, out)
            return
        work.groups.append(groups)
        if len(work.groups) < len(PATHS):
            self._go(name, work, Step.DISCOVER, out)
            return
        work.resources = tuple(each for each in namespaced(work.groups) if each != PODS)
        self._go(name, work, Step.ESTIMATE, out)

    def _counted(self, name: str, work: _Deletion, remaining: int, now: float, out: Out) -> None:
        """Pods first and alone; of the other resources all are deleted before what is left is looked at."""
        work.remaining += remaining
        last = work.index + 1 == len(work.resources)
        if work.remaining and (work.index < 0 or last):
            if self._note_remaining(work, now):
                self._go(name, work, Step.STATUS, out)
            else:
                self._later(name, work, now, out)
        elif last:
            work.namespace.setdefault("spec", {})["finalizers"] = [
                each for each in work.namespace["spec"].get("finalizers", []) if each != "kubernetes"
            ]
            self._go(name, work, Step.FINALIZE, out)
        else:
            work.index += 1
            self._go(name, work, Step.DELETE, out)

    def _go(self, name: str, work: _Deletion, step: Step, out: Out) -> None:
        work.step = step
        resource = PODS if work.index < 0 else work.resources[work.index]
        if step is Step.DISCOVER:
            request = discover_(PATHS[len(work.groups)])
        elif step is Step.DELETE:
            request = delete_collection_(resource, name, propagation="Background")
        elif step in (Step.STATUS, Step.FINALIZE):
            subresource = "status" if step is Step.STATUS else "finalize"
            body = msgspec.json.encode(work.namespace)
            request = update_(NAMESPACES, None, name, body, subresource=subresource)
        else:
            request = list_(resource, name)
        out.append(Send(("work", name), request))

    def _failed(self, name: str, work: _Deletion, response: Response | None, now: float, out: Out) -> None:
        """404 and 405 of a resource mean that it cannot be deleted so; a conflict begins again at once."""
        status = 0 if response is None else response.status
        if status in (404, 405) and work.step is Step.DELETE:
            self._counted(name, work, 0, now, out)
        elif status == 404 and work.step in (Step.READ, Step.FINALIZE):
            self._done(name)
        elif work.step is Step.STATUS:
            self._later(name, work, now, out)
        else:
            del self._active[name]
            delay_s = self._delays_s.get(name, _RETRY_S)
            self._delays_s[name] = min(2 * delay_s, _RETRY_CAP_S)
            self._add(name, now if status == 409 else now + delay_s, out)

    def _later(self, name: str, work: _Deletion, now: float, out: Out) -> None:
        del self._active[name]
        self._add(name, now + (work.estimate_s or _ESTIMATE_S) // 2 + 1, out)

    def _done(self, name: str) -> None:
        del self._active[name]
        self._delays_s.pop(name, None)

    def _note_remaining(self, work: _Deletion, now: float) -> bool:
        """Write what is left into the status; False where it says so already."""
        what = "pods" if work.index < 0 else "other resources"
        message = f"Some resources are remaining: {what} has {work.remaining} resource instances"
        status = work.namespace.setdefault("status", {})
        conditions = [
            each for each in status.get("conditions", []) if each["type"] != "NamespaceContentRemaining"
        ]
        if any(each.get("message") == message for each in status.get("conditions", [])):
            return False
        condition = {
            "type": "NamespaceContentRemaining",
            "status": "True",
            "lastTransitionTime": rfc3339.seconds(self._epoch_s + now),
            "reason": "SomeResourcesRemain",
            "message": message,
        }
        status["conditions"] = [*conditions, condition]
        return True


def _items(response: Response) -> tuple[_Item, ...]:
    view = parsed(_ITEMS, response)
    return () if view is None else view.items or ()
