"""The list of a member's faults: begun, seeded, told, ended."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.apiserver.auth.nodelag import Lag
from harness.apiserver.clock import Promise, VirtualClock, resolved
from harness.apiserver.faults.active import Faults, Running, serve
from harness.apiserver.faults.kinds import (
    ClockSkew,
    Compact,
    CorruptCache,
    GoAway,
    LagInformer,
    SlowStore,
    StallInformer,
)
from harness.apiserver.faults.parts import (
    SkewedClock,
    disturb_caches,
    disturb_clock,
    disturb_informer,
    disturb_store,
)
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.store.core import Compacted, StoreUnavailable
from harness.wire.errors import ConfigError
from tests.apiserver.member.fakemember import FakeExchange


class World:
    def __init__(self, seed: str = "1/member-0") -> None:
        self.clock = SkewedClock(VirtualClock())
        self.virtual: VirtualClock = self.clock.now.__self__  # type: ignore[attr-defined]
        self.metrics = Metrics()
        self.faults = Faults(self.clock, seed, self.metrics)
        self.told: list[dict[str, Any]] = []
        self.faults.tell = self.told.append
        self.running: list[Running] = []
        self.ended: list[int] = []
        self.faults.provide(GoAway, self._begin)

    def _begin(self, _: GoAway, running: Running) -> Any:
        self.running.append(running)
        return lambda: self.ended.append(running.id)

    def metric(self, name: str, kind: str) -> float:
        return getattr(self.metrics, name).labels(kind).value


@pytest.fixture
def world() -> World:
    return World()


def test_a_fault_ends_by_itself_and_both_ends_are_told(world: World) -> None:
    running = world.faults.begin(GoAway(0.5), 20.0)
    running.hit(3)
    world.virtual.advance(19.9)
    assert world.metric("swarmlet_faults_active", "goaway") == 1
    assert world.ended == []
    world.virtual.advance(0.1)
    assert world.ended == [1]
    assert list(world.faults) == []
    about = {"id": 1, "fault": "goaway chance=0.5", "fault_kind": "goaway", "seconds": 20.0}
    assert world.told == [
        {**about, "kind": "fault-started", "hits": 0},
        {**about, "kind": "fault-ended", "hits": 3},
    ]
    assert world.metric("swarmlet_faults_total", "goaway") == 1
    assert world.metric("swarmlet_fault_hits_total", "goaway") == 3
    assert world.metric("swarmlet_faults_active", "goaway") == 0


def test_without_a_length_it_stays_until_it_is_ended(world: World) -> None:
    world.faults.begin(GoAway())
    world.faults.begin(GoAway(), 5.0)
    world.virtual.advance(10_000)
    assert [running.id for running in world.faults] == [1]
    assert world.faults.clear() == 1
    assert world.ended == [2, 1]
    assert not world.faults.end(1)
    world.virtual.advance(10)
    assert world.ended == [2, 1]


def test_the_same_seed_draws_the_same_and_each_fault_its_own() -> None:
    draws = []
    for seed in ("1/member-0", "1/member-0", "2/member-0"):
        world = World(seed)
        draws.append([[world.faults.begin(GoAway()).rng.random() for _ in range(3)] for _ in range(2)])
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert draws[0][0] != draws[0][1]


def test_a_kind_that_nobody_can_do_is_refused(world: World) -> None:
    with pytest.raises(ConfigError, match="compact: not possible"):
        world.faults.begin(Compact())
    assert world.told == []


# ---- the page ------------------------------------------------------------------------------------------------------
def page(world: World, method: str, body: Any = None) -> tuple[int, Any]:
    raw = b"" if body is None else msgspec.json.encode(body)
    status, content_type, answer = serve(world.faults, FakeExchange(method, "/swarmlet/faults", {}, raw))
    return status, msgspec.json.decode(answer) if content_type == "application/json" else answer.decode()


def test_faults_are_begun_listed_and_ended_over_http(world: World) -> None:
    status, began = page(world, "POST", {"fault": {"kind": "goaway", "chance": 0.25}, "for": 5})
    assert (status, began["fault"], began["seconds"]) == (200, "goaway chance=0.25", 5.0)
    status, listed = page(world, "GET")
    assert [entry["id"] for entry in listed["faults"]] == [1]
    assert "clock-skew" in listed["kinds"]
    assert page(world, "DELETE") == (200, {"ended": 1})
    assert page(world, "GET")[1]["faults"] == []


@pytest.mark.parametrize(
    ("method", "body", "status", "words"),
    [
        ("PUT", None, 405, "use GET, POST or DELETE"),
        ("POST", None, 400, "truncated"),
        ("POST", {"fault": {"kind": "nosuch"}}, 400, "Invalid value 'nosuch'"),
        ("POST", {"fault": {"kind": "goaway", "chance": 2}}, 400, "chance is 2; allowed is 0 to 1"),
        ("POST", {"fault": {"kind": "goaway", "chances": 1}}, 400, "unknown field `chances`"),
        ("POST", {"fault": {"kind": "goaway"}, "for": -1}, 400, "for is -1 s"),
        ("POST", {"fault": {"kind": "goaway"}, "For": 1}, 400, "unknown field `For`"),
        ("POST", {"fault": {"kind": "compact"}}, 400, "not possible"),
    ],
)
def test_what_cannot_be_is_one_line(world: World, method: str, body: Any, status: int, words: str) -> None:
    answered, text = page(world, method, body)
    assert answered == status
    assert words in text
    assert text.count("\n") == 1


# ---- parts of a member ---------------------------------------------------------------------------------------------
class FakeStore:
    def __init__(self) -> None:
        self.delays: list[tuple[float, float]] = []
        self.compaction: Promise[int] = Promise()

    def compact(self, revision: int = 0) -> Promise[int]:
        return self.compaction

    def set_delay(self, write_s: float, read_s: float) -> Promise[None]:
        self.delays.append((write_s, read_s))
        return resolved(None)


def test_a_slow_store_is_slow_until_the_end(world: World) -> None:
    store = FakeStore()
    disturb_store(world.faults, store)
    world.faults.begin(SlowStore(0.2, 0.1), 5.0)
    world.virtual.advance(5)
    assert store.delays == [(0.2, 0.1), (0.0, 0.0)]


def test_a_compaction_is_done_at_once_and_one_that_was_not_needed_is_no_failure(world: World) -> None:
    store = FakeStore()
    disturb_store(world.faults, store)
    world.faults.begin(Compact())
    store.compaction.fail(Compacted(5, 5))
    assert [event["kind"] for event in world.told] == ["fault-started"]
    assert list(world.faults) == []


def test_a_store_that_refuses_is_told(world: World) -> None:
    store = FakeStore()
    disturb_store(world.faults, store)
    world.faults.begin(Compact())
    store.compaction.fail(StoreUnavailable("gone"))
    assert world.told[1] == {**world.told[0], "kind": "fault-failed", "error": "gone"}


def test_the_clock_is_wrong_until_the_end_and_timers_run_on(world: World) -> None:
    disturb_clock(world.faults, world.clock)
    before = world.clock.wall()
    world.faults.begin(ClockSkew(3600.0), 10.0)
    world.faults.begin(ClockSkew(-60.0))
    assert world.clock.wall() == before + 3540
    world.virtual.advance(10)
    assert world.clock.wall() == before + 10 - 60


class FakeCache:
    def __init__(self, found: str) -> None:
        self.found = found
        self.asked: list[str] = []

    def corrupt(self, how: str, _: Any) -> str:
        self.asked.append(how)
        return self.found


def test_a_cache_is_corrupted_where_there_is_something_in_it(world: World) -> None:
    caches = {"pods": FakeCache("/pods/a"), "nodes": FakeCache("")}
    disturb_caches(world.faults, caches.get)
    assert world.faults.begin(CorruptCache("pods", "stale")).hits == 1
    assert caches["pods"].asked == ["stale"]
    with pytest.raises(ConfigError, match="cache of nodes is empty"):
        world.faults.begin(CorruptCache("nodes"))
    with pytest.raises(ConfigError, match="no watch cache of 'events'"):
        world.faults.begin(CorruptCache("events"))


def test_an_informer_stalls_or_lags_until_the_end(world: World) -> None:
    asked: list[tuple[Any, ...]] = []

    class Informer:
        def stall(self, seconds: float, relist: bool = False) -> None:
            asked.append(("stall", seconds, relist))

        def set_lag(self, lag: Any) -> None:
            asked.append(("lag", lag))

    disturb_informer(world.faults, Informer())
    world.faults.begin(StallInformer(relist=True), 20.0)
    world.virtual.advance(20)
    assert asked == [("stall", 20.0, True), ("stall", 0.0, False)]
    asked.clear()
    world.faults.begin(LagInformer(0.2, 0.0), 5.0)
    world.virtual.advance(5)
    world.faults.begin(LagInformer(lag="fixed:50ms"))
    assert asked == [("lag", Lag("lognormal", 0.2, 0.0)), ("lag", None), ("lag", Lag("fixed", 0.05))]
