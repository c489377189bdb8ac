"""When requests are due, and how several processes share them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.kperf import RunnerOptions, Share, Spec
from harness.kperf.schedule import Schedule
from tests.kperf.play import OK, play, profile, spec


def a_spec(**values: object) -> Spec:
    return Spec(**{"rate": 10.0, "total": 20, "conns": 2, "client": 4, **values})  # type: ignore[arg-type]


def test_request_i_is_sent_i_over_rate_seconds_after_the_start(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(rate=40, total=100)))
    assert [at for at, _ in run.sent] == [number / 40 for number in range(100)]
    assert set(run.lateness) == {0.0}
    assert set(run.latencies) == {0.01}


def test_a_slow_answer_does_not_move_what_is_due_after_it(tmp_path: Path) -> None:
    """One client, one answer of 1 s: kperf would see one slow request, the nine behind it waited as well."""
    slow = profile(tmp_path, spec(rate=10, total=20, client=1))
    run = play(slow, lambda request, number: (1.0 if number == 0 else 0.01, OK))
    assert run.lateness[:11] == [0.0, 0.9, 0.81, 0.72, 0.63, 0.54, 0.45, 0.36, 0.27, 0.18, 0.09]
    assert set(run.lateness[11:]) == {0.0}
    assert run.latencies[:3] == [1.0, 0.91, 0.82]


def test_a_client_that_is_free_takes_what_is_due_longest(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(rate=100, total=8, client=2)), lambda request, number: (0.05, OK))
    assert [round(at, 6) for at, _ in run.sent] == [0.0, 0.01, 0.05, 0.06, 0.1, 0.11, 0.15, 0.16]


def test_without_a_rate_a_request_begins_when_a_client_is_free(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(rate=0, total=6, client=2)), lambda request, number: (0.5, OK))
    assert [at for at, _ in run.sent] == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    assert set(run.lateness) == {0.0}


def test_without_a_rate_time_ends_a_spec(tmp_path: Path) -> None:
    run = play(
        profile(tmp_path, spec(rate=0, total=None, duration=2, client=1)), lambda request, number: (0.7, OK)
    )
    assert [round(at, 6) for at, _ in run.sent] == [0.0, 0.7, 1.4]
    assert run.finished


@pytest.mark.parametrize(("rate", "duration", "count"), [(10, 2, 20), (2.5, 1, 3), (0.1, 5, 1)])
def test_of_a_duration_come_those_that_are_due_before_it_is_over(
    rate: float, duration: int, count: int
) -> None:
    assert Schedule(a_spec(rate=rate, total=0, duration=duration), Share()).count == count


def test_what_was_due_in_time_is_sent_even_when_the_time_is_over(tmp_path: Path) -> None:
    """A target at half of the rate: kperf would leave out the other half."""
    slow = profile(tmp_path, spec(rate=10, total=None, duration=2, client=1))
    run = play(slow, lambda request, number: (0.2, OK))
    assert len(run.sent) == 20
    assert run.latencies[-1] == pytest.approx(4.0 - 1.9)


def test_a_spec_begins_when_the_one_before_it_has_ended(tmp_path: Path) -> None:
    run = play(
        profile(tmp_path, spec(rate=10, total=3), spec(rate=1, total=2)), lambda request, number: (0.5, OK)
    )
    assert [round(at, 6) for at, _ in run.sent] == [0.0, 0.1, 0.2, 0.7, 1.7]
    assert [round(span["until_s"] - span["from_s"], 6) for span in run.spans] == [0.7, 1.5]


def test_clients_go_round_over_their_connections(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(conns=2, client=3, total=6)))
    assert [request.client for _, request in run.sent] == ["0", "1", "0", "0", "1", "0"]


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_shares_make_the_same_requests_at_the_same_times_as_one_process(tmp_path: Path, workers: int) -> None:
    mixed = (
        "      - {shares: 2, staleList: {version: v1, resource: pods}}\n"
        "      - {shares: 1, quorumList: {version: v1, resource: pods, limit: 5}}\n"
    )
    loaded = profile(tmp_path, spec(mixed, total=41, conns=4, client=9))
    whole = [(at, request.path) for at, request in play(loaded).sent]
    parts = [play(loaded, options=RunnerOptions(share=Share(index, workers))) for index in range(workers)]
    assert sorted((at, r.path) for part in parts for at, r in part.sent) == sorted(whole)
    assert len({path for _, path in whole}) == 2


def test_connections_and_clients_are_dealt_too() -> None:
    shares = [Share(position, 3).of_runner(0, a_spec(conns=5, client=7)) for position in range(3)]
    assert [share and (share.count(5), share.count(7)) for share in shares] == [(2, 3), (2, 2), (1, 2)]


def test_more_processes_than_connections_leave_some_without_a_share() -> None:
    shares = [Share(position, 4).of_runner(0, a_spec(conns=2)) for position in range(4)]
    assert shares == [Share(0, 2), Share(1, 2), None, None]
    moved = [Share(position, 4).of_runner(3, a_spec(conns=2)) for position in range(4)]
    assert moved == [Share(1, 2), None, None, Share(0, 2)]


def test_a_process_without_any_share_is_done_at_once(tmp_path: Path) -> None:
    run = play(profile(tmp_path, spec(conns=1)), options=RunnerOptions(share=Share(1, 2)))
    assert run.finished
    assert not run.sent
