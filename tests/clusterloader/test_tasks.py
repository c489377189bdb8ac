"""Coroutines driven by events."""

from __future__ import annotations

from harness.client.machine import Answered, Arm, Cancel, Disarm, Failed, Fired, Send
from harness.clusterloader.tasks import Future, Signal, Tasks
from harness.wire.request import Failure, Request, Response, TransportError

REQUEST = Request("get", "GET", "/api/v1/nodes/a", "nodes")


def test_a_request_comes_back_to_the_coroutine_that_asked() -> None:
    tasks = Tasks()

    async def ask() -> int:
        answer = await tasks.ask(REQUEST)
        return answer.status if isinstance(answer, Response) else 0

    task = tasks.spawn(ask())
    tasks.run()
    (send,) = tasks.take()
    assert isinstance(send, Send)
    tasks.handle(Answered(send.key, Response(418, {})))
    tasks.run()
    assert task.value == 418


def test_a_failure_comes_back_as_a_value() -> None:
    tasks = Tasks()

    async def ask() -> object:
        return await tasks.ask(REQUEST)

    task = tasks.spawn(ask())
    tasks.run()
    (send,) = tasks.take()
    assert isinstance(send, Send)
    error = TransportError(Failure.RESET, "gone")
    tasks.handle(Failed(send.key, error))
    tasks.run()
    assert task.value is error


def test_tasks_run_in_the_order_in_which_they_can() -> None:
    tasks = Tasks()
    seen: list[str] = []
    gate: Future[None] = Future()

    async def part(name: str) -> None:
        seen.append(name)
        await gate
        seen.append(name.upper())

    for name in "abc":
        tasks.spawn(part(name))
    tasks.run()
    gate.set(None)
    gate.set(None)
    tasks.run()
    assert seen == ["a", "b", "c", "A", "B", "C"]


def test_a_time_that_has_passed_needs_no_timer() -> None:
    tasks = Tasks()
    tasks.now = 5.0
    assert tasks.until(5.0).done
    assert not tasks.until(5.1).done
    assert [type(action) for action in tasks.take()] == [Arm]


def test_waiting_for_either_disarms_the_timer_that_lost() -> None:
    tasks = Tasks()
    signal = Signal()
    waits = tasks.spawn(tasks.either(signal.changed, 10.0))
    tasks.run()
    (arm,) = tasks.take()
    signal.notify()
    tasks.run()
    assert waits.value is True
    assert isinstance(arm, Arm)
    assert tasks.take() == [Disarm(arm.key)]


def test_waiting_for_either_ends_with_the_timer() -> None:
    tasks = Tasks()
    signal = Signal()
    waits = tasks.spawn(tasks.either(signal.changed, 10.0))
    tasks.run()
    (arm,) = tasks.take()
    assert isinstance(arm, Arm)
    tasks.now = 10.0
    tasks.handle(Fired(arm.key))
    tasks.run()
    assert waits.value is False
    assert tasks.take() == []


def test_a_signal_wakes_those_who_wait_and_no_later_ones() -> None:
    signal = Signal()
    before = signal.changed
    signal.notify()
    assert before.done
    assert not signal.changed.done


def test_cancelling_everything_leaves_nothing() -> None:
    tasks = Tasks()
    ended: list[str] = []

    async def ask() -> None:
        try:
            await tasks.ask(REQUEST)
        finally:
            ended.append("asked")

    async def never_ran() -> None:
        ended.append("ran")

    tasks.spawn(ask())
    tasks.spawn(tasks.either(Future(), 9.0))
    tasks.run()
    send, arm = tasks.take()
    tasks.spawn(never_ran())
    tasks.cancel_all()
    assert isinstance(send, Send)
    assert isinstance(arm, Arm)
    assert tasks.take() == [Cancel(send.key), Disarm(arm.key)]
    assert ended == ["asked"]
    tasks.handle(Answered(send.key, Response(200, {})))
    tasks.handle(Fired(arm.key))
    tasks.run()
    assert tasks.take() == []
