"""What is done to a pool from outside: to processes that are none, and to links."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.apiserver.faults.spec import parse_spec
from harness.pool.control import Control, obey, tell_pool
from harness.pool.disturbances import READY_WITHIN_S, BeginFault, ClearFaults, Disturbances, ListFaults
from harness.pool.network.config import LinkState
from harness.pool.network.places import Parts, Place
from harness.pool.network.shaping import Shape
from harness.pool.process import Process, ProcessFailed
from harness.pool.restarts import Part, RestartOrder
from harness.wire.errors import ConfigError
from harness.wire.pace import Pace

WITHIN_S = 60.0
SLOW = LinkState(Shape(latency_s=1.0))
CUT = LinkState(Shape(cut=True))


class FakeProcess:
    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.program_pid = pid
        self.alive = True
        self.how = ""

    def end(self, within_s: float) -> int:
        self.alive, self.how = False, f"SIGTERM, {within_s:g} s"
        return 0

    def kill(self) -> int:
        self.alive, self.how = False, "SIGKILL"
        return -9


class FakePool:
    """Two members, an etcd that cannot be started again, and two links."""

    def __init__(self, logs: Path) -> None:
        self.parts = Parts(("member-0", "member-1"), ("etcd-0",))
        self.logs = logs
        self.around = self
        self.placed = [Place("clients", "member-0"), Place("clients", "member-1")]
        self.processes = {name: FakeProcess(name, 100 + n) for n, name in enumerate(self.parts.processes)}
        self.ended: list[FakeProcess] = []
        self.links: dict[str, LinkState] = {}
        self.links_so_far: list[dict[str, LinkState]] = []
        self.fails = ""
        self.over = False
        self.started_within_s: list[float] = []

    def reshape(self, states: dict[str, LinkState]) -> None:
        self.links.update(states)
        self.links_so_far.append(dict(self.links))

    def part(self, name: str) -> Part:
        process: Any = self.processes[name]

        def start(within_s: float) -> Process | None:
            self.started_within_s.append(within_s)
            if self.over:
                return None
            if self.fails:
                raise ProcessFailed(self.fails)
            self.ended.append(process)
            new: Any = FakeProcess(name, process.program_pid + 100)
            self.processes[name] = new
            return new  # type: ignore[no-any-return]

        return Part(process, None if name == "etcd-0" else start)


class World:
    def __init__(self, logs: Path) -> None:
        self.pool = FakePool(logs)
        self.told: list[dict[str, Any]] = []
        self.happened = threading.Condition()
        self.disturbances = Disturbances(self.pool, self.tell)  # type: ignore[arg-type]

    def tell(self, event: dict[str, Any]) -> None:
        with self.happened:
            self.told.append(event)
            self.happened.notify_all()

    def begin(self, text: str) -> list[dict[str, Any]]:
        return self.disturbances.begin(parse_spec(text))

    def wait_for(self, what: str, count: int = 1) -> list[str]:
        """Until so many events of that kind have come; all that were told, as "kind member"."""
        self.wait_until(lambda: sum(event["kind"] == what for event in self.told) >= count)
        return self.story

    def wait_until(self, condition: Callable[[], bool]) -> None:
        with self.happened:
            assert self.happened.wait_for(condition, WITHIN_S), self.told

    def wait_until_links(self, states: dict[str, LinkState]) -> None:
        """Until they have been so, however long they stayed."""
        deadline = time.monotonic() + WITHIN_S
        while states not in self.pool.links_so_far:
            assert time.monotonic() < deadline, self.pool.links
            time.sleep(0.001)

    @property
    def story(self) -> list[str]:
        return [f"{event['kind']} {event['member']}" for event in self.told]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# ---- processes -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "how"), [("kill", "SIGKILL"), ("stop", "SIGTERM, 30 s")])
def test_a_member_is_ended_and_started_again_when_the_fault_is_over(
    world: World, kind: str, how: str
) -> None:
    (begun,) = world.begin(f"{kind} member=member-1 for=1ms")
    assert (begun["member"], begun["fault"], begun["seconds"]) == ("member-1", kind, 0.001)
    assert world.wait_for("fault-ended") == [
        "fault-started member-1",
        "member-ended member-1",
        "member-restarted member-1",
        "fault-ended member-1",
    ]
    assert [process.how for process in world.pool.ended] == [how]
    assert world.told[2]["pid"] == 201
    assert world.told[0] == {
        "id": 1,
        "kind": "fault-started",
        "member": "member-1",
        "fault": kind,
        "fault_kind": kind,
        "seconds": 0.001,
        "hits": 0,
    }


def test_at_a_pace_grace_readiness_and_times_of_day_are_the_models(world: World) -> None:
    begins = time.time() - 1000.0
    world.disturbances = Disturbances(world.pool, world.tell, Pace(4.0, begins))  # type: ignore[arg-type]
    (begun,) = world.begin("stop member=member-1 for=1ms")
    assert begins + 250.0 <= begun["started"] < begins + 300.0
    world.wait_for("fault-ended")
    assert [process.how for process in world.pool.ended] == ["SIGTERM, 120 s"]
    assert world.pool.started_within_s == [4 * READY_WITHIN_S]


def test_all_means_every_member_at_once_and_without_an_end_until_it_is_cleared(world: World) -> None:
    assert [begun["member"] for begun in world.begin("kill")] == ["member-0", "member-1"]
    world.wait_for("member-ended", 2)
    assert [entry["member"] for entry in world.disturbances.describe()] == ["member-0", "member-1"]
    assert [entry["member"] for entry in world.disturbances.describe("member-1")] == ["member-1"]
    assert world.disturbances.clear("member-1") == 1
    assert world.story[-2:] == ["member-restarted member-1", "fault-ended member-1"]
    assert world.disturbances.clear() == 1
    assert world.disturbances.describe() == []


def test_a_process_has_one_fault_at_a_time(world: World) -> None:
    world.begin("stop member=member-0")
    world.wait_for("member-ended")
    with pytest.raises(ConfigError, match="member-0 does not run"):
        world.begin("kill")
    world.disturbances.restart(RestartOrder("member-0", 0.0, 5.0))
    assert world.told[-1]["kind"] == "member-restart-failed"
    assert "fault stop is not over yet" in world.told[-1]["error"]
    world.disturbances.clear()
    world.disturbances.restart(RestartOrder("member-0", 0.0, 5.0))
    assert world.story[-4:] == [
        "fault-started member-0",
        "member-ended member-0",
        "member-restarted member-0",
        "fault-ended member-0",
    ]
    assert world.told[-1]["fault"] == "restart settle=0s ready-within=5s"


def test_one_that_does_not_come_back_has_failed(world: World) -> None:
    world.pool.fails = "member-0: not ready"
    world.begin("kill member=member-0 for=1ms")
    assert world.wait_for("fault-failed")[-2:] == ["member-restart-failed member-0", "fault-failed member-0"]
    assert world.told[-1]["error"] == "member-0: not ready"
    assert world.disturbances.describe() == []


@pytest.mark.parametrize("kind", ["kill", "stop", "restart"])
def test_what_keeps_nothing_is_not_ended(world: World, kind: str) -> None:
    with pytest.raises(ConfigError, match=r"etcd-0 keeps nothing.*--data-dir"):
        world.begin(f"{kind} member=etcd-0")
    assert world.told == []


def test_what_does_not_run_cannot_be_disturbed(world: World) -> None:
    world.pool.processes["member-0"].alive = False
    with pytest.raises(ConfigError, match="member-0 does not run"):
        world.begin("pause")


def test_members_are_restarted_one_after_another(world: World) -> None:
    (begun,) = world.begin("restart settle=1ms ready-within=7s")
    assert (begun["member"], begun["seconds"]) == ("all", None)
    assert world.wait_for("fault-ended") == [
        "fault-started all",
        "member-ended member-0",
        "member-restarted member-0",
        "member-ended member-1",
        "member-restarted member-1",
        "fault-ended all",
    ]
    assert world.pool.started_within_s == [7.0, 7.0]
    assert [process.how for process in world.pool.ended] == ["SIGTERM, 30 s"] * 2


def test_an_upgrade_stops_at_the_first_that_does_not_come_back(world: World) -> None:
    world.pool.fails = "member-0: not ready"
    world.begin("restart settle=0s")
    world.wait_for("fault-failed")
    assert world.pool.processes["member-1"].alive


def test_an_upgrade_that_is_cleared_goes_no_further(world: World) -> None:
    world.begin("restart settle=1h")
    world.wait_for("member-restarted")
    assert world.disturbances.clear() == 1
    assert world.story[-1] == "fault-ended all"
    assert not world.pool.ended[0].alive
    assert world.pool.processes["member-1"].alive


def test_the_end_of_the_pool_starts_nothing_again(world: World) -> None:
    world.begin("kill member=member-0")
    world.begin("restart member=member-1 down=1h")
    world.wait_for("member-ended", 2)
    world.disturbances.close()
    assert world.pool.started_within_s == []
    assert not any(event["kind"] == "fault-ended" for event in world.told)


# ---- links ---------------------------------------------------------------------------------------------------------
def test_a_link_is_slow_as_long_as_the_fault_is_active(world: World) -> None:
    (begun,) = world.begin("link between=clients,member-1 latency=1s")
    assert (begun["member"], begun["fault"]) == ("network", "link between=clients,member-1 latency=1s")
    world.wait_until_links({"clients,member-1": SLOW})
    world.disturbances.clear("network")
    assert world.pool.links == {"clients,member-1": LinkState()}


def test_of_several_faults_of_a_link_the_newest_that_is_active_counts(world: World) -> None:
    world.begin("link between=clients,member-0 latency=1s")
    world.wait_until_links({"clients,member-0": SLOW})
    world.begin("cut between=clients,members for=200ms")
    world.wait_until_links({"clients,member-0": CUT, "clients,member-1": CUT})
    world.wait_for("fault-ended")
    assert world.pool.links == {"clients,member-0": SLOW, "clients,member-1": LinkState()}
    world.begin("cut between=clients,member-1 how=reset")
    world.wait_until_links({"clients,member-0": SLOW, "clients,member-1": LinkState(reset=True)})
    world.disturbances.close()


def test_a_link_that_was_not_placed_is_named_with_what_places_it(world: World) -> None:
    with pytest.raises(ConfigError, match="--link member-0,etcd-0"):
        world.begin("cut between=member-0,etcd")


# ---- orders --------------------------------------------------------------------------------------------------------
def test_orders_are_obeyed_and_answered(world: World) -> None:
    (begun,) = obey(world.disturbances, BeginFault("kill member=member-0"))["faults"]
    assert begun["fault"] == "kill"
    assert [entry["id"] for entry in obey(world.disturbances, ListFaults())["faults"]] == [begun["id"]]
    assert obey(world.disturbances, ClearFaults("member-1")) == {"ended": 0}
    assert obey(world.disturbances, ClearFaults()) == {"ended": 1}
    assert obey(world.disturbances, RestartOrder("member-0", 0.0, 5.0)) == {}


def test_a_command_reaches_the_supervisor_by_its_socket(world: World, tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    control = Control(path, world.disturbances)
    try:
        assert tell_pool(str(path), BeginFault("kill member=member-0"))["faults"][0]["member"] == "member-0"
        assert "no member 'x'" in tell_pool(str(path), BeginFault("kill member=x"))
        assert tell_pool(str(path), ClearFaults()) == {"ended": 1}
    finally:
        control.close()
    assert "does not answer" in tell_pool(str(path), ListFaults())
