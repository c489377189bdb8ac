"""Machines of a fleet against a member of the emulated apiserver, in one process and over virtual time.

The member checks, defaults and authorizes for real, so a controller that sends what a real server would refuse fails
here. `log` has every request with who sent it; `admin` is a kubectl user.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.client.machine import Machine, Sample
from harness.virtual.observer import Call, Observer
from harness.virtual.world import ADMINISTRATOR, Identity, World, account, node
from harness.wire.paths import parse_path
from harness.wire.request import Request, Response
from tests.apiserver.member.fakemember import Server

Object = dict[str, Any]
ACCOUNT = "system:serviceaccount:kube-system:"


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


class _Log(Observer):
    def __init__(self, world: ServerWorld) -> None:
        self._world = world
        self._open: dict[int, Sent] = {}

    def sent(self, call: Call) -> None:
        request = call.request
        info = parse_path(request.path, request.method)
        who = self._world.who(call.kind, request)
        row = Sent(call.sent_at, who, info.verb, request.path, info.name, 0, request.body)
        self._open[call.serial] = row
        self._world.log.append(row)

    def answered(self, call: Call, response: Response, seconds: float, error: str = "") -> None:
        self._open.pop(call.serial).code = response.status

    def sampled(self, kind: str, sample: Sample) -> None:
        self._world.samples.append(sample)


class ServerWorld(World):
    """A world with one server, whose machines are known by their users."""

    def __init__(self, **options: Any) -> None:
        self.server = Server(**options)
        self.log: list[Sent] = []
        self.samples: list[Sample] = []
        self._identities: dict[str, Any] = {}
        super().__init__(self.server, observer=_Log(self))

    def join(self, machine: Machine, who: str = "", *, accounts: bool = False) -> int:
        """Start a machine as the user `who`; with `accounts` a request's client names its service account."""
        kind = f"{len(self._identities)}"
        if accounts:
            identity: Any = _account
        elif who.startswith("system:node:"):
            identity = node(who.removeprefix("system:node:"))
        else:
            identity = Identity(who) if who else ADMINISTRATOR
        self._identities[kind] = identity
        return self.add(machine, kind, identity)

    def who(self, kind: str, request: Request) -> str:
        identity = self._identities[kind]
        user = identity(request.client).user if callable(identity) else identity.user
        return str(user.removeprefix(ACCOUNT))

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


def _account(client: str) -> Identity:
    return Identity("system:kube-controller-manager") if client == "shared-informers" else account(client)


_PLURALS = {"NetworkPolicy": "networkpolicies", "StorageClass": "storageclasses"}


def collection(obj: Object, namespace: str) -> str:
    """The path of the collection that an object belongs to."""
    version = obj["apiVersion"]
    plural = _PLURALS.get(obj["kind"], obj["kind"].lower() + "s")
    base = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    cluster = obj["kind"] in ("Namespace", "Node", "PersistentVolume", "StorageClass", "PriorityClass")
    return f"{base}/{plural}" if cluster else f"{base}/namespaces/{namespace}/{plural}"
