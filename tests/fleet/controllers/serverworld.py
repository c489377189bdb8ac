"""Machines of a fleet against a member of the emulated apiserver, in one process and over virtual time.

The member checks, defaults and authorizes for real, so a controller that sends what a real server would refuse fails
here. `log` has every request with who sent it; `admin` is a kubectl user.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Closed,
    Disarm,
    Event,
    Fired,
    Key,
    Machine,
    Opened,
    Received,
    Sample,
    Send,
)
from harness.wire.paths import parse_path
from harness.wire.request import Response
from tests.apiserver.member.fakemember import ADMIN, FakeExchange, Server

Object = dict[str, Any]
LATENCY_S = 0.0005
ACCOUNT = "system:serviceaccount:kube-system:"
ACCOUNT_GROUPS = "system:serviceaccounts,system:serviceaccounts:kube-system"


class Sent(msgspec.Struct):
    """One request, as an audit log would have it; `code` 0 until it is answered."""

    at: float
    who: str
    verb: str
    uri: str
    name: str
    code: int = 0
    body: bytes = b""

    @property
    def what(self) -> str:
        """``create pods``, ``update deployments/status``."""
        info = parse_path(self.uri, "GET")
        return f"{self.verb} {info.resource_and_subresource}"


class _Exchange(FakeExchange):
    """Gives its answer to a machine."""

    def __init__(self, world: ServerWorld, who: int, send: Send, row: Sent, headers: dict[str, str]) -> None:
        request = send.request
        super().__init__(request.method, request.path, headers, request.body)
        self.world, self.who, self.key, self.row = world, who, send.key, row
        self.streams = request.is_stream

    def respond(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        super().respond(status, headers, body)
        self.row.code = status
        self.world.deliver(
            self, Answered(self.key, Response(status, dict(headers), body, "member-0")), last=True
        )

    def start(self, status: int, headers: dict[str, str]) -> None:
        super().start(status, headers)
        self.row.code = status
        if self.streams:
            self.world.deliver(self, Opened(self.key, "member-0", headers.get("content-type", "")))

    def write(self, data: bytes) -> None:
        if self.streams:
            self.world.deliver(self, Received(self.key, data))
        else:
            super().write(data)

    def finish(self) -> None:
        super().finish()
        if self.streams:
            self.world.deliver(self, Closed(self.key, None), last=True)
        else:
            answer = Response(self.status, dict(self.answer_headers), self.data, "member-0")
            self.world.deliver(self, Answered(self.key, answer), last=True)


class ServerWorld:
    """`identities` says as whom a client's requests come, for machines whose clients have accounts of their own."""

    def __init__(self, **options: Any) -> None:
        self.server = Server(**options)
        self.clock = self.server.clock
        self.log: list[Sent] = []
        self.samples: list[Sample] = []
        self._machines: list[tuple[Machine, str, bool]] = []
        self._timers: dict[tuple[int, Key], Any] = {}
        self._flying: dict[tuple[int, Key], _Exchange] = {}
        self._arrives: dict[int, float] = {}

    @property
    def now(self) -> float:
        return self.clock.now()

    @property
    def epoch_s(self) -> float:
        return self.clock.wall() - self.clock.now()

    def add(self, machine: Machine, who: str = "", *, accounts: bool = False) -> int:
        """Start a machine as the user `who`; with `accounts` a request's client names its service account."""
        self._machines.append((machine, who, accounts))
        index = len(self._machines) - 1
        self._perform(index, machine.start(self.now))
        return index

    def stop(self, index: int) -> None:
        self._perform(index, self._machines[index][0].stop(self.now))

    def run(self, until: float) -> None:
        self.clock.run_until(until)

    # ---- the administrator -------------------------------------------------------------------------------------------
    def admin(self, method: str, path: str, body: Any = None, expect: int = 0, **headers: str) -> Any:
        """One request of an administrator, answered; its JSON."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        exchange = self.server.ask(method, path, body, headers=sent)
        ok = exchange.status == expect if expect else exchange.status < 300
        assert ok, f"{method} {path}: {exchange.status} {exchange.data[:600]!r}"
        return exchange.json if exchange.data else None

    def apply(self, *objects: Object, namespace: str = "m") -> None:
        """Create objects, each at its own collection."""
        for obj in objects:
            self.admin("POST", collection(obj, namespace), obj)

    def scale(self, path: str, replicas: int) -> None:
        self.admin(
            "PATCH", path, {"spec": {"replicas": replicas}}, content_type="application/merge-patch+json"
        )

    # ---- machines ----------------------------------------------------------------------------------------------------
    def _perform(self, index: int, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._send(index, action)
            elif isinstance(action, Arm):
                self._disarm(index, action.key)
                at = self.clock.call_at(action.at, self._fired, index, action.key)
                self._timers[index, action.key] = at
            elif isinstance(action, Disarm):
                self._disarm(index, action.key)
            elif isinstance(action, Cancel):
                exchange = self._flying.pop((index, action.key), None)
                if exchange is not None:
                    exchange.leave()
            elif isinstance(action, Sample):
                self.samples.append(action)

    def _disarm(self, index: int, key: Key) -> None:
        timer = self._timers.pop((index, key), None)
        if timer is not None:
            timer.cancel()

    def _fired(self, index: int, key: Key) -> None:
        self._timers.pop((index, key), None)
        self._tell(index, Fired(key))

    def _tell(self, index: int, event: Event) -> None:
        self._perform(index, self._machines[index][0].handle(event, self.now))

    def _send(self, index: int, action: Send) -> None:
        assert (index, action.key) not in self._flying, f"{action.key} is sent twice at once"
        request = action.request
        user, headers = self._identity(index, request.client)
        who = user.removeprefix(ACCOUNT)
        info = parse_path(request.path, request.method)
        row = Sent(self.now, who, info.verb, request.path, info.name, 0, request.body)
        self.log.append(row)
        headers["accept"] = request.accept
        if request.body:
            headers["content-type"] = request.content_type
        exchange = self._flying[index, action.key] = _Exchange(self, index, action, row, headers)
        self.clock.call_at(self.now + LATENCY_S, self._arrive, exchange)

    def _identity(self, index: int, client: str) -> tuple[str, dict[str, str]]:
        _, user, accounts = self._machines[index]
        headers: dict[str, Any] = {"authorization": f"Bearer {ADMIN}"}
        if accounts:
            own = client != "shared-informers"
            user = ACCOUNT + client if own else "system:kube-controller-manager"
            if own:
                headers["impersonate-group"] = ACCOUNT_GROUPS
        if user.startswith("system:node:"):
            headers["impersonate-group"] = "system:nodes"
        if user:
            headers["impersonate-user"] = user
        return user, headers

    def _arrive(self, exchange: _Exchange) -> None:
        if self._flying.get((exchange.who, exchange.key)) is exchange:
            self.server.member.handle(exchange)

    def deliver(self, exchange: _Exchange, event: Event, *, last: bool = False) -> None:
        """Half a round trip later, and never before what was sent earlier on the same exchange."""
        self.clock.call_at(self.now + LATENCY_S, self._delivered, exchange, event, last)

    def _delivered(self, exchange: _Exchange, event: Event, last: bool) -> None:
        if self._flying.get((exchange.who, exchange.key)) is exchange:
            if last:
                del self._flying[exchange.who, exchange.key]
            self._tell(exchange.who, event)

    # ---- what tests ask ----------------------------------------------------------------------------------------------
    def writes(self, who: str, since: float = 0.0) -> list[Sent]:
        reads = ("watch", "list")
        return [each for each in self.log if each.who == who and each.verb not in reads and each.at >= since]

    def kinds(self, who: str, since: float = 0.0) -> list[str]:
        """What `who` sent, events left out."""
        return [each.what for each in self.writes(who, since) if "/events" not in each.uri]

    def items(self, path: str) -> list[Object]:
        found: list[Object] = self.admin("GET", path)["items"]
        return found


_PLURALS = {"NetworkPolicy": "networkpolicies", "StorageClass": "storageclasses"}


def collection(obj: Object, namespace: str) -> str:
    """The path of the collection that an object belongs to."""
    version = obj["apiVersion"]
    plural = _PLURALS.get(obj["kind"], obj["kind"].lower() + "s")
    base = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    cluster = obj["kind"] in ("Namespace", "Node", "PersistentVolume", "StorageClass", "PriorityClass")
    return f"{base}/{plural}" if cluster else f"{base}/namespaces/{namespace}/{plural}"
