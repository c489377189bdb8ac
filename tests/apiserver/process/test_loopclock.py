"""The clock of a process, in real time and at a pace."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.apiserver.process import loopclock
from harness.apiserver.process.loopclock import SLACK_S, LoopClock
from harness.wire.pace import REAL, Pace


class Loop:
    def __init__(self) -> None:
        self.armed: list[tuple[float, Callable[..., Any], tuple[Any, ...]]] = []

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Any:
        self.armed.append((delay, callback, args))
        return SimpleNamespace(cancel=lambda: None)


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The system's clocks, moved by hand."""
    system = SimpleNamespace(uptime=50.0, day=2000.0)
    clocks = SimpleNamespace(monotonic=lambda: system.uptime, time=lambda: system.day)
    monkeypatch.setattr(loopclock, "time", clocks)
    return system


def test_in_real_time_it_is_the_systems(system: SimpleNamespace) -> None:
    loop = Loop()
    clock = LoopClock(loop)
    assert (clock.now(), clock.wall(), clock.slack_s) == (50.0, 2000.0, SLACK_S)
    clock.call_at(53.0, print, 1)
    clock.call_at(49.0, print)
    assert loop.armed == [(3.0, print, (1,)), (0.0, print, ())]


def test_at_a_pace_timers_of_model_seconds_wait_longer(system: SimpleNamespace) -> None:
    loop = Loop()
    clock = LoopClock(loop, Pace(4.0, origin_s=1900.0))
    assert clock.wall() == 1925.0
    began = clock.now()
    clock.call_at(began + 3.0, print)
    assert loop.armed == [(12.0, print, ())]
    system.uptime += 12.0
    assert clock.now() == began + 3.0


def test_a_timer_is_early_by_less_of_the_models_time(system: SimpleNamespace) -> None:
    assert LoopClock(Loop(), REAL).slack_s == SLACK_S
    assert LoopClock(Loop(), Pace(10.0)).slack_s == SLACK_S / 10
