"""The scenario's machines on one worker: who gets what is said to it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from harness.client.machine import Told
from harness.clusterloader.messages import AnyMessage, Order, Ping, Pong, Report, decode, encode
from harness.load.context import WorkerContext
from harness.load.plan import Plan, Target, TargetMember
from tests.load.plays import TINY

LEADER = "worker-0"


class Worker:
    def __init__(self, scenario: str) -> None:
        self.sent: list[tuple[str, AnyMessage]] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        target = Target((TargetMember("m", "127.0.0.1", 1),), tls=False)
        self.context = WorkerContext(
            Plan(seed=1, kubelets=3, target=target, scenario=scenario),
            1,
            lambda **_: None,
            lambda kind, fields: self.told.append((kind, fields)),
            lambda to, body: self.sent.append((to, decode(body))),
        )

    def hear(self, message: AnyMessage) -> None:
        self.context.executors.told(LEADER, encode(message))


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker(TINY)
    yield made
    made.context.close()


def test_the_first_message_makes_a_follower(worker: Worker) -> None:
    worker.hear(Ping(number=1))
    worker.hear(Ping(number=2))
    assert [(to, type(message), message.number) for to, message in worker.sent] == [
        (LEADER, Pong, 1),
        (LEADER, Pong, 2),
    ]
    first, second = (message.at_s for _, message in worker.sent)  # type: ignore[union-attr]
    assert 0 <= first <= second
    assert worker.told == []


def test_a_follower_answers_an_order(worker: Worker) -> None:
    order = Order(
        number=5,
        step=1,
        phase=0,
        digest="another",
        replicas=(),
        seed=1,
        start_s=0.0,
        share=1,
        of=2,
        executors=2,
    )
    worker.hear(order)
    refused = Report(number=5, done=0, total=0, ended=True, error="step 2, phase 1 is not the leader's")
    assert worker.sent == [(LEADER, refused)]


def test_the_leaders_own_machine_gets_what_is_said_to_its_worker(worker: Worker) -> None:
    heard: list[Any] = []
    worker.context.executors.lead(SimpleNamespace(feed=heard.append))  # type: ignore[arg-type]
    worker.hear(Pong(number=1, at_s=3.5))
    assert heard == [Told(("told",), LEADER, Pong(number=1, at_s=3.5))]
    assert worker.sent == []


def test_a_worker_that_cannot_read_the_scenario_says_so() -> None:
    worker = Worker("/nowhere.yaml")
    worker.hear(Ping(number=1))
    worker.context.close()
    assert worker.sent == []
    (kind, fields) = worker.told[0]
    assert (kind, fields["user"]) == ("user-failed", "clusterloader executor")
    assert fields["error"].startswith("/nowhere.yaml: no such scenario")
