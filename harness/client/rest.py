"""What client-go does to every request below the code that asks for it: rate limiter and retries.

`Rest` wraps a machine and stands between it and the shell. It mirrors cg/rest/request.go (request, Watch) and
with_retry.go: unary requests take a token of their client's bucket before they go out, watches do not; an answer 429
or 5xx with a numeric Retry-After is asked for again up to ten times, after that wait and another token (watches too);
so is a GET whose connection broke, after one second. A request's `timeout_s` covers all of that, waits included, as the
context of request() does. The wrapped machine sees only what comes out in the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import ceil, inf

import msgspec

from harness.client.content import ContentType, prepared
from harness.client.limiter import TokenBucket
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
    Machine,
    Opened,
    Received,
    Sample,
    Send,
)
from harness.wire.gotext import parse_int
from harness.wire.request import Failure, Request, TransportError

MAX_RETRIES = 10  # cg/rest/request.go:NewRequest
_BROKEN_RETRY_S = 1.0  # retryAfterResponse(), with_retry.go
_BROKEN = (Failure.RESET, Failure.CLOSED)
"""Both are errors that net.IsProbableEOF or IsConnectionReset know; CLOSED is a connection that we closed ourselves."""
_TIMER = "rest"


class _Phase(Enum):
    FLYING = 1
    THROTTLED = 2
    WAITING = 3  # as Retry-After says


class _Call:
    """A request that has not ended yet; for a watch, that has not been answered yet."""

    __slots__ = ("acts_at", "deadline", "phase", "request", "retries")

    def __init__(self, request: Request, now: float) -> None:
        self.request = request
        self.deadline = inf if request.timeout_s is None else now + request.timeout_s
        self.phase = _Phase.FLYING
        self.retries = 0
        self.acts_at = 0.0


class Rest:
    """A machine around `inner`. Keys whose first item is "rest" are its own timers'.

    `limiters` holds the token bucket of each name that ``Request.client`` uses, None for a client without a limit.
    `content` is the encoding that it speaks.
    """

    __slots__ = ("_calls", "_content", "_inner", "_limiters", "_max_retries")

    def __init__(
        self,
        inner: Machine,
        limiters: Mapping[str, TokenBucket | None],
        *,
        max_retries: int = MAX_RETRIES,
        content: ContentType = "json",
    ) -> None:
        self._inner = inner
        self._content: ContentType = content
        self._limiters = limiters
        self._max_retries = max_retries
        self._calls: dict[Key, _Call] = {}

    def __repr__(self) -> str:
        phases = [call.phase.name.lower() for call in self._calls.values()]
        return f"Rest({self._inner!r}, calls={len(phases)}, throttled={phases.count('throttled')})"

    @property
    def in_flight(self) -> int:
        """Requests that have not ended: under way, throttled, or waiting to be retried."""
        return len(self._calls)

    def start(self, now: float) -> list[Action]:
        return self._outward(self._inner.start(now), now)

    def handle(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, Received):  # most events, by far
            pass
        elif isinstance(event, Fired):
            if event.key[0] == _TIMER:
                return self._fired(event.key[1], now)  # type: ignore[arg-type]  # a Key, made in _throttle
        elif isinstance(event, (Opened, Closed)):
            self._forget(event.key)
        elif isinstance(event, (Answered, Failed)):
            call = self._calls.get(event.key)
            if call is not None:
                wait_s = retry_wait_s(event, call.request)
                if wait_s is not None and call.retries < self._max_retries:
                    call.retries += 1
                    call.phase = _Phase.WAITING
                    return [Arm((_TIMER, event.key), min(now + wait_s, call.deadline))]
                self._forget(event.key)
        return self._outward(self._inner.handle(event, now), now)

    def stop(self, now: float) -> list[Action]:
        """What the inner machine says, and the end of whatever it left waiting or under way."""
        actions = self._outward(self._inner.stop(now), now)
        for key in list(self._calls):
            actions += self._cancel(key, now)
        return actions

    def _forget(self, key: Key) -> None:
        self._calls.pop(key, None)
        if not self._calls:
            self._calls.clear()  # else the table stays as large as a kubelet's start made it, 2 KB

    def _outward(self, actions: list[Action], now: float) -> list[Action]:
        """Replace the inner machine's sends and cancels by what goes out now."""
        for (
            action
        ) in actions:  # a loop, as most lists are one note or one timer: any() would cost as much as they do
            if isinstance(action, (Send, Cancel)):
                break
        else:
            return actions
        out: list[Action] = []
        for action in actions:
            if isinstance(action, Send):
                request = prepared(action.request, self._content)
                call = self._calls[action.key] = _Call(request, now)
                if request.is_stream:
                    out.append(action if request is action.request else Send(action.key, request))
                else:
                    self._throttle(action.key, call, now, out)
            elif isinstance(action, Cancel):
                out += self._cancel(action.key, now)
            else:
                out.append(action)
        return out

    def _throttle(self, key: Key, call: _Call, now: float, out: list[Action]) -> None:
        """Send, after taking a token and, where it is not there yet, waiting for it."""
        bucket = self._limiters[call.request.client]
        delay_s = 0.0 if bucket is None else bucket.reserve(now)
        if delay_s <= 0.0:
            out.append(_send(key, call, now))
            return
        if now + delay_s > call.deadline:  # rate.Limiter.Wait gives up at once where it would wait too long
            assert bucket is not None
            bucket.cancel(now + delay_s, now)
            out += self._time_out(key, call, now)
            return
        call.phase = _Phase.THROTTLED
        call.acts_at = now + delay_s
        labels = (("verb", call.request.verb), ("name", call.request.name))
        out.append(Sample("client_throttled_ms", delay_s * 1000.0, labels))
        assert bucket is not None
        out.append(
            Sample(
                "client_queue_depth", float(ceil(delay_s * bucket.qps)), (("client", call.request.client),)
            )
        )
        out.append(Arm((_TIMER, key), call.acts_at))

    def _fired(self, key: Key, now: float) -> list[Action]:
        call = self._calls.get(key)
        out: list[Action] = []
        if call is None:  # cancelled while the timer was on its way
            return out
        if call.phase is _Phase.WAITING and now >= call.deadline:
            out += self._time_out(key, call, now)
        elif call.phase is _Phase.WAITING:
            self._throttle(key, call, now, out)
        elif call.phase is _Phase.THROTTLED:
            out.append(_send(key, call, now))
        return out

    def _time_out(self, key: Key, call: _Call, now: float) -> list[Action]:
        """Tell the inner machine that its time was over before an answer that counts."""
        del self._calls[key]
        what = (
            f"{call.request.method} {call.request.name}: {call.request.timeout_s:g} s, {call.retries} retries"
        )
        failed = Failed(key, TransportError(Failure.TIMEOUT, what))
        return self._outward(self._inner.handle(failed, now), now)

    def _cancel(self, key: Key, now: float) -> list[Action]:
        call = self._calls.pop(key, None)
        if call is None or call.phase is _Phase.FLYING:
            return [Cancel(key)]
        if call.phase is _Phase.THROTTLED:
            bucket = self._limiters[call.request.client]
            if bucket is not None:
                bucket.cancel(call.acts_at, now)
        return [Disarm((_TIMER, key))]


def _send(key: Key, call: _Call, now: float) -> Send:
    """The request goes out, with what is left of its time."""
    call.phase = _Phase.FLYING
    if call.deadline == inf or call.deadline - now == call.request.timeout_s:
        return Send(key, call.request)
    return Send(key, msgspec.structs.replace(call.request, timeout_s=call.deadline - now))


def retry_wait_s(event: Answered | Failed, request: Request) -> float | None:
    """How long to wait before asking again; None where client-go would not (IsNextRetry, checkWait)."""
    if isinstance(event, Answered):
        response = event.response
        if response.status != 429 and response.status < 500:
            return None
        seconds = parse_int(response.headers.get("retry-after", ""))
        return None if seconds is None else float(max(seconds, 0))
    failure = event.error.failure
    if request.verb == "watch":  # request.go:Watch: EOF and timeouts
        return _BROKEN_RETRY_S if failure in (*_BROKEN, Failure.TIMEOUT) else None
    # request.go:request: reset, EOF, connection lost
    if request.method == "GET" and failure in (*_BROKEN, Failure.LOST):
        return _BROKEN_RETRY_S
    return None
