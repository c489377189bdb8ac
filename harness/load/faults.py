"""Faults that a run gives to its pool: at a time after its load began, or at a step of its scenario."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import gevent

from harness.apiserver.faults.spec import FaultSpec
from harness.load.plan import Target, TargetMember
from harness.pool.faults import order
from harness.pool.http import call
from harness.transport.tls import client_context
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace


class RunFaults:
    """`inject` begins one. Its time, at `pace`, counts from the load's beginning, or from its step's."""

    def __init__(
        self, specs: Sequence[FaultSpec], inject: Callable[[FaultSpec], object], pace: Pace = REAL
    ) -> None:
        self._waiting = list(specs)  # for their moment
        self._unbegun = list(specs)
        self._pace = pace
        self._inject = inject
        self._greenlets: list[Any] = []

    def load_began(self) -> None:
        self._schedule([spec for spec in self._waiting if not spec.step])

    def step_began(self, name: str) -> None:
        """A step that comes several times counts the first time."""
        self._schedule([spec for spec in self._waiting if spec.step == name])

    def stop(self) -> list[FaultSpec]:
        """Begin no more; those that have not begun."""
        gevent.killall(self._greenlets)
        return self._unbegun

    def _schedule(self, due: list[FaultSpec]) -> None:
        self._waiting = [spec for spec in self._waiting if spec not in due]
        real_s = self._pace.real_s
        self._greenlets += [gevent.spawn_later(real_s(spec.at_s or 0.0), self._begin, spec) for spec in due]

    def _begin(self, spec: FaultSpec) -> None:
        self._unbegun.remove(spec)
        self._inject(spec)


def check_steps(specs: Sequence[FaultSpec], steps: Collection[str]) -> None:
    """Raises ConfigError for a fault at a step that the scenario has not."""
    for spec in specs:
        if spec.step and spec.step not in steps:
            known = f"known: {', '.join(map(repr, steps))}" if steps else "this run has no scenario of steps"
            raise ConfigError(f"--fault {spec.fault.kind}: there is no step {spec.step!r} ({known})")


def inject(target: Target, spec: FaultSpec) -> dict[str, str]:
    """Have members begin a fault; for each that refused it, why. (The pool itself tells of faults that have begun.)"""
    members = {member.name: member for member in target.members}
    context = client_context(
        target.ca.encode() or None, insecure=target.insecure, http="http/1.1", source="the pool's CA"
    )

    def to(name: str, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        member: TargetMember = members[name]
        return call(member.host, member.port, context, target.token, method, path, body)

    answers = order(partial(to), spec, list(members))
    return {member: answer for member, answer in answers.items() if isinstance(answer, str)}
