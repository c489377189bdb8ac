"""A member over a store in this process and a clock that is moved by hand: what the tests of this folder talk to."""

from __future__ import annotations

import json
from typing import Any

from harness.virtual.exchange import VirtualExchange
from harness.virtual.pool import ADMIN_TOKEN as ADMIN
from harness.virtual.pool import VirtualPool

__all__ = ["ADMIN", "FakeExchange", "Server"]


class FakeExchange(VirtualExchange):
    """Records what a member answers; `events` decodes a watch's lines."""

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.data.splitlines()]


class Server(VirtualPool):
    """Started members over one store, with the clock they share."""

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
