"""A cluster in virtual time: enough of an API to run a test against, and of nodes to start its pods."""

from __future__ import annotations

import heapq
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Disarm,
    Event,
    Failed,
    Finished,
    Fired,
    Machine,
    Note,
    Opened,
    Received,
    Sample,
    Send,
    Tell,
)
from harness.wire import rfc3339, status
from harness.wire.paths import RequestInfo, parse_path
from harness.wire.request import Request, Response, TransportError
from harness.wire.selectors import parse_labels

EPOCH_S = 1_800_000_000.0
Answer = Response | TransportError
Rule = Callable[[Request, RequestInfo, int], Answer | None]


class FakeCluster:
    """Runs one machine to its end.

    `latency_s` is the time of every answer. A pod is bound `schedule_s` after its creation and runs `start_s` later;
    a deleted one is gone after `stop_s`. `rule(request, info, n)` may answer the n-th request (from 1) itself.
    """

    def __init__(
        self,
        *,
        latency_s: float = 0.004,
        schedule_s: float = 0.1,
        start_s: float = 0.5,
        stop_s: float = 0.2,
        rule: Rule | None = None,
    ) -> None:
        self.latency_s, self.schedule_s, self.start_s, self.stop_s = latency_s, schedule_s, start_s, stop_s
        self.rule = rule
        self.now = 0.0
        self.version = 100
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.watches: dict[tuple[Any, ...], RequestInfo] = {}
        self.requests: list[tuple[float, Request, RequestInfo]] = []
        self.notes: list[Note] = []
        self.samples: list[Sample] = []
        self.told: list[tuple[float, Any]] = []
        self.finished: Finished | None = None
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._timers: dict[tuple[Any, ...], int] = {}
        self._live: set[tuple[Any, ...]] = set()
        self._machine: Machine | None = None

    # ---- the shell -------------------------------------------------------------------------------------------------
    def run(self, machine: Machine, *, until: float = 1e6) -> Finished | None:
        """Carry out a machine's actions until it has finished; None where it has not by then."""
        self._machine = machine
        self.carry_out(machine.start(self.now))
        while self._queue and self.finished is None and self._queue[0][0] <= until:
            at, _, action = heapq.heappop(self._queue)
            self.now = max(self.now, at)
            action()
        if self.finished is None:
            self.now = max(self.now, until)
        return self.finished

    def at(self, when: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (when, next(self._order), action))

    def carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._send(action.key, action.request)
            elif isinstance(action, Cancel):
                self._live.discard(action.key)
                self.watches.pop(action.key, None)
            elif isinstance(action, Arm):
                self._arm(action.key, action.at)
            elif isinstance(action, Disarm):
                self._timers.pop(action.key, None)
            elif isinstance(action, Note):
                self.notes.append(action)
            elif isinstance(action, Sample):
                self.samples.append(action)
            elif isinstance(action, Tell):
                self.told.append((self.now, action.message))
            else:
                assert isinstance(action, Finished), action
                self.finished = action

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The fields of the notes of one kind."""
        return [note.fields for note in self.notes if note.kind == kind]

    def made(self, resource: str, verb: str = "create") -> list[float]:
        """When the requests of this kind came."""
        return [
            at for at, request, info in self.requests if info.resource == resource and request.verb == verb
        ]

    def verbs(self) -> Counter[str]:
        return Counter(f"{request.verb} {request.name}" for _, request, _ in self.requests)

    @property
    def idle(self) -> bool:
        """Nothing of the machine is left: no timer, request or watch."""
        return not (self._timers or self._live or self.watches)

    def _give(self, event: Event) -> None:
        assert self._machine is not None
        self.carry_out(self._machine.handle(event, self.now))

    def _arm(self, key: tuple[Any, ...], when: float) -> None:
        number = self._timers[key] = next(self._order)

        def fire() -> None:
            if self._timers.get(key) == number:
                del self._timers[key]
                self._give(Fired(key))

        self.at(when, fire)

    def _send(self, key: tuple[Any, ...], request: Request) -> None:
        info = parse_path(request.path, request.method)
        self.requests.append((self.now, request, info))
        number = len(self.requests)
        self._live.add(key)

        def answer() -> None:
            if key not in self._live:
                return
            given = self.rule(request, info, number) if self.rule is not None else None
            if given is None and info.verb == "watch":
                self._open(key, info)
                return
            self._live.discard(key)
            given = given if given is not None else self._answer(request, info)
            self._give(Failed(key, given) if isinstance(given, TransportError) else Answered(key, given))

        self.at(self.now + self.latency_s, answer)

    # ---- the API ---------------------------------------------------------------------------------------------------
    def _open(self, key: tuple[Any, ...], info: RequestInfo) -> None:
        self._live.discard(key)
        self.watches[key] = info
        self._give(Opened(key, "member-1"))
        for obj in self._selected(info):
            self._event(key, "ADDED", obj)
        end = {
            "metadata": {
                "resourceVersion": str(self.version),
                "annotations": {"k8s.io/initial-events-end": "true"},
            }
        }
        self._event(key, "BOOKMARK", end)

    def _event(self, key: tuple[Any, ...], kind: str, obj: dict[str, Any]) -> None:
        if key in self.watches:
            line = b'{"type":"' + kind.encode() + b'","object":' + json.dumps(obj).encode() + b"}\n"
            self._give(Received(key, line))

    def _selected(self, info: RequestInfo) -> Iterator[dict[str, Any]]:
        return (obj for place, obj in self.objects.items() if self._matches(info, place, obj))

    @staticmethod
    def _matches(info: RequestInfo, place: tuple[str, str, str], obj: dict[str, Any]) -> bool:
        if place[0] != info.resource or (info.namespace and place[1] not in (info.namespace, "")):
            return False
        selector = parse_labels(info.query.get("labelSelector", ""))
        return bool(selector.match(obj["metadata"].get("labels") or {}))

    def put(self, resource: str, obj: dict[str, Any], kind: str = "MODIFIED") -> None:
        """Store an object and tell the watches."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        place = (resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if kind == "DELETED":
            self.objects.pop(place, None)
        else:
            self.objects[place] = obj
        for key, info in list(self.watches.items()):
            if self._matches(info, place, obj):
                self._event(key, kind, json.loads(json.dumps(obj)))

    def _answer(self, request: Request, info: RequestInfo) -> Response:
        namespace = "" if info.resource == "namespaces" else info.namespace
        place = (info.resource, namespace, info.name)
        if request.verb == "create":
            return self._create(request, info, namespace)
        if request.verb == "list":
            found = list(self._selected(info))
            return _json(200, {"metadata": {"resourceVersion": str(self.version)}, "items": found})
        if place not in self.objects:
            return _refusal(status.not_found(info.group, info.resource, info.name))
        if request.verb == "patch":
            _merge(self.objects[place], json.loads(request.body))
            self.put(info.resource, self.objects[place])
        elif request.verb == "delete":
            self._delete(place)
            return _json(200, {"kind": "Status", "status": "Success"})
        return _json(200, self.objects[place])

    def _create(self, request: Request, info: RequestInfo, namespace: str) -> Response:
        obj = json.loads(request.body)
        name = obj["metadata"]["name"]
        if (info.resource, namespace, name) in self.objects:
            return _refusal(status.already_exists(info.group, info.resource, name))
        if namespace and ("namespaces", "", namespace) not in self.objects:
            return _refusal(status.not_found("", "namespaces", namespace))
        stamp = rfc3339.seconds(EPOCH_S + self.now)
        obj["metadata"].update(uid=f"uid-{self.version}", creationTimestamp=stamp)
        if namespace:
            obj["metadata"]["namespace"] = namespace
        if info.resource == "pods":
            obj["status"] = {"phase": "Pending"}
            self.at(self.now + self.schedule_s, lambda: self._bind(obj))
        self.put(info.resource, obj, "ADDED")
        if info.resource == "namespaces":
            account = {"metadata": {"name": "default", "namespace": name, "uid": f"sa-{name}"}}
            self.at(self.now + 0.05, lambda: self.put("serviceaccounts", account, "ADDED"))
        return _json(201, obj)

    def _delete(self, place: tuple[str, str, str]) -> None:
        obj = self.objects[place]
        if place[0] == "namespaces":
            for other in [key for key in self.objects if key[1] == place[2]]:
                self.put(other[0], self.objects[other], "DELETED")
        if place[0] != "pods":
            self.put(place[0], obj, "DELETED")
            return
        obj["metadata"]["deletionTimestamp"] = rfc3339.seconds(EPOCH_S + self.now)
        self.put("pods", obj)
        self.at(self.now + self.stop_s, lambda: place in self.objects and self.put("pods", obj, "DELETED"))

    # ---- scheduler and kubelets ------------------------------------------------------------------------------------
    def _alive(self, pod: dict[str, Any]) -> bool:
        metadata = pod["metadata"]
        here = self.objects.get(("pods", metadata["namespace"], metadata["name"]))
        return (
            here is not None
            and here["metadata"]["uid"] == metadata["uid"]
            and "deletionTimestamp" not in metadata
        )

    def _bind(self, pod: dict[str, Any]) -> None:
        if self._alive(pod):
            pod["spec"]["nodeName"] = "node-1"
            stamp = rfc3339.seconds(EPOCH_S + self.now)
            pod["status"]["conditions"] = [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}
            ]
            self.put("pods", pod)
            self.at(self.now + self.start_s, lambda: self._start(pod))

    def _start(self, pod: dict[str, Any]) -> None:
        if self._alive(pod):
            stamp = rfc3339.seconds(EPOCH_S + self.now)
            pod["status"]["phase"] = "Running"
            pod["status"]["conditions"].append(
                {"type": "Ready", "status": "True", "lastTransitionTime": stamp}
            )
            pod["status"]["containerStatuses"] = [{"state": {"running": {"startedAt": stamp}}}]
            self.put("pods", pod)


def _json(code: int, body: dict[str, Any]) -> Response:
    return Response(code, {"content-type": "application/json"}, json.dumps(body).encode(), "member-1")


def _refusal(refused: status.Status, **headers: str) -> Response:
    return Response(refused.http_status, headers, refused.body(), "member-1")


refusal = _refusal


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value
