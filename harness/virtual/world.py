"""Machines and members, connected: each action of a machine is carried out, each answer comes back as an event.

A client talks to one member, drawn by the seed where it is not given. When it closes its connections, or its member is
lost, it draws again among those that are left. An answer never overtakes an earlier one of the same exchange.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from harness.apiserver.clock import Timer, VirtualClock
from harness.apiserver.member import Member
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
    Tell,
    Told,
)
from harness.virtual.exchange import VirtualExchange
from harness.virtual.observer import NO_ANSWER, Call, Observer
from harness.virtual.pool import ADMIN_TOKEN, VirtualPool
from harness.wire.request import Failure, Request, Response, TransportError

LATENCY_S = 0.0005
"""One way between a client and a member of the same zone."""


class Identity(NamedTuple):
    """Who a client is; without a user it is the administrator."""

    user: str = ""
    groups: tuple[str, ...] = ()


ADMINISTRATOR = Identity()
Identify = Callable[[str], Identity]
"""The identity for the name of a request's client (`Request.client`)."""


def node(name: str) -> Identity:
    """A kubelet's."""
    return Identity(f"system:node:{name}", ("system:nodes",))


def account(name: str, namespace: str = "kube-system") -> Identity:
    """A service account's."""
    group = f"system:serviceaccounts:{namespace}"
    return Identity(f"system:serviceaccount:{namespace}:{name}", ("system:serviceaccounts", group))


def headers_of(request: Request, identity: Identity) -> dict[str, str]:
    """The headers of a request, shown as the identity by impersonation."""
    headers = {"accept": request.accept, "authorization": f"Bearer {ADMIN_TOKEN}"}
    if request.body:
        headers["content-type"] = request.content_type
    if identity.user:
        headers["impersonate-user"] = identity.user
    if identity.groups:
        headers["impersonate-group"] = ",".join(identity.groups)
    return headers


class _Client:
    __slots__ = ("flying", "identify", "index", "kind", "machine", "member", "stopped", "timers")

    def __init__(self, index: int, kind: str, machine: Machine, identify: Identify, member: int) -> None:
        self.index = index
        self.kind = kind
        self.machine = machine
        self.identify = identify
        self.member = member
        self.flying: dict[Key, _Flight] = {}
        self.timers: dict[Key, Timer] = {}
        self.stopped = False


class _Flight(VirtualExchange):
    """Gives its answer to a machine. `over`: given up, or its last event has been delivered."""

    def __init__(
        self, world: World, client: _Client, send: Send, member: int, headers: Mapping[str, str]
    ) -> None:
        request = send.request
        super().__init__(request.method, request.path, headers, request.body)
        self.world, self.client, self.key, self.request = world, client, send.key, request
        self.member_index = member
        self.member = world.pool.members[member].options.name
        self.call = Call(world.serial(), client.index, client.kind, request, world.now)
        self.streams = False
        self.timer: Timer | None = None

    def respond(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        super().respond(status, headers, body)
        self._answer()

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        super().start(status, headers)
        if self.request.is_stream and 200 <= status < 300:
            self.streams = True
            content_type = self.answer_headers.get("content-type", "")
            self.world.deliver(self, Opened(self.key, self.member, content_type))

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
            self._answer()

    def abort(self, code: int = 2) -> None:
        super().abort(code)
        self.broken(Failure.RESET, "the server broke it off")

    def broken(self, failure: Failure, why: str) -> None:
        error = TransportError(failure, why, self.member)
        event = Closed(self.key, error) if self.streams else Failed(self.key, error)
        self.world.deliver(self, event, last=True)

    def _answer(self) -> None:
        response = Response(self.status, self.answer_headers, self.data, self.member)
        if self.request.discards and response.ok:
            response = Response(self.status, self.answer_headers, b"", self.member, len(self.data))
        self.world.deliver(self, Answered(self.key, response), last=True)


class World:
    """`seed` draws which member a client talks to; `observer` hears of everything. Time moves by `run` alone."""

    def __init__(
        self,
        pool: VirtualPool,
        *,
        seed: int = 1,
        latency_s: float = LATENCY_S,
        observer: Observer | None = None,
    ) -> None:
        self.pool = pool
        self.clock: VirtualClock = pool.clock
        self.latency_s = latency_s
        self.observer = observer or Observer()
        self._rng = Random(f"{seed}/endpoints")
        self._clients: list[_Client] = []
        self._lost: set[int] = set()
        self._serials = itertools.count()

    # ---- time --------------------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        return self.clock.now()

    @property
    def epoch_s(self) -> float:
        """Wall-clock time of ``now == 0``."""
        return self.clock.wall() - self.clock.now()

    def at(self, when: float, fn: Callable[..., object], *args: object) -> None:
        self.clock.call_at(when, fn, *args)

    def run(self, until: float) -> None:
        self.clock.run_until(until)

    def run_until(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Run to the first timer after which `condition` holds; False where it does not within `limit_s`."""
        end = self.now + limit_s
        while not condition():
            due = self.clock.next_at()
            if due is None or due > end:
                self.clock.run_until(end)
                return condition()
            self.clock.run_until(due)
        return True

    # ---- machines ----------------------------------------------------------------------------------------------------
    def add(
        self,
        machine: Machine,
        kind: str,
        identity: Identity | Identify = ADMINISTRATOR,
        *,
        member: int | None = None,
    ) -> int:
        """Start a machine. `identity` says who it is, or as whom each of its clients comes."""
        identify = identity if callable(identity) else _always(identity)
        client = _Client(
            len(self._clients), kind, machine, identify, self._draw() if member is None else member
        )
        self._clients.append(client)
        self._perform(client, machine.start(self.now))
        return client.index

    def stop(self, index: int) -> None:
        """A machine's last actions; what is still open is given up. No effect the second time."""
        client = self._clients[index]
        if not client.stopped:
            self._perform(client, client.machine.stop(self.now))
            self._abandon(client)

    def kill(self, index: int) -> None:
        """The machine's process is gone, without a last action."""
        self._abandon(self._clients[index])

    def close(self) -> None:
        for index in range(len(self._clients)):
            self.stop(index)
        self.pool.close()

    def members_of(self, kind: str) -> list[str]:
        """The members that the clients of a kind talk to now, one for each client that runs."""
        running = (client for client in self._clients if client.kind == kind and not client.stopped)
        return [self.pool.members[client.member].options.name for client in running]

    def tell(self, index: int, told: Told) -> None:
        """Give a machine what another part of the run says."""
        self._tell(self._clients[index], told)

    def under_way(self, index: int) -> list[Key]:
        """The keys of a machine's requests and watches that have not ended."""
        return list(self._clients[index].flying)

    def lose_member(self, index: int) -> None:
        """A member is cut off: everything open to it breaks, its clients go to the others."""
        self._lost.add(index)
        for client in self._clients:
            if client.member == index:
                self._reconnect(client, Failure.RESET, "the member is gone")

    # ---- actions -----------------------------------------------------------------------------------------------------
    def _perform(self, client: _Client, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._send(client, action)
            elif isinstance(action, Arm):
                self._disarm(client, action.key)
                client.timers[action.key] = self.clock.call_at(action.at, self._fired, client, action.key)
            elif isinstance(action, Disarm):
                self._disarm(client, action.key)
            elif isinstance(action, Cancel):
                flight = client.flying.pop(action.key, None)
                if flight is not None:
                    _give_up(flight)
            elif isinstance(action, CloseConnections):
                self.observer.sampled(client.kind, Sample("connections_closed", 1.0, (("why", action.why),)))
                self._reconnect(client, Failure.CLOSED, action.why)
            else:
                self._tell_observer(client.kind, action)

    def _tell_observer(self, kind: str, action: Action) -> None:
        if isinstance(action, Sample):
            self.observer.sampled(kind, action)
        elif isinstance(action, Seen):
            self.observer.seen(kind, action)
        elif isinstance(action, Note):
            self.observer.noted(kind, action)
        elif isinstance(action, Tell):
            self.observer.told(kind, action)
        elif isinstance(action, Finished):
            self.observer.finished(kind, action)

    def _disarm(self, client: _Client, key: Key) -> None:
        timer = client.timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _fired(self, client: _Client, key: Key) -> None:
        client.timers.pop(key, None)
        self._tell(client, Fired(key))

    def _tell(self, client: _Client, event: Event) -> None:
        if not client.stopped:
            self._perform(client, client.machine.handle(event, self.now))

    def _abandon(self, client: _Client) -> None:
        client.stopped = True
        for timer in client.timers.values():
            timer.cancel()
        client.timers.clear()
        flying, client.flying = client.flying, {}
        for flight in flying.values():
            _give_up(flight)

    # ---- exchanges ---------------------------------------------------------------------------------------------------
    def _send(self, client: _Client, action: Send) -> None:
        assert action.key not in client.flying, f"{action.key} is sent twice at once"
        request = action.request
        headers = headers_of(request, client.identify(request.client))
        flight = client.flying[action.key] = _Flight(self, client, action, client.member, headers)
        self.observer.sent(flight.call)
        if request.timeout_s is not None and not request.is_stream:
            flight.timer = self.clock.call_at(self.now + request.timeout_s, self._timed_out, flight)
        self.clock.call_at(self.now + self.latency_s, self._arrive, flight)

    def _arrive(self, flight: _Flight) -> None:
        if flight.client.flying.get(flight.key) is not flight:
            return
        if flight.member_index in self._lost:
            flight.broken(Failure.REFUSED, "no member is left")
        else:
            self._member(flight).handle(flight)

    def _member(self, flight: _Flight) -> Member:
        return self.pool.members[flight.member_index]

    def _timed_out(self, flight: _Flight) -> None:
        if flight.client.flying.get(flight.key) is flight:
            error = TransportError(Failure.TIMEOUT, f"{flight.request.timeout_s:g} s", flight.member)
            flight.leave()
            self._delivered(flight, Failed(flight.key, error), True)

    def serial(self) -> int:
        """The next exchange's number."""
        return next(self._serials)

    def deliver(self, flight: _Flight, event: Event, *, last: bool = False) -> None:
        """Half a round trip later; timers of one time fire in the order in which they were armed."""
        self.clock.call_at(self.now + self.latency_s, self._delivered, flight, event, last)

    def _delivered(self, flight: _Flight, event: Event, last: bool) -> None:
        client = flight.client
        if client.flying.get(flight.key) is not flight:
            return
        if last:
            del client.flying[flight.key]
            if flight.timer is not None:
                flight.timer.cancel()
        self._count(flight, event)
        self._tell(client, event)

    def _count(self, flight: _Flight, event: Event) -> None:
        seconds = self.now - flight.call.sent_at
        if isinstance(event, Answered):
            self.observer.answered(flight.call, event.response, seconds)
        elif isinstance(event, Opened):
            self.observer.answered(flight.call, Response(flight.status, {}, b"", flight.member), seconds)
        elif isinstance(event, Failed):
            none = Response(NO_ANSWER, {}, b"", flight.member)
            self.observer.answered(flight.call, none, seconds, event.error.failure.value)

    # ---- members -----------------------------------------------------------------------------------------------------
    def _draw(self) -> int:
        left = [index for index in range(len(self.pool.members)) if index not in self._lost]
        return self._rng.choice(left) if left else 0

    def _reconnect(self, client: _Client, failure: Failure, why: str) -> None:
        client.member = self._draw()
        for flight in list(client.flying.values()):
            flight.leave()
            flight.broken(failure, why)


def _give_up(flight: _Flight) -> None:
    if flight.timer is not None:
        flight.timer.cancel()
    flight.leave()


def _always(identity: Identity) -> Identify:
    return lambda client: identity
