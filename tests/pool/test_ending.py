"""The flag that ends a pool, set by signals at any moment."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from harness.pool.supervisor import Ending


@pytest.fixture
def alarms() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_it_is_set_once_and_for_all_who_ask() -> None:
    ended = Ending()
    assert not ended.is_set()
    assert not ended.wait(0.0)
    ended.set()
    assert ended.is_set()
    assert ended.wait(0.0)


def test_a_signal_may_set_it_whatever_the_main_thread_does_with_it(alarms: None) -> None:
    """A threading.Event hangs here within a few hundred rounds: the handler waits for a lock that its own thread
    holds."""
    for delay in range(600):
        ended = Ending()
        signal.signal(signal.SIGALRM, lambda *_, ended=ended: ended.set())
        signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + delay % 50))
        while not ended.wait(1e-4):
            ended.is_set()
