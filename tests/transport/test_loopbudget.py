"""Work that is spread over turns of the event loop."""

from __future__ import annotations

import gevent
import pytest

from harness.transport.loopbudget import BUDGET_S, LoopBudget


class Worked:
    """Each piece of work takes a third of a turn's budget, by a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turn = 0
        self.done_in: list[int] = []
        self.budget = LoopBudget(lambda: self.now)

    def work(self) -> int:
        self.now += BUDGET_S / 3
        self.done_in.append(self.turn)
        return len(self.done_in)

    def count_turns(self) -> None:
        while True:
            gevent.sleep(0.0005)
            self.turn += 1


def test_a_turn_takes_no_more_than_its_budget_and_the_rest_comes_later():
    worked = Worked()
    counter = gevent.spawn(worked.count_turns)
    workers = [gevent.spawn(worked.budget.run, worked.work) for _ in range(7)]
    gevent.joinall(workers)
    counter.kill()
    assert sorted(worker.value for worker in workers) == [1, 2, 3, 4, 5, 6, 7]
    assert max(worked.done_in.count(turn) for turn in worked.done_in) <= 4
    assert len(set(worked.done_in)) >= 2


def test_what_raises_is_raised_and_counted():
    worked = Worked()

    def fail() -> None:
        worked.now += BUDGET_S
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        worked.budget.run(fail)
    assert worked.budget.run(worked.work) == 1
