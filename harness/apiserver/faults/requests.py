"""Faults that are done to requests, in front of the member's own chain, as a proxy or a failing process would.

So a member's own metrics do not count the answers given here; ``swarmlet_fault_hits_total`` does. The interceptor
takes the place of the member's handler while a fault of requests is active, and gives it back after the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log
from typing import Any, cast

from harness.apiserver.clock import Clock
from harness.apiserver.exchange import Exchange
from harness.apiserver.faults.active import Faults, Running
from harness.apiserver.faults.kinds import (
    ErrorAnswer,
    GoAway,
    RequestFault,
    ResetStream,
    SlowAnswer,
)
from harness.wire.paths import PathError, parse_path
from harness.wire.status import APF_REJECTED, Status

Handler = Callable[[Exchange], object]

CONTROL = "/swarmlet/"
"""Paths that no fault ever meets: how faults are ended."""

CODES = {"internal-error": 2, "refused-stream": 7, "cancel": 8, "enhance-your-calm": 11}  # RFC 9113, 7

_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_RETRY_AFTER_S = {429: 1, 503: 1}
_REASONS = {
    500: ("InternalError", "Internal error occurred: a fault of kind error is active"),
    502: ("", "Bad Gateway"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}


class RequestFaults:
    """`install(handler)` makes a handler the one in use; it is first called when a fault begins."""

    def __init__(
        self, faults: Faults, clock: Clock, handler: Handler, install: Callable[[Handler], object]
    ) -> None:
        self._clock = clock
        self._handler = handler
        self._install = install
        self._running: list[Running] = []
        for kind in (GoAway, ResetStream, ErrorAnswer, SlowAnswer):
            faults.provide(kind, self._begin)

    def _begin(self, _: Any, running: Running) -> Callable[[], object]:
        self._running.append(running)
        self._install(self.handle)

        def end() -> None:
            self._running.remove(running)
            if not self._running:
                self._install(self._handler)

        return end

    def handle(self, exchange: Exchange) -> None:
        """Give a request on, or not: each active fault in the order of their beginning."""
        if exchange.path.startswith(CONTROL):
            self._handler(exchange)
            return
        delay_s = 0.0
        for running in self._running:
            fault = running.fault
            if not met(running, cast(RequestFault, fault), exchange):
                continue
            if isinstance(fault, GoAway):
                if exchange.http2:
                    running.hit()
                    exchange = cast(Exchange, _Leaving(exchange))
                continue
            running.hit()
            if isinstance(fault, SlowAnswer):
                delay_s += running.rng.lognormvariate(log(fault.median_s), fault.sigma)
            elif isinstance(fault, ResetStream):
                exchange.abort(CODES[fault.code])
                return
            elif isinstance(fault, ErrorAnswer):
                answer_error(exchange, fault)
                return
        if delay_s:
            self._later(exchange, delay_s)
        else:
            self._handler(exchange)

    def _later(self, exchange: Exchange, delay_s: float) -> None:
        timer = self._clock.call_at(self._clock.now() + delay_s, self._handler, exchange)
        exchange.on_gone(timer.cancel)


class _Leaving:
    """An exchange whose answer's head has the connection go away, as net/http does on ``Connection: close``."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def respond(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self._exchange.go_away()
        self._exchange.respond(status, headers, body)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        self._exchange.go_away()
        self._exchange.start(status, headers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exchange, name)


def met(running: Running, fault: RequestFault, exchange: Exchange) -> bool:
    """Whether this request is of those that the fault is for, and has drawn it."""
    if isinstance(fault, GoAway) and not fault.verbs and not fault.resources:
        return running.drawn(fault.chance)
    return concerns(fault, exchange.method, exchange.path) and running.drawn(fault.chance)


def concerns(fault: RequestFault, method: str, path: str) -> bool:
    """Whether a request is one of the verbs and resources of a fault; one of no resource never is."""
    try:
        info = parse_path(path, method)
    except PathError:
        return False
    if not info.is_resource or (fault.verbs and info.verb not in fault.verbs):
        return False
    if not fault.resources:
        return True
    plain = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    return plain in fault.resources or (bool(info.group) and f"{plain}.{info.group}" in fault.resources)


def answer_error(exchange: Exchange, fault: ErrorAnswer) -> None:
    """429 in the words of a server that is too busy (as/server/filters/maxinflight.go, tooManyRequests), the others
    as a Status."""
    headers = {"cache-control": "no-cache, private"}
    retry_after_s = _RETRY_AFTER_S.get(fault.status) if fault.retry_after_s is None else fault.retry_after_s
    if retry_after_s is not None:
        headers["retry-after"] = str(retry_after_s)
    if fault.status == 429:
        headers |= {"content-type": _TEXT, "x-content-type-options": "nosniff"}
        exchange.respond(429, headers, APF_REJECTED)
        return
    reason, message = _REASONS[fault.status]
    headers["content-type"] = _JSON
    exchange.respond(fault.status, headers, Status(fault.status, reason, message).body())
