"""Coroutines on a clock: what fails unheard is said, and timers that fire a little early do not make anything spin."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from harness.apiserver.auth.nodeauthorizer import NodeAuthorizer
from harness.apiserver.cache.watcherindex import Deadlines
from harness.apiserver.clock import Promise, Timer, VirtualClock, spawn
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import Costs
from harness.apiserver.process.loopclock import SLACK_S


async def fails_after(promise: Promise[None]) -> None:
    await promise
    raise RuntimeError("broken")


def test_a_failure_that_nobody_waits_for_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    promise: Promise[None] = Promise()
    task = spawn(fails_after(promise))
    promise.resolve(None)
    with pytest.raises(RuntimeError):
        task.outcome.result()
    said = capsys.readouterr().err
    assert said.count("RuntimeError: broken") == 1
    assert "in fails_after" in said


def test_a_failure_that_somebody_waits_for_is_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    promise: Promise[None] = Promise()
    heard: list[Promise[None]] = []
    spawn(fails_after(promise)).outcome.then(heard.append)
    promise.resolve(None)
    assert len(heard) == 1
    assert capsys.readouterr().err == ""


def test_a_cancelled_coroutine_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    promise: Promise[None] = Promise()
    spawn(fails_after(promise)).cancel()
    promise.resolve(None)
    assert capsys.readouterr().err == ""


class CoarseClock(VirtualClock):
    """Rounds delays to milliseconds as uvloop does, so timers fire up to half of one early; `armed` counts them."""

    armed = 0

    def call_at(self, when: float, fn: Callable[..., object], *args: object) -> Timer:
        self.armed += 1
        assert self.armed < 1000, "something spins"
        return super().call_at(self.now() + round((when - self.now()) * 1000) / 1000, fn, *args)


class Watch:
    number = 0
    stopped = False

    def __init__(self, deadline: float, clock: CoarseClock) -> None:
        self.deadline = deadline
        self.ended_at = -1.0
        self._clock = clock

    def __lt__(self, other: Watch) -> bool:
        return self.deadline < other.deadline

    def end(self) -> None:
        self.ended_at = self._clock.now()


@pytest.mark.parametrize("offset_s", [0.0, 0.0001, 0.0004, 0.00049, 0.0006])
def test_deadlines_on_coarse_timers(offset_s: float) -> None:
    clock = CoarseClock()
    deadlines = Deadlines(clock, SLACK_S)
    watches = [Watch(1.0 + offset_s + step * 0.0003, clock) for step in range(20)]
    for number, watch in enumerate(watches):
        watch.number = number
        deadlines.add(watch)  # type: ignore[arg-type]
    clock.advance(2.0)
    assert all(abs(watch.ended_at - watch.deadline) < 0.001 for watch in watches)


@pytest.mark.parametrize("stalled_s", [0.0, 0.5004])
def test_the_authorizer_s_informer_on_coarse_timers(stalled_s: float) -> None:
    clock = CoarseClock()
    host = Host(clock, 1.0, Costs(), slack_s=SLACK_S)
    authorizer = NodeAuthorizer(clock, host, Random(3), Metrics())
    if stalled_s:
        authorizer.stall(stalled_s)
    for number in range(20):
        body = b'{"metadata":{"namespace":"ns","name":"p%d","uid":"u"},"spec":{"nodeName":"n"}}' % number
        authorizer.informer.on_pod("ADDED", body)
    clock.advance(2.0)
    assert authorizer.informer.backlog == 0
