"""Exponential backoff with jitter, as am/util/wait/backoff.go computes it."""

from __future__ import annotations

import msgspec

from harness.wire.draws import Draws


class BackoffPolicy(msgspec.Struct, frozen=True, gc=False):
    """The n-th delay is min(initial x factor^n, cap) x U[1, 1 + jitter). Once more than `reset_s` have passed since
    the start or the last reset, whatever happened in between, it begins again (backoffManager.Step, :292)."""

    initial_s: float
    factor: float
    cap_s: float
    jitter: float
    reset_s: float


REFLECTOR = BackoffPolicy(initial_s=0.8, factor=2.0, cap_s=30.0, jitter=1.0, reset_s=120.0)
"""What a reflector waits after each ListAndWatch (cg/tools/cache/reflector.go:61-67)."""


class Backoff:
    """One client's place in a policy."""

    __slots__ = ("_policy", "_reset_at", "_step_s")

    def __init__(self, policy: BackoffPolicy, now: float) -> None:
        self._policy = policy
        self._step_s = policy.initial_s
        self._reset_at = now

    def next_s(self, now: float, rng: Draws) -> float:
        """How long to wait this time."""
        policy = self._policy
        if now - self._reset_at > policy.reset_s:
            self._step_s = policy.initial_s
            self._reset_at = now
        delay_s = self._step_s
        self._step_s = min(delay_s * policy.factor, policy.cap_s)
        return delay_s * (1.0 + policy.jitter * rng.random())
