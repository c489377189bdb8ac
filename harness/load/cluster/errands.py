"""A few requests of our own to a cluster, each waited for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import TracebackType

import gevent.pool
import msgspec
from gevent.event import AsyncResult

from harness.load.connect import AGENT, Connector
from harness.load.plan import Target
from harness.transport.options import TransportOptions
from harness.transport.sinks import Answer
from harness.transport.timers import Timers
from harness.wire.request import Request, Response, TransportError

WITHIN_S = 5.0
"""For each step of an exchange: connect, TLS handshake, answer."""

AT_ONCE = 50
"""Requests of one call that are under way together; a flow-control seat each, of the 600 that a server has."""

MESSAGE_BYTES = 300


class Errands:
    """One client of the target, with the run's own credentials; close it, or use it as a context manager."""

    def __init__(self, target: Target, within_s: float = WITHIN_S) -> None:
        self.target = target
        self.within_s = within_s
        self._timers = Timers()
        options = TransportOptions(connect_timeout_s=within_s, tls_handshake_timeout_s=within_s)
        self._transport = Connector(target, self._timers).transport(
            AGENT, random.Random(0), target.headers, options=options
        )

    def __enter__(self) -> Errands:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, request: Request) -> Answer:
        """The whole answer, or why there is none."""
        result: AsyncResult = AsyncResult()
        limited = msgspec.structs.replace(request, timeout_s=request.timeout_s or self.within_s)
        self._transport.unary(limited, result.set)
        answer: Answer = result.get()
        return answer

    def ask_all(self, requests: Sequence[Request]) -> list[Answer]:
        """Answers in the order of the requests."""
        pool = gevent.pool.Pool(AT_ONCE)
        return list(pool.map(self.ask, requests))

    def close(self) -> None:
        self._transport.close()
        self._timers.close()


def problem_of(answer: Answer) -> str:
    """Why an answer is no success, in one line; "" where it is one."""
    if isinstance(answer, TransportError):
        return answer.detail
    if answer.ok:
        return ""
    return f"HTTP {answer.status}: {message_of(answer)}"


class _Status(msgspec.Struct):
    message: str = ""


def message_of(response: Response) -> str:
    """The message of a Status, else the beginning of what was said."""
    try:
        text = msgspec.json.decode(response.body, type=_Status).message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = ""
    return " ".join((text or response.body[:MESSAGE_BYTES].decode("utf-8", "replace")).split())[
        :MESSAGE_BYTES
    ]
