"""Who runs what when workers come and go, with Locust's own dispatch around it."""

from __future__ import annotations

from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any

from locust import User
from locust.dispatch import UsersDispatcher

from harness.load.workers.placement import StayingDispatcher, Workers, dismiss


class Kubelets(User):
    abstract = True


class Scenario(User):
    abstract = True
    fixed_count = 1


CLASSES: list[type[User]] = [Kubelets, Scenario]
Places = dict[str, dict[str, int]]


def worker(name: str, **users: int) -> Any:
    return SimpleNamespace(id=name, user_classes_count=users)


def places(dispatcher: UsersDispatcher, count: int) -> Places:
    """Where users are once all are spawned."""
    dispatcher.new_dispatch(count, 1000.0)
    return list(dispatcher)[-1]


def total(found: Places) -> Counter[str]:
    return sum((Counter(users) for users in found.values()), Counter())


def test_a_fleet_is_spread_evenly() -> None:
    found = places(StayingDispatcher([worker(name) for name in "abc"], CLASSES), 31)
    assert total(found) == {"Kubelets": 30, "Scenario": 1}
    assert sorted(sum(users.values()) for users in found.values()) == [10, 10, 11]


def test_one_that_joins_later_moves_nobody() -> None:
    dispatcher = StayingDispatcher([worker(name) for name in "bcd"], CLASSES)
    before = places(dispatcher, 31)
    dispatcher.add_worker(worker("a"))
    assert places(dispatcher, 31) == {**before, "a": {"Kubelets": 0, "Scenario": 0}}


def test_one_that_joins_gets_what_is_still_to_be_spawned() -> None:
    dispatcher = StayingDispatcher([worker("a"), worker("b")], CLASSES)
    before = places(dispatcher, 21)
    dispatcher.add_worker(worker("c"))
    after = places(dispatcher, 30)
    assert total(after) == {"Kubelets": 29, "Scenario": 1}
    assert all(after[name][key] >= count for name in before for key, count in before[name].items())
    assert sum(after["c"].values()) >= 3


def test_only_users_of_one_that_is_gone_get_another_place() -> None:
    workers = [worker(name) for name in "abcd"]
    dispatcher = StayingDispatcher(workers, CLASSES)
    before = places(dispatcher, 41)
    gone = next(name for name, users in before.items() if not users["Scenario"])
    dispatcher.remove_worker(next(found for found in workers if found.id == gone))
    after = places(dispatcher, 41)
    assert total(after) == total(before)
    assert gone not in after
    for name, users in after.items():
        assert all(users[key] >= before[name][key] for key in users)
    assert (
        max(map(sum, map(dict.values, after.values()))) - min(map(sum, map(dict.values, after.values()))) <= 1
    )


def test_they_go_to_a_newcomer_that_has_nothing() -> None:
    workers = [worker(name) for name in "ab"]
    dispatcher = StayingDispatcher(workers, CLASSES)
    places(dispatcher, 21)
    dispatcher.add_worker(worker("c"))
    dispatcher.remove_worker(workers[1])
    after = places(dispatcher, 21)
    assert total(after) == {"Kubelets": 20, "Scenario": 1}
    assert sum(after["c"].values()) == 10


def test_each_loss_is_dispatched_anew() -> None:
    """Locust replaces nobody while a dispatch is in progress."""
    workers = [worker(name) for name in "abcd"]
    dispatcher = StayingDispatcher(workers, CLASSES)
    places(dispatcher, 41)
    for gone in workers[:2]:
        dispatcher.remove_worker(gone)
        after = places(dispatcher, 41)
        assert not dispatcher.dispatch_in_progress
    assert set(after) == {"c", "d"}
    assert total(after) == {"Kubelets": 40, "Scenario": 1}


def test_one_that_was_given_up_for_its_silence_is_told_to_quit() -> None:
    silent, left = worker("silent"), worker("left")
    sent: list[Any] = []
    clients = Workers()
    clients["silent"] = silent  # one that leaves by itself is taken out by Locust before
    runner = SimpleNamespace(clients=clients, server=SimpleNamespace(send_to_client=sent.append))
    dispatcher = StayingDispatcher([silent, left], CLASSES, partial(dismiss, runner))
    for found in [*clients.all, left]:  # as Locust does: in a loop over all
        dispatcher.remove_worker(found)
    assert [(message.type, message.node_id) for message in sent] == [("quit", "silent")]
    assert not clients


def test_another_dispatcher_begins_where_users_are() -> None:
    workers = [worker("a", Kubelets=7, Scenario=1), worker("b", Kubelets=3, Unknown=5)]
    found = places(StayingDispatcher(workers, CLASSES), 13)
    assert total(found) == {"Kubelets": 12, "Scenario": 1}
    assert found["a"]["Kubelets"] >= 7
    assert found["a"]["Scenario"] == 1
    assert found["b"]["Kubelets"] >= 4  # the first of the two new ones went to the emptier


def test_fewer_users_are_taken_from_where_they_are() -> None:
    dispatcher = StayingDispatcher([worker("a"), worker("b")], CLASSES)
    places(dispatcher, 21)
    dispatcher.add_worker(worker("c"))
    assert sum(total(places(dispatcher, 5)).values()) == 5


def test_the_last_one_that_goes_leaves_nobody() -> None:
    only = worker("a")
    dispatcher = StayingDispatcher([only], CLASSES)
    places(dispatcher, 5)
    dispatcher.remove_worker(only)
    dispatcher.add_worker(worker("b"))
    assert total(places(dispatcher, 5)) == {"Kubelets": 4, "Scenario": 1}
