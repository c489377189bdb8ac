"""One spec as a machine: its share of the requests, each sent when it is due and a client is free."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Closed,
    Disarm,
    Event,
    Failed,
    Fired,
    Key,
    Opened,
    Received,
    Sample,
    Send,
)
from harness.kperf.building import ENDS_WITHIN_S, Builder
from harness.kperf.exchanges import Exchange, closed_early
from harness.kperf.failures import RequestFailure, of_answer, of_error
from harness.kperf.observations import Observations
from harness.kperf.profile import Spec
from harness.kperf.schedule import Schedule, Share
from harness.wire.request import Failure, TransportError

_NEXT: Key = ("next",)
_REQUEST, _RETRY, _LIMIT = "request", "retry", "limit"

LATENCY, LATENESS = "kperf_latency_ms", "operation_late_ms"
"""Samples of a run's record: from due to ended; and from due to sent, as a scenario's operations have it, where a spec
stands for a tuning set."""


class Context(NamedTuple):
    """What the specs of one runner share. `epoch_s` is the wall-clock time of ``now == 0``."""

    seen: Observations
    epoch_s: float


class Stretch:
    """Spec number `number` from `start` on, until `ended`.

    A client has one request at a time, as a goroutine of kperf's (request/schedule.go: Schedule), and takes the one
    that is due longest; it always uses the same connection, `client` modulo `conns`. The latency of a request counts
    from when it was due: one that finds no free client is late, and is sent all the same.
    """

    def __init__(self, number: int, spec: Spec, share: Share, builder: Builder, context: Context) -> None:
        self.number = number
        self.began = 0.0
        self._spec = spec
        self._schedule = Schedule(spec, share)
        self._builder = builder
        self._seen, self._epoch_s = context
        self._conns = share.count(spec.conns)
        self._free = deque(range(share.count(spec.client)))
        self._open: dict[int, Exchange] = {}
        self._sent = 0
        self._over = False
        self._label = (("tuning_set", f"specs[{number}]"),)

    def __repr__(self) -> str:
        return f"Stretch({self.number}, sent={self._sent}, open={len(self._open)}, free={len(self._free)})"

    @property
    def ended(self) -> bool:
        """Everything was sent, and has come to an end."""
        return self._over and not self._open

    def unfinished(self, now: float) -> int:
        """Requests that were due by now and have no end."""
        return len(self._open) + self._due_count(now)

    def start(self, now: float) -> list[Action]:
        self.began = now
        return self._send_due(now)

    def handle(self, event: Event, now: float) -> list[Action]:
        if event.key == _NEXT:
            return self._send_due(now)
        number = event.key[1]
        assert isinstance(number, int)
        exchange = self._open.get(number)
        if exchange is None:
            return []
        match event:
            case Answered() | Failed():
                return self._answered(number, exchange, event, now)
            case Opened():
                exchange.opened(event.member, event.content_type)
                return []
            case Received():
                return self._received(number, exchange, event.data, now)
            case Closed():
                failure = of_error(event.error) if event.error is not None else closed_early()
                return [Disarm((_LIMIT, number)), *self._end(number, exchange, failure, now)]
            case Fired():
                return self._fired(event.key, number, exchange, now)
        return []

    def stop(self) -> list[Action]:
        """Give up what is under way."""
        actions: list[Action] = [Disarm(_NEXT)]
        for number in self._open:
            actions += [Cancel((_REQUEST, number)), Disarm((_RETRY, number)), Disarm((_LIMIT, number))]
        self._open.clear()
        self._over = True
        return actions

    # ---- sending ---------------------------------------------------------------------------------------------------
    def _send_due(self, now: float) -> list[Action]:
        """Requests that are due, as far as clients are free; a timer for the next one where one is."""
        actions: list[Action] = []
        schedule = self._schedule
        while self._free and not self._over:
            if self._at_end(now):
                self._over = True
                break
            due = self.began + schedule.due_s(self._sent) if schedule.rate else now
            if due > now:
                actions.append(Arm(_NEXT, due))
                break
            actions += self._send(due, now)
        return actions

    def _at_end(self, now: float) -> bool:
        schedule = self._schedule
        if schedule.count is not None and self._sent >= schedule.count:
            return True
        return not schedule.rate and now - self.began >= schedule.duration_s

    def _send(self, due: float, now: float) -> list[Action]:
        number, client = self._sent, self._free.popleft()
        self._sent += 1
        connection = str(client % self._conns)
        call = self._builder.build(self._schedule.index(number), self._epoch_s + now, connection)
        self._open[number] = Exchange(call, client, due, now)
        sends: list[Action] = [Send((_REQUEST, number), call.request)]
        if call.request.is_stream:
            sends.append(Arm((_LIMIT, number), now + ENDS_WITHIN_S))
        return sends

    def _due_count(self, now: float) -> int:
        """How many requests are due and not sent."""
        schedule = self._schedule
        if self._over or not schedule.rate:
            return 0
        number = self._sent
        while (schedule.count is None or number < schedule.count) and (
            self.began + schedule.due_s(number) <= now
        ):
            number += 1
        return number - self._sent

    # ---- what comes back -------------------------------------------------------------------------------------------
    def _answered(
        self, number: int, exchange: Exchange, event: Answered | Failed, now: float
    ) -> list[Action]:
        wait_s = exchange.retry_after_s(event, self._spec.max_retries)
        if wait_s is not None:
            return [Arm((_RETRY, number), now + wait_s)]
        actions: list[Action] = [Disarm((_LIMIT, number))] if exchange.call.request.is_stream else []
        if isinstance(event, Failed):
            exchange.member = event.error.member
            return [*actions, *self._end(number, exchange, of_error(event.error), now)]
        response = event.response
        exchange.member = response.member
        exchange.received_bytes = response.discarded_bytes
        return [*actions, *self._end(number, exchange, of_answer(response), now)]

    def _received(self, number: int, exchange: Exchange, data: bytes, now: float) -> list[Action]:
        over, failure = exchange.received(data)
        if not over:
            return []
        given_up: list[Action] = [Cancel((_REQUEST, number)), Disarm((_LIMIT, number))]
        return [*given_up, *self._end(number, exchange, failure, now)]

    def _fired(self, key: Key, number: int, exchange: Exchange, now: float) -> list[Action]:
        if key[0] == _RETRY:
            return [Send((_REQUEST, number), exchange.call.request)]
        failure = of_error(TransportError(Failure.TIMEOUT, f"{ENDS_WITHIN_S:g} s", exchange.member))
        given_up: list[Action] = [Cancel((_REQUEST, number)), Disarm((_RETRY, number))]
        return [*given_up, *self._end(number, exchange, failure, now)]

    def _end(
        self, number: int, exchange: Exchange, failure: RequestFailure | None, now: float
    ) -> list[Action]:
        """Keep what became of it; its client takes the next."""
        del self._open[number]
        self._free.append(exchange.client)
        call = exchange.call
        if call.on_end is not None:
            call.on_end(failure is None)
        latency, lateness = now - exchange.due, exchange.sent - exchange.due
        self._seen.add(
            self.number,
            call.method,
            call.url,
            exchange.member,
            failure,
            latency,
            lateness,
            self._epoch_s + now,
            exchange.received_bytes,
        )
        labels = (("method", call.method), ("member", exchange.member))
        samples: list[Action] = [Sample(LATENCY, latency * 1e3, labels)]
        if self._schedule.rate:  # without one nothing is due at any time
            samples.append(Sample(LATENESS, lateness * 1e3, self._label))
        return [*samples, *self._send_due(now)]
