"""Faults that are done to connections and to the streams on them, through the member's listener."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from harness.apiserver.clock import Clock
from harness.apiserver.faults.active import Faults, Running
from harness.apiserver.faults.kinds import CutWatch, DropConnections, RefuseConnections, StallConnections
from harness.apiserver.faults.requests import concerns
from harness.apiserver.serving.common import BaseExchange, Session

ANSWER_FIRST_S = 0.05
"""So long after a fault was ordered it is done, so that the order's own answer is not caught in it."""

CUT_EVERY_S = 1.0


class Listener(Protocol):
    """What is needed of the server."""

    def sessions(self) -> Sequence[Session]: ...
    def refuse(self) -> None: ...
    def accept_again(self) -> None: ...


class ConnectionFaults:
    """Which connections and watches are struck is drawn in the order of their peers' addresses."""

    def __init__(self, faults: Faults, clock: Clock, listener: Listener) -> None:
        self._clock = clock
        self._listener = listener
        faults.provide(StallConnections, self._stall)
        faults.provide(DropConnections, self._drop)
        faults.provide(RefuseConnections, self._refuse)
        faults.provide(CutWatch, self._cut)

    def _soon(self, do: Callable[[], None], after_s: float = ANSWER_FIRST_S) -> Callable[[], None]:
        """Do it soon; what is returned prevents it."""
        return self._clock.call_at(self._clock.now() + after_s, do).cancel

    def _drawn(self, running: Running, share: float) -> list[Session]:
        sessions = sorted(self._listener.sessions(), key=lambda session: session.channel.peer)
        return [session for session in sessions if running.drawn(share)]

    # ---- connections -------------------------------------------------------------------------------------------
    def _stall(self, fault: StallConnections, running: Running) -> Callable[[], None]:
        held: list[Session] = []

        def hold() -> None:
            held.extend(self._drawn(running, fault.share))
            running.hit(len(held))
            for session in held:
                session.hold(everything=fault.what == "all")

        cancel = self._soon(hold)

        def end() -> None:
            cancel()
            for session in held:
                session.release()

        return end

    def _drop(self, fault: DropConnections, running: Running) -> None:
        def drop() -> None:
            sessions = self._drawn(running, fault.share)
            running.hit(len(sessions))
            for session in sessions:
                session.channel.reset()

        self._soon(drop)

    def _refuse(self, _: RefuseConnections, running: Running) -> Callable[[], None]:
        self._listener.refuse()
        running.hit()
        return self._listener.accept_again

    # ---- watches -----------------------------------------------------------------------------------------------
    def _cut(self, fault: CutWatch, running: Running) -> Callable[[], None]:
        cancel: list[Callable[[], None]] = []

        def again() -> None:
            for session in sorted(self._listener.sessions(), key=lambda session: session.channel.peer):
                for exchange in session.streaming():
                    self._cut_one(fault, running, exchange)
            cancel[:] = [self._soon(again, CUT_EVERY_S)]

        cancel.append(self._soon(again))
        return lambda: cancel[0]()

    @staticmethod
    def _cut_one(fault: CutWatch, running: Running, exchange: BaseExchange) -> None:
        if concerns(fault, exchange.method, exchange.path) and running.drawn(fault.chance):
            exchange.cut_next(partial(running.hit, 1), reset=fault.how == "reset")
