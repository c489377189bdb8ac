"""Seats of lists, watches and writes."""

from __future__ import annotations

import pytest

from harness.apiserver.clock import VirtualClock
from harness.apiserver.flowcontrol import Estimator, ObjectCounts, WatchTracker, WorkEstimate
from harness.wire.paths import parse_path

LEVEL_MAX = 12


class Setup:
    def __init__(self, count: int = 1000, average_bytes: int = 2000) -> None:
        self.clock = VirtualClock()
        self.counts = ObjectCounts(self.clock)
        self.watches = WatchTracker()
        self.counts.set("", "pods", count, average_bytes)
        self.estimator = Estimator(self.counts, self.watches)

    def seats(self, query: str = "", path: str = "/api/v1/pods", max_seats: int = LEVEL_MAX) -> int:
        return self.estimator.estimate(parse_path(f"{path}?{query}"), max_seats)[0].initial_seats

    def write(
        self, path: str, method: str = "PATCH", max_seats: int = LEVEL_MAX
    ) -> tuple[WorkEstimate, int | None]:
        return self.estimator.estimate(parse_path(path, method), max_seats)


@pytest.mark.parametrize(
    ("count", "average_bytes", "seats"),
    [
        (0, 0, 1),
        (1, 100_000, 1),
        (1, 100_001, 2),
        (100, 2000, 2),
        (450, 2000, 9),
        (451, 2000, 10),
        (10**6, 2000, 10),
    ],
)
def test_a_list_from_cache_takes_a_seat_for_each_100_kb_up_to_ten(
    count: int, average_bytes: int, seats: int
) -> None:
    assert Setup(count, average_bytes).seats("resourceVersion=0") == seats


def test_the_level_limits_a_list() -> None:
    assert Setup().seats("resourceVersion=0", max_seats=4) == 4


@pytest.mark.parametrize(
    ("query", "seats"),
    [
        ("", 10),  # consistent reads are served from cache
        ("limit=100", 2),
        ("limit=100&resourceVersion=5", 2),  # exact, from etcd
        ("limit=500&resourceVersion=5", 10),
        ("limit=10&continue=abc&labelSelector=a%3Db", 10),  # half of all objects are looked at
        ("resourceVersion=5&resourceVersionMatch=Exact", 12),  # no cap of 1 MB from etcd, but the level's
        ("fieldSelector=metadata.name%3Dp", 1),
        ("fieldSelector=spec.nodeName%3Dn1&resourceVersion=0", 10),  # not a name
        ("watch=true&resourceVersion=5", 1),
        ("watch=true&resourceVersion=0", 10),
        ("watch=true", 10),
        ("watch=true&sendInitialEvents=true&resourceVersion=5&resourceVersionMatch=NotOlderThan", 10),
        ("watch=true&sendInitialEvents=true&fieldSelector=metadata.name%3Dp", 1),
        ("watch=true&sendInitialEvents=false&resourceVersion=5", 1),
    ],
)
def test_what_a_list_or_watch_sends_decides_its_seats(query: str, seats: int) -> None:
    assert Setup().seats(query) == seats


def test_a_resource_that_was_never_counted_takes_one_seat() -> None:
    assert Setup().seats("", "/api/v1/nodes") == 1


@pytest.mark.parametrize(("age_s", "seats"), [(180, 1), (181, 10), (3599, 10), (3600, 1)])
def test_counts_that_are_too_old_mean_the_worst_then_nothing(age_s: float, seats: int) -> None:
    setup = Setup(1, 100)
    setup.clock.advance(age_s)
    assert setup.seats("resourceVersion=0") == seats


def test_gets_take_one_seat() -> None:
    assert Setup().seats("", "/api/v1/namespaces/a/pods/p") == 1


@pytest.mark.parametrize(
    ("watches", "final", "extra_s"),
    [(0, 0, 0.0), (9, 0, 0.0), (10, 1, 0.005), (11, 2, 0.005), (100, 10, 0.005), (1000, 10, 0.05)],
)
def test_a_write_pays_afterwards_for_the_watches_it_wakes(watches: int, final: int, extra_s: float) -> None:
    setup = Setup()
    for _ in range(watches):
        setup.watches.count(parse_path("/api/v1/pods?watch=true"), lambda _: None)
    estimate, counted = setup.write("/api/v1/namespaces/a/pods/p/status")
    assert estimate == WorkEstimate(1, final, pytest.approx(extra_s))
    assert counted == watches


def test_the_level_makes_a_write_narrower_and_longer() -> None:
    setup = Setup()
    for _ in range(100):
        setup.watches.count(parse_path("/api/v1/pods?watch=true"), lambda _: None)
    assert setup.write("/api/v1/namespaces/a/pods/p", max_seats=4)[0] == WorkEstimate(
        1, 4, pytest.approx(0.0125)
    )


def test_tokens_wake_nobody() -> None:
    setup = Setup()
    for _ in range(100):
        setup.watches.count(parse_path("/api/v1/serviceaccounts?watch=true"), lambda _: None)
    assert setup.write("/api/v1/namespaces/a/serviceaccounts/default/token", "POST") == (WorkEstimate(), None)


def test_watches_of_the_kind_the_namespace_and_the_object_are_interested() -> None:
    tracker = WatchTracker()
    paths = (
        "/api/v1/secrets?watch=true",
        "/api/v1/namespaces/a/secrets?watch=true",
        "/api/v1/namespaces/a/secrets?watch=true&fieldSelector=metadata.name%3Ds",
        "/api/v1/namespaces/b/secrets?watch=true",
        "/api/v1/namespaces/a/secrets?watch=true&fieldSelector=metadata.name%3Dother",
        "/api/v1/configmaps?watch=true",
    )
    keys = [tracker.count(parse_path(path), lambda _: None) for path in paths]
    assert tracker.interested(parse_path("/api/v1/namespaces/a/secrets/s", "PUT")) == 3
    assert tracker.interested(parse_path("/api/v1/namespaces/a/secrets", "POST")) == 2
    assert tracker.interested(parse_path("/api/v1/namespaces/a/secrets/s")) == 0
    for key in keys:
        tracker.forget(key)
    assert tracker.interested(parse_path("/api/v1/namespaces/a/secrets/s", "PUT")) == 0


@pytest.mark.parametrize(("selected", "interested"), [("n1", 0), ("", 1), (None, 1)])
def test_watches_of_one_nodes_pods_are_not_counted(selected: str | None, interested: int) -> None:
    tracker = WatchTracker()
    key = tracker.count(parse_path("/api/v1/pods?watch=true"), {"spec.nodeName": selected}.get)
    assert tracker.interested(parse_path("/api/v1/namespaces/a/pods/p", "PUT")) == interested
    tracker.forget(key)
    assert tracker.interested(parse_path("/api/v1/namespaces/a/pods/p", "PUT")) == 0
