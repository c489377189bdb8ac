"""A member over a store in this process and a clock that is moved by hand: what the tests of this folder talk to."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from harness.apiserver.clock import VirtualClock
from harness.apiserver.member import Member
from harness.apiserver.options import MemberOptions
from harness.apiserver.store.client import LocalStore
from harness.apiserver.store.core import StoreCore
from harness.apiserver.store.etcd import EtcdModel
from harness.apiserver.store.replicated import ReplicatedStore

ADMIN = "secret-token"


class FakeExchange:
    """Records what a member answers; `events` decodes a watch's lines."""

    http2 = True
    certificate = None

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.peer = "127.0.0.1"
        self.status = 0
        self.answer_headers: dict[str, str] = {}
        self.data = b""
        self.finished = False
        self.aborted = False
        self.buffered = 0
        self._gone: list[Any] = []

    def respond(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        assert not self.status, "answered twice"
        self.status, self.answer_headers, self.data, self.finished = status, dict(headers), body, True

    def start(self, status: int, headers: dict[str, str]) -> None:
        assert not self.status, "answered twice"
        self.status, self.answer_headers = status, dict(headers)

    def write(self, data: bytes) -> None:
        assert self.status
        assert not self.finished
        self.data += data

    def finish(self) -> None:
        self.finished = True

    def abort(self) -> None:
        self.aborted = True

    def on_drain(self, callback: Any) -> None:
        raise AssertionError("nothing is ever buffered")

    def on_gone(self, callback: Any, *, instead: bool = False) -> None:
        self._gone = [callback] if instead else [*self._gone, callback]

    def leave(self) -> None:
        """The client disconnects."""
        for callback in self._gone:
            callback()

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.data.splitlines()]


class Server:
    """Started members over one store, with the clock they share."""

    def __init__(self, members: int = 1, **options: Any) -> None:
        self.clock = VirtualClock()
        names = [f"member-{index}" for index in range(members)]
        self.core = StoreCore()
        self.store = ReplicatedStore(self.core, EtcdModel(names, Random(1)), self.clock)
        self.members = []
        for name in names:
            settings = MemberOptions(name=name, admin_token=ADMIN, **options)
            self.members.append(Member(settings, self.clock, LocalStore(self.store, name, self.clock)))
        self.member = self.members[0]
        started = [member.start() for member in self.members]
        self.clock.advance(1.0)
        assert all(promise.done for promise in started), "members did not start within a second"
        for promise in started:
            promise.result()

    def join(self, name: str, **options: Any) -> Member:
        """One more member, beside the first one's etcd; it is ready some time later."""
        settings = MemberOptions(name=name, admin_token=ADMIN, **options)
        store = LocalStore(self.store, self.member.options.name, self.clock)
        self.members.append(Member(settings, self.clock, store))
        self.members[-1].start()
        return self.members[-1]

    def close(self) -> None:
        for member in self.members:
            member.stop()
        self.store.close()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        user: str = "",
        headers: dict[str, str] | None = None,
        member: int = 0,
    ) -> FakeExchange:
        """Hand over a request; it is answered as the clock moves. `user` "" is an admin, "anonymous" nobody."""
        sent = {"accept": "application/json"}
        if user != "anonymous":
            sent["authorization"] = f"Bearer {ADMIN}"
        if user and user != "anonymous":
            sent["impersonate-user"] = user
            if user.startswith("system:node:"):
                sent["impersonate-group"] = "system:nodes"
        sent |= {key.lower(): value for key, value in (headers or {}).items()}
        raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        if raw and "content-type" not in sent:
            sent["content-type"] = "application/json"
        return self.exchange(method, path, sent, raw, member)

    def exchange(
        self, method: str, path: str, headers: dict[str, str], body: bytes, member: int = 0
    ) -> FakeExchange:
        """Hand over a request as it is."""
        exchange = FakeExchange(method, path, headers, body)
        self.members[member].handle(exchange)
        return exchange

    def ask(self, method: str, path: str, body: Any = None, user: str = "", **more: Any) -> FakeExchange:
        """Send, and let time pass until the answer is complete."""
        exchange = self.send(method, path, body, user, **more)
        for _ in range(6200):
            if exchange.finished:
                return exchange
            self.clock.advance(0.01)
        raise AssertionError(f"{method} {path} was not answered within a minute")

    def settle(self, seconds: float = 0.1) -> None:
        self.clock.advance(seconds)
