"""What the master does for the scenario's workers."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import msgspec
import pytest

from harness.clusterloader.messages import (
    MASTER,
    AnyMessage,
    Execute,
    Executed,
    FailNodes,
    Ping,
    Queried,
    Query,
    RebootNodes,
    Recruit,
    Recruits,
    Restart,
    Restarted,
    decode,
    encode,
)
from harness.load.desk import Desk
from harness.load.workers.failures import ORDERED
from harness.pool.restarts import RestartOrder


class Runner:
    """Locust's master with three workers, one of whom is missing."""

    def __init__(self) -> None:
        states = {"a": "running", "b": "spawning", "c": "missing"}
        workers = [SimpleNamespace(id=name, state=state) for name, state in states.items()]
        self.clients = SimpleNamespace(all=workers)
        self.sent: list[tuple[str, str, AnyMessage]] = []
        self.ordered: list[tuple[str, AnyMessage]] = []

    def get_worker_index(self, client_id: str) -> int:
        return "abc".index(client_id)

    def send_message(self, kind: str, data: dict[str, Any], client_id: str) -> None:
        if kind == ORDERED:
            self.ordered.append((client_id, decode(data["body"])))
        else:
            self.sent.append((client_id, data["by"], decode(data["body"])))


class Pool:
    def __init__(self) -> None:
        self.orders: list[RestartOrder] = []

    def send(self, order: RestartOrder) -> None:
        self.orders.append(order)


class World:
    def __init__(self, folder: Path, *, allow_exec: bool = False) -> None:
        self.runner = Runner()
        self.events: list[tuple[str, dict[str, Any]]] = []
        environment = SimpleNamespace(runner=self.runner)
        self.desk = Desk(
            environment, lambda *event: self.events.append(event), folder / "logs", 1, allow_exec=allow_exec
        )

    def say(self, message: AnyMessage, to: str = MASTER) -> list[tuple[str, str, AnyMessage]]:
        """What was sent in answer to worker-0, and for it."""
        self.desk.take("worker-0", to, encode(message))
        return self.runner.sent


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_messages_go_to_the_worker_of_that_name(world: World) -> None:
    assert world.say(Ping(number=1), "worker-1") == [("b", "worker-0", Ping(number=1))]


@pytest.mark.parametrize("to", ["worker-2", "worker-9"])
def test_a_worker_that_is_not_there_gets_nothing(world: World, to: str) -> None:
    assert world.say(Ping(number=1), to) == []


@pytest.mark.parametrize(("most", "members"), [(5, ("worker-1",)), (0, ())])
def test_recruits_are_the_workers_that_are_there(world: World, most: int, members: tuple[str, ...]) -> None:
    recruits = Recruits(number=4, you="worker-0", members=members)
    assert world.say(Recruit(number=4, most=most)) == [("a", MASTER, recruits)]


def test_a_question_to_prometheus_is_asked_and_answered(world: World) -> None:
    asked: list[Query] = []

    def ask(query: Query) -> Queried:
        asked.append(query)
        gevent.sleep(0)
        return Queried(number=query.number, status=200, body=b"{}")

    world.desk.query = ask
    query = Query(number=9, expression="up", at_s=1.5)
    assert world.say(query) == [], "the desk goes on while it is asked"
    gevent.sleep(0)
    gevent.sleep(0)
    assert asked == [query]
    assert world.runner.sent == [("a", MASTER, Queried(number=9, status=200, body=b"{}"))]


def test_a_run_in_one_process_has_nobody_to_recruit() -> None:
    told: list[tuple[str, AnyMessage]] = []
    executors = SimpleNamespace(told=lambda by, body: told.append((by, decode(body))))
    environment = SimpleNamespace(
        runner=SimpleNamespace(), swarmlet_context=SimpleNamespace(executors=executors)
    )
    desk = Desk(environment, lambda kind, fields: None, Path("unused"), 1)
    desk.take("worker-0", MASTER, encode(Recruit(number=1, most=3)))
    assert told == [], "not while the asker is in the middle of its turn"
    gevent.sleep(0)
    assert told == [(MASTER, Recruits(number=1, you="worker-0", members=()))]
    environment.swarmlet_context = None
    desk.take("worker-0", MASTER, encode(Recruit(number=2, most=3)))
    gevent.sleep(0)
    assert len(told) == 1


# ---- nodes ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [FailNodes(number=2, names=("n",)), RebootNodes(number=3, names=("n",))])
def test_an_order_about_nodes_goes_to_every_worker_that_is_there(world: World, order: AnyMessage) -> None:
    world.say(order)
    assert world.runner.ordered == [("a", order), ("b", order)]


def test_a_run_in_one_process_carries_it_out_itself_and_not_in_the_askers_turn() -> None:
    done: list[str] = []

    def fail() -> bool:
        done.append("fail")
        return True

    user = SimpleNamespace(node="n", fail=fail, reboot=lambda: False)
    runner = SimpleNamespace(user_greenlets=[SimpleNamespace(args=(user,))])
    told: list[tuple[str, dict[str, Any]]] = []
    desk = Desk(SimpleNamespace(runner=runner), lambda *event: told.append(event), Path("unused"), 1)
    desk.take("worker-0", MASTER, encode(FailNodes(number=1, names=("n", "m"))))
    assert done == []
    gevent.sleep(0)
    assert (done, told) == (["fail"], [("node-failed", {"node": "n"})])


# ---- commands ------------------------------------------------------------------------------------------------------
def test_a_command_is_run_only_where_that_is_allowed(world: World) -> None:
    world.say(Execute(number=1, command=("true",), timeout_s=5.0))
    gevent.sleep(0)
    refused = Executed(number=1, error="--allow-exec was not given", log="")
    assert world.runner.sent == [("a", MASTER, refused)]
    assert world.events == []


def test_a_commands_output_is_events_and_a_log(tmp_path: Path) -> None:
    world = World(tmp_path, allow_exec=True)
    words = (sys.executable, "-c", "for n in range(300): print(n)")
    world.say(Execute(number=7, command=words, timeout_s=60.0))
    with gevent.Timeout(60):
        while (
            not world.runner.sent
        ):  # where Locust has patched this process, commands are waited for in the loop
            gevent.sleep(0.01)
    assert world.runner.sent == [("a", MASTER, Executed(number=7, error="", log="exec-1.log"))]
    kinds = [kind for kind, _ in world.events]
    assert kinds == ["exec-started", *["exec-output"] * 200, "exec-ended"]
    assert world.events[-1][1] == {"command": list(words), "error": "", "lines": 300}
    assert (tmp_path / "logs" / "exec-1.log").read_text().split() == [str(n) for n in range(300)]
    world.desk.stop()


# ---- members -------------------------------------------------------------------------------------------------------
ORDER = Restart(number=3, down_s=2.0, ready_timeout_s=9.0)


def test_without_a_pool_nothing_can_be_restarted(world: World) -> None:
    (_, _, answer) = world.say(ORDER)[0]
    assert isinstance(answer, Restarted)
    assert answer.unsupported.startswith("the target is no pool of this run's")


def test_a_member_of_the_pool_is_restarted_and_its_end_told(world: World) -> None:
    pool = Pool()
    world.desk.use_pool(pool, ("member-0", "member-1"))  # type: ignore[arg-type]
    assert world.say(ORDER) == []
    (order,) = pool.orders
    assert (order.down_s, order.ready_timeout_s) == (2.0, 9.0)
    world.desk.restarted("member-ended", {"member": order.member, "seconds": 1.0, "code": 0})
    assert world.runner.sent == []
    world.desk.restarted("member-restarted", {"member": order.member, "seconds": 4.0, "pid": 7})
    again = Restarted(number=3, member=order.member, seconds=4.0)
    assert world.runner.sent == [("a", MASTER, again)]


def test_no_member_is_restarted_that_a_fault_has_taken_away(world: World) -> None:
    pool = Pool()
    world.desk.use_pool(pool, ("member-0", "member-1", "member-2"))  # type: ignore[arg-type]
    world.desk.away.add("member-2")  # it ended unasked
    paused = {"member": "member-1", "fault_kind": "pause"}
    world.desk.disturbed("fault-started", paused)
    world.desk.disturbed("fault-started", {"member": "member-0", "fault_kind": "goaway"})
    for number in (1, 2):
        world.say(msgspec.structs.replace(ORDER, number=number))
    assert [order.member for order in pool.orders] == ["member-0"]
    world.desk.disturbed("fault-ended", paused)
    world.say(msgspec.structs.replace(ORDER, number=3))
    assert [order.member for order in pool.orders] == ["member-0", "member-1"]


def test_each_restart_is_of_a_member_that_is_not_being_restarted(world: World) -> None:
    pool = Pool()
    world.desk.use_pool(pool, ("member-0", "member-1"))  # type: ignore[arg-type]
    for number in (1, 2, 3):
        world.say(msgspec.structs.replace(ORDER, number=number))
    assert {order.member for order in pool.orders} == {"member-0", "member-1"}
    busy = Restarted(number=3, error="every member is away or being restarted")
    assert world.runner.sent == [("a", MASTER, busy)]
    failed = {"member": pool.orders[0].member, "seconds": 9.0, "error": "not ready"}
    world.desk.restarted("member-restart-failed", failed)
    told = world.runner.sent[-1][2]
    assert told == Restarted(number=1, member=pool.orders[0].member, seconds=9.0, error="not ready")
    world.desk.restarted("member-restarted", {"member": "member-9", "seconds": 1.0})
    assert len(world.runner.sent) == 2, "nobody asked for that"
