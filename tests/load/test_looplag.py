"""Beats of a worker's loop, and what their lateness makes of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.load.looplag import LoopLag
from harness.load.verdict import Lateness, host_kept_up
from harness.observe.record import SERIES, Parts
from tests.load.fakes import FakeTimers


@pytest.fixture
def timers() -> Any:
    return FakeTimers()


def test_a_beat_every_100_ms_from_start_to_stop(timers: Any) -> None:
    lag = LoopLag(timers)
    timers.advance(1.05)
    assert lag.take() == {}
    lag.start()
    lag.start()
    timers.advance(2.06)
    assert lag.take() == {"beats": 10, "late": 0}
    lag.stop()
    timers.advance(3.0)
    assert lag.take() == {}
    assert timers.pending == []


@pytest.mark.parametrize(("late_s", "late"), [(0.019, 0), (0.021, 5)])
def test_a_beat_is_late_from_20_ms_on(timers: Any, late_s: float, late: int) -> None:
    lag = LoopLag(timers)
    lag.start()
    timers.late_s = late_s
    timers.advance(0.61)
    assert lag.take() == {"beats": 5, "late": late}


@pytest.mark.parametrize(
    ("lateness", "words"),
    [
        (Lateness(0, 0, 0, 0), []),
        (Lateness(1000, 50, 1000, 50), []),
        (Lateness(1000, 51, 1000, 0), ["5.1% of 1000 modelled jobs of the members"]),
        (Lateness(1000, 0, 1000, 51), ["5.1% of 1000 beats of the workers' event loops"]),
        (Lateness(99, 99, 99, 99), []),
        (Lateness(100, 6, 100, 6), ["modelled jobs", "beats"]),
    ],
)
def test_more_than_one_in_twenty_late_is_too_many(lateness: Lateness, words: list[str]) -> None:
    excuses = lateness.excuses
    assert len(excuses) == len(words)
    assert all(word in excuse for word, excuse in zip(words, excuses, strict=True)), excuses


def test_the_members_own_counters_are_summed_as_they_last_stood(tmp_path: Path) -> None:
    parts = Parts(tmp_path / "series", SERIES)
    for t, member, series, value in (
        (1.0, "member-0", 'swarmlet_modelled_jobs_total{class="apiserver"}', 100.0),
        (2.0, "member-0", 'swarmlet_modelled_jobs_total{class="apiserver"}', 300.0),
        (2.0, "member-0", 'swarmlet_modelled_jobs_total{class="etcd"}', 30.0),
        (2.0, "member-1", 'swarmlet_modelled_jobs_total{class="apiserver"}', 5.0),
        (2.0, "member-1", 'swarmlet_late_jobs_total{class="apiserver"}', 4.0),
    ):
        parts.add((t, member, series, value))
    parts.flush()
    assert host_kept_up(tmp_path, {"beats": 7, "late": 1}) == Lateness(335, 4, 7, 1)


def test_a_target_without_such_counters_has_kept_up(tmp_path: Path) -> None:
    assert host_kept_up(tmp_path, {}) == Lateness(0, 0, 0, 0)
