"""Connected to one member of etcd at a time, and to another when that is lost; calls outlive the change."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from harness.apiserver.clock import Promise
from harness.apiserver.store.core import StoreError, StoreUnavailable
from harness.apiserver.store.etcd3.channel import Channel, dial, unavailable
from harness.apiserver.store.etcd3.endpoints import EtcdServers, from_first

CALL_TIMEOUT_S = 60.0  # a request's own, which is the longest that anyone waits
RECONNECT_WITHIN_S = (
    2.5  # clientv3: 100 attempts, 25 ms apart (defaultUnaryMaxRetries, defaultBackoffWaitBetween)
)
DIAL_TIMEOUT_S = 5.0
RETRY_LEAST_S = 0.05  # between rounds of attempts to connect; each that comes to nothing doubles it
RETRY_MOST_S = 1.0


class EtcdClient:
    """`on_connected` hears of each connection, `on_lost` of each that ends. `channel` is the one there is."""

    def __init__(self, servers: EtcdServers, first: int) -> None:
        self.on_connected: Callable[[Channel], object] = lambda channel: None
        self.on_lost: Callable[[StoreUnavailable], object] = lambda error: None
        self.channel: Channel | None = None
        self.error: StoreUnavailable | None = None  # why there is no connection
        self.closed = False
        self.loop = asyncio.get_running_loop()
        self._addresses = deque(from_first(servers.addresses(), first))
        self._context = servers.context()
        self._connecting: asyncio.Task[None] | None = None
        self._retry_s = 0.0
        self._waiting: list[_Call] = []  # for a connection

    # ---- calls
    def call(
        self, path: bytes, body: bytes, *, repeatable: bool = False, delay_s: float = 0.0
    ) -> Promise[bytes]:
        """Ask etcd, after `delay_s`. Without a connection a call waits for one a little; one that is `repeatable` is
        asked again there. Fails with StoreError."""
        call = _Call(self, path, body, repeatable)
        if delay_s:
            self.loop.call_later(delay_s, call.ask)
        else:
            call.ask()
        return call.promise

    def wait(self, call: _Call) -> None:
        """Ask again with the next connection."""
        self._waiting.append(call)

    # ---- connection
    async def connect(self) -> None:
        """Try each member of etcd once. Raises StoreUnavailable with what the last one said."""
        for left in range(len(self._addresses) - 1, -1, -1):
            try:
                channel = await dial(*self._addresses[0], self._context, DIAL_TIMEOUT_S)
            except StoreUnavailable:
                self._addresses.rotate(-1)
                if not left:
                    raise
            else:
                self._connected(channel)
                return

    def give_up(self, error: StoreUnavailable) -> None:
        """The connection has ended, or is no good: the next member of etcd may be better."""
        channel, self.channel = self.channel, None
        if channel is None or self.closed:
            return
        self.error = error
        self._addresses.rotate(-1)
        channel.on_lost = _ignore
        channel.end(error)
        self.on_lost(error)
        self._connecting = self.loop.create_task(self._connect_again())

    def proved(self) -> None:
        """The connection is of use: should it be lost, another is tried at once."""
        self._retry_s = 0.0

    def close(self) -> None:
        self.closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        channel, self.channel = self.channel, None
        if channel is not None:
            channel.on_lost = _ignore
            channel.end(unavailable("the client connection is closing"))

    def _connected(self, channel: Channel) -> None:
        self.channel = channel
        self.error = None
        channel.on_lost = self.give_up
        self.on_connected(channel)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call.ask()

    async def _connect_again(self) -> None:
        while True:
            await asyncio.sleep(self._retry_s)
            self._retry_s = min(max(self._retry_s * 2, RETRY_LEAST_S), RETRY_MOST_S)
            try:
                await self.connect()
                return
            except StoreUnavailable as error:
                self.error = error


class _Call:
    """One call until it is answered."""

    __slots__ = ("_body", "_client", "_path", "_repeatable", "_timer", "_until_s", "promise")

    def __init__(self, client: EtcdClient, path: bytes, body: bytes, repeatable: bool) -> None:
        self.promise: Promise[bytes] = Promise()
        self._client = client
        self._path = path
        self._body = body
        self._repeatable = repeatable
        self._until_s: float | None = None
        self._timer: Any = None

    def ask(self) -> None:
        client = self._client
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.promise.done:
            return
        if client.channel is not None:
            client.channel.unary(self._path, self._body, CALL_TIMEOUT_S).then(self._answered)
        else:
            self._wait(client.error or unavailable("the client connection is closing"))

    def _wait(self, error: StoreError) -> None:
        loop = self._client.loop
        if self._until_s is None:
            self._until_s = loop.time() + RECONNECT_WITHIN_S
        if self._client.closed or loop.time() >= self._until_s:
            self.promise.fail(error)
        else:
            self._timer = loop.call_at(self._until_s, self.promise.fail, error)
            self._client.wait(self)

    def _answered(self, answer: Promise[bytes]) -> None:
        try:
            self.promise.resolve(answer.result())
        except StoreUnavailable as error:
            if not self._repeatable or self._client.closed:
                self.promise.fail(error)
            elif self._client.channel is None:
                self._wait(error)
            else:  # the connection is as good as ever, or has not been given up yet
                self._repeatable = False
                self._client.loop.call_soon(self.ask)
        except StoreError as error:
            self.promise.fail(error)


def _ignore(error: StoreUnavailable) -> None:
    pass
