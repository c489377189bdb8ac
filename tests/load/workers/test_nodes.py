"""Names of nodes: unique whatever joins or leaves, and handed over where a worker is lost."""

from __future__ import annotations

import random

import gevent
import pytest

from harness.load.workers import nodes
from harness.load.workers.nodes import Handover, NodeNames, Unnamed
from tests.conftest import HANG_S


def names_of(worker: int = 1) -> tuple[NodeNames, list[int]]:
    asked: list[int] = []
    names = NodeNames(worker, asked.append)
    return names, asked


def test_a_fleet_that_is_being_spawned_asks_nobody() -> None:
    names, asked = names_of()
    assert [names.take(replaces=False), names.take(replaces=False), names.made] == [
        "swarmlet-1-0",
        "swarmlet-1-1",
        2,
    ]
    assert asked == []


def test_a_node_whose_kubelet_was_stopped_here_is_the_next_one_here() -> None:
    names, asked = names_of()
    assert names.take(replaces=False) == "swarmlet-1-0"
    names.give_back("swarmlet-1-0")
    assert names.take(replaces=True) == "swarmlet-1-0"
    assert asked == []


def test_those_that_come_later_are_asked_for_at_once_and_served_in_order() -> None:
    names, asked = names_of()
    waiting = [gevent.spawn(names.take, replaces=True) for _ in range(4)]
    gevent.sleep(0.01)
    assert asked == [4]
    names.hand_over(["swarmlet-7-3", "swarmlet-7-4"], 1, 1)
    gevent.joinall(waiting, timeout=HANG_S)
    assert [greenlet.value for greenlet in waiting] == ["swarmlet-7-3", "swarmlet-7-4", "swarmlet-1-0", None]


def test_an_answer_that_nobody_waits_for_any_more_is_no_harm() -> None:
    names, _ = names_of()
    names.hand_over(["swarmlet-7-3"], 0, 0)


def test_a_master_that_does_not_answer_is_an_error_and_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "ANSWERED_WITHIN_S", 0.01)
    names, _ = names_of()
    with pytest.raises(Unnamed, match=r"the master named no node within 0\.01 s"):
        names.take(replaces=True)
    names.hand_over(["swarmlet-7-3"], 0, 0)  # too late: nobody waits


def test_what_a_lost_worker_had_is_taken_over_with_what_it_took_over_itself() -> None:
    handover = Handover(5, take_over=True)
    handover.reported(0, 2)
    handover.reported(1, 1)
    assert handover.lost(0) == ["swarmlet-0-0", "swarmlet-0-1"]
    assert handover.wanted(1, 2) == (["swarmlet-0-0", "swarmlet-0-1"], 0, 0)
    assert handover.lost(1) == ["swarmlet-1-0", "swarmlet-0-0", "swarmlet-0-1"]
    assert handover.wanted(2, 5) == (["swarmlet-1-0", "swarmlet-0-0", "swarmlet-0-1"], 2, 0)


def test_or_its_places_stay_empty() -> None:
    handover = Handover(5, take_over=False)
    handover.reported(0, 2)
    handover.reported(1, 3)
    assert handover.lost(0) == ["swarmlet-0-0", "swarmlet-0-1"]
    assert handover.wanted(1, 2) == ([], 0, 2)


def test_a_worker_that_is_late_still_makes_its_part_of_the_fleet() -> None:
    handover = Handover(5, take_over=False)
    handover.reported(0, 2)
    assert handover.wanted(1, 2) == ([], 2, 0)
    assert handover.wanted(1, 2) == ([], 1, 1)
    handover.reported(1, 1)  # it is not done yet
    assert handover.wanted(0, 1) == ([], 0, 1)


@pytest.mark.parametrize("seed", range(20))
def test_no_two_kubelets_are_ever_the_same_node(seed: int) -> None:
    """Workers that come and go at random; each reports all that it made before it is lost."""
    rng = random.Random(seed)
    handover = Handover(5, take_over=True)
    workers: dict[int, tuple[NodeNames, set[str]]] = {}
    for index in range(60):
        if workers and rng.random() < 0.4:
            lost = rng.choice(list(workers))
            handover.reported(lost, workers[lost][0].made)
            assert set(handover.lost(lost)) == workers.pop(lost)[1]
            continue
        names, running = NodeNames(index, lambda _: None), set()
        count = rng.randrange(5)
        taken, made, _ = handover.wanted(index, count)
        running.update(taken)
        running.update(name for name in (names.take(replaces=False) for _ in range(made)) if name is not None)
        workers[index] = (names, running)
        everyone = [name for _, theirs in workers.values() for name in theirs]
        assert len(everyone) == len(set(everyone))
