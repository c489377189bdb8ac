"""An in-memory API server and a driver that runs machines against it over virtual time. No sockets, no clock.

The server knows just enough: objects by (resource, namespace, name), watches, watch-lists, patches that merge lists of
conditions by type, graceful deletion of pods, bindings, tokens, finalizing. `refuse` scripts what it will not answer;
a 429 says ``Retry-After: 1``.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    CloseConnections,
    Closed,
    Disarm,
    Event,
    Failed,
    Finished,
    Fired,
    Key,
    Machine,
    Note,
    Opened,
    Received,
    Sample,
    Seen,
    Send,
    UseCertificate,
)
from harness.wire import rfc3339
from harness.wire.paths import RequestInfo, parse_path
from harness.wire.request import Failure, Request, Response, TransportError
from harness.wire.watching import encode_event

EPOCH_S = 1_800_000_000.0
LATENCY_S = 0.002
Object = dict[str, Any]
Refusal = tuple[int, bytes] | TransportError | None
_CLUSTER = {
    "nodes",
    "namespaces",
    "csinodes",
    "csidrivers",
    "runtimeclasses",
    "persistentvolumes",
    "volumeattachments",
    "certificatesigningrequests",
    "servicecidrs",
}


class Logged(msgspec.Struct):
    """One request: when it was sent, by which machine, and what came of it (0: no answer)."""

    at: float
    who: int
    request: Request
    info: RequestInfo
    status: int = 0

    @property
    def line(self) -> str:
        return f"{self.info.verb} {self.info.resource_and_subresource}"


class _Watch:
    def __init__(self, who: int, key: Key, info: RequestInfo) -> None:
        self.who, self.key, self.info = who, key, info


class World:
    """The server, the machines, the time."""

    def __init__(self, latency_s: float = LATENCY_S) -> None:
        self.now = 0.0
        self.latency_s = latency_s
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.version = 100
        self.log: list[Logged] = []
        self.samples: list[Sample] = []
        self.sightings: list[Seen] = []
        self.notes: list[Note] = []
        self.finished: list[Finished] = []
        self.closings: list[tuple[float, str]] = []
        self.certificates: list[bytes] = []
        self.refuse: Callable[[Logged], Refusal] = lambda logged: None
        self.watches: list[_Watch] = []
        self._history: list[tuple[int, str, str, Object | None, Object]] = []
        self._machines: list[Machine] = []
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._timers: dict[tuple[int, Key], int] = {}
        self._flying: dict[tuple[int, Key], int] = {}
        self.checks: list[Callable[[], None]] = []  # run after every event

    # ---- time --------------------------------------------------------------------------------------------------------
    def add(self, machine: Machine) -> int:
        self._machines.append(machine)
        who = len(self._machines) - 1
        self._perform(who, machine.start(self.now))
        return who

    def stop(self, who: int) -> None:
        self._perform(who, self._machines[who].stop(self.now))

    def at(self, when: float, fn: Callable[[], None]) -> int:
        serial = next(self._order)
        heapq.heappush(self._heap, (when, serial, fn))
        return serial

    def kill(self, who: int) -> None:
        """Its process is gone, without a last action."""
        for table in (self._timers, self._flying):
            for key in [key for key in table if key[0] == who]:
                del table[key]
        self.watches = [watch for watch in self.watches if watch.who != who]

    def run(self, until: float) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, fn = heapq.heappop(self._heap)
            fn()
        self.now = until

    def run_until(self, condition: Callable[[], bool], limit_s: float = 600.0) -> float:
        """Run to the first moment at which `condition` holds; returns it."""
        end = self.now + limit_s
        while not condition():
            assert self._heap, "nothing will happen any more"
            assert self._heap[0][0] <= end, f"never came true within {limit_s} s"
            self.now, _, fn = heapq.heappop(self._heap)
            fn()
        return self.now

    # ---- machines ----------------------------------------------------------------------------------------------------
    def _tell(self, who: int, event: Event) -> None:
        self._perform(who, self._machines[who].handle(event, self.now))
        for check in self.checks:
            check()

    def _perform(self, who: int, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._send(who, action)
            elif isinstance(action, Arm):
                self._timers[who, action.key] = self._arm(who, action)
            elif isinstance(action, Disarm):
                self._timers.pop((who, action.key), None)
            elif isinstance(action, Cancel):
                self._flying.pop((who, action.key), None)
                self.watches = [each for each in self.watches if (each.who, each.key) != (who, action.key)]
            elif isinstance(action, Sample):
                self.samples.append(action)
            elif isinstance(action, Seen):
                self.sightings.append(action)
            elif isinstance(action, Note):
                self.notes.append(action)
            elif isinstance(action, CloseConnections):
                self.closings.append((self.now, action.why))
                self._break(who)
            elif isinstance(action, UseCertificate):
                self.certificates.append(action.certificate)
            else:
                assert isinstance(action, Finished), action
                self.finished.append(action)

    def _break(self, who: int) -> None:
        """All connections of a machine end; so does everything that they carried."""
        for watch in [each for each in self.watches if each.who == who]:
            self.close(watch, TransportError(Failure.CLOSED, "closed", "m0"))

    def _arm(self, who: int, action: Arm) -> int:
        assert action.at >= self.now - 1e-9, f"{action} is in the past at {self.now}"
        key = action.key

        def fire() -> None:
            if self._timers.get((who, key)) == serial:
                del self._timers[who, key]
                self._tell(who, Fired(key))

        serial = self.at(action.at, fire)
        return serial

    def _send(self, who: int, action: Send) -> None:
        key, request = action.key, action.request
        assert (who, key) not in self._flying, f"{key} is sent twice at once"
        logged = Logged(self.now, who, request, parse_path(request.path, request.method))
        self.log.append(logged)
        flight = self._flying[who, key] = next(self._order)
        self._half_way(who, key, flight, lambda: self._serve(who, key, logged))

    def _half_way(self, who: int, key: Key, flight: int, fn: Callable[[], None]) -> None:
        """Do something half a round trip later, if this exchange is still under way."""

        def arrive() -> None:
            if self._flying.get((who, key)) == flight:
                fn()

        self.at(self.now + self.latency_s / 2, arrive)

    def _later(self, who: int, key: Key, event: Event) -> None:
        def deliver() -> None:
            if not isinstance(event, Opened | Received):
                del self._flying[who, key]
            self._tell(who, event)

        if (who, key) in self._flying:
            self._half_way(who, key, self._flying[who, key], deliver)

    # ---- the server --------------------------------------------------------------------------------------------------
    def _serve(self, who: int, key: Key, logged: Logged) -> None:
        refusal = self.refuse(logged)
        if isinstance(refusal, TransportError):
            self._later(who, key, Failed(key, refusal))
            return
        if refusal is None and logged.info.verb == "watch":
            logged.status = 200
            self._open(who, key, logged.info)
            return
        status, body = refusal or self._answer(logged.info, logged.request.body)
        logged.status = status
        headers = {"retry-after": "1"} if status == 429 else {}
        self._later(who, key, Answered(key, Response(status, headers, body, "m0")))

    def _open(self, who: int, key: Key, info: RequestInfo) -> None:
        self._later(who, key, Opened(key, "m0"))
        watch = _Watch(who, key, info)
        self.watches.append(watch)
        query = info.query
        if query.get("sendInitialEvents") == "true":
            for obj in self._select(info):
                self._push(watch, "ADDED", obj)
            mark = {
                "resourceVersion": str(self.version),
                "annotations": {"k8s.io/initial-events-end": "true"},
            }
            self._push(watch, "BOOKMARK", {"metadata": mark})
        else:
            for version, *change in self._history:
                if version > int(query["resourceVersion"]):
                    self._offer(watch, *change)
        serial = self._flying[who, key]

        def expire() -> None:
            if self._flying.get((who, key)) == serial:
                self.close(watch)

        self.at(self.now + float(query["timeoutSeconds"]), expire)

    def close(self, watch: _Watch, error: TransportError | None = None) -> None:
        self.watches.remove(watch)
        self._later(watch.who, watch.key, Closed(watch.key, error))

    def _push(self, watch: _Watch, kind: str, obj: Object) -> None:
        data = encode_event(kind, msgspec.json.encode(obj))
        self._later(watch.who, watch.key, Received(watch.key, data))

    def _select(self, info: RequestInfo) -> list[Object]:
        found = [
            obj
            for (resource, namespace, _), obj in self.objects.items()
            if resource == info.resource and info.namespace in ("", namespace)
        ]
        return [obj for obj in found if _matches(info.query.get("fieldSelector", ""), obj)]

    def _answer(self, info: RequestInfo, body: bytes) -> tuple[int, bytes]:
        given = msgspec.json.decode(body) if body else {}
        namespace = "" if info.resource in _CLUSTER else info.namespace
        key = (info.resource, namespace, info.name)
        if info.subresource == "token":
            token = {
                "spec": {"expirationSeconds": given["spec"]["expirationSeconds"]},
                "status": {"token": "t"},
            }
            return 201, msgspec.json.encode(token)
        home = self.objects.get(("namespaces", "", namespace), {})
        if info.verb == "create" and "deletionTimestamp" in home.get("metadata", {}):
            return 403, _TERMINATING
        if info.verb == "create" and not info.subresource:
            return self._create(info.resource, namespace, given)
        if info.verb == "list":
            items = self._select(info)
            listed = {"metadata": {"resourceVersion": str(self.version)}, "items": items}
            return 200, msgspec.json.encode(listed)
        if info.verb == "deletecollection":
            for obj in self._select(info):
                self._delete(info.resource, obj, {})
            return 200, b"{}"
        found = self.objects.get(key)
        if found is None:
            return 404, status_body(404, "NotFound", f'{info.resource} "{info.name}" not found')
        if info.verb == "delete":
            uid = given.get("preconditions", {}).get("uid")
            if uid and uid != found["metadata"]["uid"]:
                return 409, status_body(409, "Conflict", "uid")
            self._delete(info.resource, found, given)
        elif info.subresource == "binding":
            if found["spec"].get("nodeName"):
                return 409, status_body(409, "Conflict", "already assigned")
            self.change(info.resource, namespace, info.name, {"spec": {"nodeName": given["target"]["name"]}})
            return 201, b"{}"
        elif info.subresource == "finalize":
            found["spec"] = given["spec"]
            if not found["spec"]["finalizers"] and "deletionTimestamp" in found["metadata"]:
                self._remove(info.resource, found)
        elif info.verb == "update":
            return self._update(key, found, given)
        elif info.verb == "patch":
            self.change(info.resource, namespace, info.name, given)
        return 200, msgspec.json.encode(self.objects.get(key, found))

    # ---- objects -----------------------------------------------------------------------------------------------------
    def _create(self, resource: str, namespace: str, obj: Object) -> tuple[int, bytes]:
        metadata = obj.setdefault("metadata", {})
        if "generateName" in metadata:
            metadata["name"] = f"{metadata['generateName']}{self.version}"
        key = (resource, namespace, metadata["name"])
        if key in self.objects:
            return 409, status_body(409, "AlreadyExists", f'{resource} "{metadata["name"]}" already exists')
        if namespace:
            metadata["namespace"] = namespace
        self.version += 1
        metadata.update(uid=f"uid-{self.version}", resourceVersion=str(self.version), generation=1)
        metadata["creationTimestamp"] = rfc3339.seconds(EPOCH_S + self.now)
        self.objects[key] = obj
        self._notify("ADDED", resource, None, obj)
        return 201, msgspec.json.encode(obj)

    def create(self, resource: str, namespace: str, obj: Object) -> Object:
        """An object that a test puts there."""
        status, body = self._create(resource, namespace, obj)
        assert status == 201, body
        return obj

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return self.objects.get((resource, namespace, name))

    def change(self, resource: str, namespace: str, name: str, patch: Object) -> None:
        key = (resource, namespace, name)
        before = self.objects[key]
        after = _merge(before, patch)
        self.version += 1
        after["metadata"] = {**after["metadata"], "resourceVersion": str(self.version)}
        self.objects[key] = after
        self._notify("MODIFIED", resource, before, after)

    def _update(self, key: tuple[str, str, str], found: Object, given: Object) -> tuple[int, bytes]:
        given_version = given["metadata"].get("resourceVersion")
        if given_version not in (None, found["metadata"]["resourceVersion"]):
            return 409, status_body(409, "Conflict", "the object has been modified")
        self.version += 1
        given["metadata"] = {**found["metadata"], **given["metadata"], "resourceVersion": str(self.version)}
        self.objects[key] = given
        self._notify("MODIFIED", key[0], found, given)
        return 200, msgspec.json.encode(given)

    def delete(self, resource: str, namespace: str, name: str, grace_s: int | None = None) -> None:
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        self._delete(resource, self.objects[resource, namespace, name], options)

    def _delete(self, resource: str, obj: Object, options: Object) -> None:
        grace_s = options.get(
            "gracePeriodSeconds", obj.get("spec", {}).get("terminationGracePeriodSeconds", 30)
        )
        metadata = obj["metadata"]
        stamp = {"deletionTimestamp": rfc3339.seconds(EPOCH_S + self.now)}
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if resource == "pods" and grace_s and obj["spec"].get("nodeName"):
            generation = {"deletionGracePeriodSeconds": grace_s, "generation": metadata["generation"] + 1}
            self.change(resource, namespace, name, {"metadata": {**stamp, **generation}})
        elif resource == "namespaces" and obj["spec"].get("finalizers"):
            self.change(resource, "", name, {"metadata": stamp, "status": {"phase": "Terminating"}})
        else:
            self._remove(resource, obj)

    def _remove(self, resource: str, obj: Object) -> None:
        metadata = obj["metadata"]
        gone = self.objects.pop((resource, metadata.get("namespace", ""), metadata["name"]))
        self.version += 1
        last = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        self._notify("DELETED", resource, gone, last)

    def _notify(self, kind: str, resource: str, before: Object | None, after: Object) -> None:
        self._history.append((self.version, kind, resource, before, after))
        for watch in list(self.watches):
            self._offer(watch, kind, resource, before, after)

    def _offer(self, watch: _Watch, kind: str, resource: str, before: Object | None, after: Object) -> None:
        info = watch.info
        if info.resource != resource or info.namespace not in ("", after["metadata"].get("namespace", "")):
            return
        selector = info.query.get("fieldSelector", "")
        was = before is not None and _matches(selector, before)
        if kind != "DELETED" and _matches(selector, after):
            self._push(watch, "MODIFIED" if was else "ADDED", after)
        elif was:
            self._push(watch, "DELETED", after)

    # ---- what tests ask ----------------------------------------------------------------------------------------------
    def lines(self, since: float = 0.0, who: int | None = None) -> list[str]:
        return [each.line for each in self.log if each.at >= since and who in (None, each.who)]

    def requests(self, line: str, since: float = 0.0) -> list[Logged]:
        """Requests like ``patch pods/status``."""
        return [each for each in self.log if each.line == line and each.at >= since]


_TERMINATING = (
    b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"it is being terminated","reason":"Forbidden",'
    b'"details":{"causes":[{"reason":"NamespaceTerminating"}]},"code":403}'
)


def status_body(code: int, reason: str, message: str) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return msgspec.json.encode({**status, "message": message, "reason": reason, "code": code})


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)


def _matches(selector: str, obj: Object) -> bool:
    for term in filter(None, selector.split(",")):
        if "!=" in term:
            path, value = term.split("!=")
            if _field(obj, path) == value:
                return False
        else:
            path, value = term.split("=")
            if _field(obj, path) != value:
                return False
    return True


def _merge(before: Object, patch: Object) -> Object:
    after = dict(before)
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        old = after.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            after[key] = _merge(old, value)
        elif value is None:
            after.pop(key, None)
        elif key == "conditions" and isinstance(old, list):
            rows = {each["type"]: each for each in old}
            for row in value:
                merged = {**rows.get(row["type"], {}), **row}
                rows[row["type"]] = {k: v for k, v in merged.items() if v is not None}
            after[key] = list(rows.values())
        else:
            after[key] = {k: v for k, v in value.items() if k[0] != "$"} if isinstance(value, dict) else value
    return after
