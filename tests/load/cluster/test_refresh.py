"""Credentials that end while a run goes on: when they are fetched, and what is done with them."""

from __future__ import annotations

from harness.load.cluster.refresh import AFTER_FAILURE_S, REFUSED_AGAIN_S, Refresher
from harness.transport.credentials import Credentials
from harness.wire.errors import ConfigError


class Scripted:
    """A rotation that is due from `due_at` on, and gives what it is told to."""

    def __init__(self) -> None:
        self.due_at = 10.0
        self.gives: Credentials | ConfigError = Credentials("two")
        self.fetched = 0

    def due(self, now: float) -> bool:
        return now >= self.due_at

    def fetch(self) -> Credentials:
        self.fetched += 1
        if isinstance(self.gives, ConfigError):
            raise self.gives
        return self.gives


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        self.rotation = Scripted()
        self.shared: list[str] = []
        self.failures: list[str] = []
        self.refresher = Refresher(
            self.rotation,
            Credentials("one"),
            lambda found: self.shared.append(found.token),
            self.failures.append,
            lambda: self.now,
        )

    def look(self, at: float) -> None:
        self.now = at
        self.refresher.look()


def test_fresh_ones_are_fetched_when_due_and_shared_when_new() -> None:
    bench = Bench()
    bench.look(9.9)
    assert bench.rotation.fetched == 0
    bench.look(10.0)
    bench.look(11.0)
    assert bench.rotation.fetched == 2
    assert bench.shared == ["two"]


def test_a_failure_is_told_once_and_tried_again_a_little_later() -> None:
    bench = Bench()
    bench.rotation.gives = ConfigError("plugin failed")
    for at in (10.0, 11.0, 10.0 + AFTER_FAILURE_S):
        bench.look(at)
    assert bench.rotation.fetched == 2
    assert bench.failures == ["plugin failed"]
    bench.rotation.gives = Credentials("two")
    bench.look(10.0 + 2 * AFTER_FAILURE_S)
    assert bench.shared == ["two"]


def test_a_refusal_fetches_at_once_but_not_again_and_again() -> None:
    bench = Bench()
    bench.refresher.refused()
    bench.now = REFUSED_AGAIN_S - 0.1
    bench.refresher.refused()
    assert bench.rotation.fetched == 1
    bench.now = REFUSED_AGAIN_S
    bench.refresher.refused()
    assert bench.rotation.fetched == 2
    assert bench.shared == ["two"]
