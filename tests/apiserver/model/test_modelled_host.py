"""The modelled host: when jobs end, how the classes share, what counts as late."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apiserver.clock import VirtualClock
from harness.apiserver.model.capacity import APISERVER, ETCD, LATE_S, WATCH, Class, Host
from harness.apiserver.model.costs import Costs

MS = 1000.0  # microseconds


class Ends:
    """When each named job ended."""

    def __init__(self, cores: float | None) -> None:
        self.clock = VirtualClock()
        self.host = Host(self.clock, cores, Costs())
        self.at: dict[str, float] = {}

    def run(self, name: str, cost_us: float, cls: Class = APISERVER) -> None:
        self.host.run(cost_us, lambda: self.at.__setitem__(name, self.clock.now()), cls)

    def settle(self) -> dict[str, float]:
        self.clock.advance(3600)
        self.host.validate()
        return {name: round(at, 9) for name, at in self.at.items()}


def test_a_job_alone_takes_its_cost_on_one_core() -> None:
    ends = Ends(1)
    ends.run("job", 5 * MS)
    assert ends.settle() == {"job": 0.005}


def test_eight_cores_do_not_make_one_job_faster() -> None:
    ends = Ends(8)
    ends.run("job", 5 * MS)
    assert ends.settle() == {"job": 0.005}


def test_eight_cores_do_eight_jobs_at_once_and_queue_the_rest() -> None:
    ends = Ends(8)
    for i in range(16):
        ends.run(str(i), 8 * MS)
    at = ends.settle()
    assert [at[str(i)] for i in range(8)] == [0.008] * 8
    assert at["15"] == 0.016


def test_a_fraction_of_a_core_makes_jobs_slower() -> None:
    ends = Ends(0.1)
    ends.run("job", 1 * MS)
    assert ends.settle() == {"job": 0.010}


def test_jobs_of_a_class_end_in_order_of_arrival() -> None:
    ends = Ends(1)
    for name, cost in (("a", 3 * MS), ("b", 1 * MS), ("c", 2 * MS)):
        ends.run(name, cost)
    assert ends.settle() == {"a": 0.003, "b": 0.004, "c": 0.006}


def test_three_classes_busy_get_a_third_each_then_those_left_get_more() -> None:
    ends = Ends(1)
    ends.run("apiserver", 4 * MS)
    ends.run("watch", 2 * MS, WATCH)
    ends.run("etcd", 1 * MS, ETCD)
    assert ends.settle() == {"etcd": 0.003, "watch": 0.005, "apiserver": 0.007}


def test_an_event_does_not_wait_for_every_request_before_it() -> None:
    ends = Ends(1)
    for number in range(100):
        ends.run(f"request {number}", 1 * MS)
    ends.run("event", 0.04 * MS, WATCH)
    assert ends.settle()["event"] == 0.00008


def test_both_classes_busy_get_half_each_then_the_rest_gets_all() -> None:
    ends = Ends(1)
    ends.run("apiserver", 4 * MS)
    ends.run("etcd", 1 * MS, ETCD)
    assert ends.settle() == {"etcd": 0.002, "apiserver": 0.005}


def test_work_that_arrives_in_the_other_class_delays_what_is_under_way() -> None:
    ends = Ends(1)
    ends.run("apiserver", 4 * MS)
    ends.clock.call_at(0.002, ends.run, "etcd", 1 * MS, ETCD)
    assert ends.settle() == {"etcd": 0.004, "apiserver": 0.005}


def test_charged_work_delays_what_comes_after_it_in_its_class() -> None:
    ends = Ends(1)
    ends.host.charge(7 * MS)
    ends.run("job", 1 * MS)
    assert ends.settle() == {"job": 0.008}


def test_backlog_is_what_was_given_and_not_yet_done() -> None:
    ends = Ends(2)
    ends.host.charge(10 * MS)
    ends.host.charge(2 * MS, ETCD)
    assert ends.host.backlog_s() == pytest.approx(0.010)
    ends.clock.advance(0.001)
    assert ends.host.backlog_s() == pytest.approx(0.009)
    assert ends.host.backlog_s(ETCD) == pytest.approx(0.001)
    ends.clock.advance(1)
    assert ends.host.backlog_s() == 0
    assert ends.host.busy_s == pytest.approx(0.012)


def test_without_a_model_everything_ends_at_once_and_is_still_counted() -> None:
    ends = Ends(None)
    ends.run("job", 5 * MS)
    assert ends.at == {"job": 0.0}
    assert ends.host.work(5 * MS).done
    assert ends.host.busy_s == pytest.approx(0.010)
    assert ends.host.backlog_s() == 0


def test_a_job_without_cost_ends_at_once_even_behind_others() -> None:
    ends = Ends(1)
    ends.run("long", 5 * MS)
    assert ends.host.work(0).done


@pytest.mark.parametrize(("delay_s", "late"), [(LATE_S, 0), (LATE_S + 0.001, 1)])
def test_a_completion_is_late_when_its_timer_fires_more_than_20_ms_after_its_time(
    delay_s: float, late: int
) -> None:
    clock = LaggingClock(delay_s)
    host = Host(clock, 1, Costs())
    host.work(1 * MS)
    clock.run_until(1)
    assert (host.jobs, host.late) == (1, late)


class LaggingClock(VirtualClock):
    """Fires every timer `lag_s` late, as a loop that is held up does."""

    def __init__(self, lag_s: float) -> None:
        super().__init__()
        self._lag_s = lag_s

    def call_at(self, when: float, fn: object, *args: object) -> object:  # type: ignore[override]
        return super().call_at(when + self._lag_s, fn, *args)  # type: ignore[arg-type]


def test_lateness_does_not_add_up_over_a_queue() -> None:
    clock = LaggingClock(0.010)
    host = Host(clock, 1, Costs())
    done = [host.work(1 * MS) for _ in range(100)]
    clock.run_until(0.125)
    assert all(promise.done for promise in done)
    assert host.late == 0


def test_a_timer_that_fires_early_takes_what_is_due_within_the_slack() -> None:
    clock = LaggingClock(-0.0004)
    host = Host(clock, 1, Costs(), slack_s=0.0005)
    done = host.work(1 * MS)
    clock.run_until(0.0007)
    assert done.done
    assert clock.next_at() is None


def test_zero_or_negative_cores_are_refused() -> None:
    for cores in (0, -1.0):
        with pytest.raises(ValueError, match="cores"):
            Host(VirtualClock(), cores, Costs())


JOBS = st.lists(
    st.tuples(st.floats(0, 0.05), st.floats(1, 20_000), st.sampled_from(list(Class)), st.booleans()),
    max_size=40,
)


@given(JOBS, st.sampled_from([0.2, 1.0, 3.0, 8.0]))
def test_no_job_beats_one_core_and_no_work_is_lost(
    jobs: list[tuple[float, float, Class, bool]], cores: float
) -> None:
    clock = VirtualClock()
    host = Host(clock, cores, Costs())
    ends: list[tuple[float, float, float]] = []

    def submit(cost_us: float, cls: Class, waited_for: bool) -> None:
        start = clock.now()
        if waited_for:
            host.run(cost_us, lambda: ends.append((start, cost_us * 1e-6, clock.now())), cls)
        else:
            host.charge(cost_us, cls)
        host.validate()

    for at, cost, cls, waited_for in jobs:
        clock.call_at(at, submit, cost, cls, waited_for)
    clock.advance(60)
    assert len(ends) == sum(waited_for for *_, waited_for in jobs) == host.jobs
    for start, cost_s, end in ends:
        assert end - start >= cost_s / min(1.0, cores) - 1e-6
    assert host.busy_s == pytest.approx(sum(cost for _, cost, *_ in jobs) * 1e-6)
    assert [host.backlog_s(cls) for cls in Class] == [0, 0, 0]
    assert host.late == 0


@given(JOBS)
def test_together_the_classes_never_get_more_than_the_cores(
    jobs: list[tuple[float, float, Class, bool]],
) -> None:
    clock = VirtualClock()
    host = Host(clock, 2.0, Costs())
    for at, cost, cls, _ in jobs:
        clock.call_at(at, host.charge, cost, cls)
    used = 0.0
    for _ in range(40):
        clock.advance(0.004)
        assert host.busy_s - used <= 0.004 * 2.0 + 1e-9
        used = host.busy_s


def test_at_half_load_queueing_is_that_of_the_cores() -> None:
    """An M/D/1 queue at load 0.5 waits half a service time on average."""
    clock, rng = VirtualClock(), random.Random(7)
    host = Host(clock, 1, Costs())
    waits: list[float] = []
    for _ in range(4000):
        start = clock.now()
        host.run(1 * MS, lambda start=start: waits.append(clock.now() - start - 0.001))
        clock.advance(rng.expovariate(500))
    assert sum(waits) / len(waits) == pytest.approx(0.0005, rel=0.15)
