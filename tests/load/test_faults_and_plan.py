"""Faults on their way to a pool, and the plan on its way from master to workers."""

from __future__ import annotations

from collections.abc import Callable

import gevent
import pytest

from harness.apiserver.faults.spec import parse_spec
from harness.load import plan as plans
from harness.load.faults import RunFaults, check_steps, inject
from harness.load.plan import Plan, Target, TargetMember
from harness.wire.errors import ConfigError


def test_a_fault_of_a_member_that_is_not_there_says_so() -> None:
    target = Target((TargetMember("member-0", "127.0.0.1", 1),))
    with pytest.raises(ConfigError, match="no member 'member-1'"):
        inject(target, parse_spec("stall-informer member=member-1"))


def test_a_fault_that_cannot_be_delivered_says_why() -> None:
    target = Target((TargetMember("member-0", "127.0.0.1", 1), TargetMember("member-1", "127.0.0.1", 1)))
    refused = inject(target, parse_spec("stall-informer"))
    assert list(refused) == ["member-0", "member-1"]
    assert all("refused" in why for why in refused.values())


def test_what_members_share_is_asked_of_one() -> None:
    target = Target((TargetMember("member-0", "127.0.0.1", 1), TargetMember("member-1", "127.0.0.1", 1)))
    assert list(inject(target, parse_spec("compact"))) == ["member-0"]
    assert list(inject(target, parse_spec("compact member=member-1"))) == ["member-1"]


def begun_by(play: Callable[[RunFaults], object], *texts: str) -> tuple[list[str], list[str]]:
    """The kinds that have begun 50 ms after `play`, and those that have not."""
    begun: list[str] = []
    faults = RunFaults([parse_spec(text) for text in texts], lambda spec: begun.append(spec.fault.kind))
    play(faults)
    gevent.sleep(0.05)
    return begun, [spec.fault.kind for spec in faults.stop()]


def test_faults_wait_for_the_load_or_for_their_step() -> None:
    texts = ("kill at=0s", "stop at=1h", "pause step='create objects'", "cut between=a,b step=x at=10ms")
    assert begun_by(RunFaults.load_began, *texts) == (["kill"], ["stop", "pause", "cut"])
    assert begun_by(lambda faults: faults.step_began("x"), *texts) == (["cut"], ["kill", "stop", "pause"])


def test_a_step_that_comes_twice_has_its_fault_once() -> None:
    def twice(faults: RunFaults) -> None:
        faults.step_began("x")
        faults.step_began("x")

    assert begun_by(twice, "kill step=x") == (["kill"], [])


def test_a_step_that_the_scenario_has_not_is_one_line() -> None:
    specs = [parse_spec("goaway at=1s"), parse_spec("kill step=creat")]
    with pytest.raises(ConfigError, match=r"no step 'creat' \(known: 'create', 'wait'\)"):
        check_steps(specs, ["create", "wait"])
    with pytest.raises(ConfigError, match="no scenario of steps"):
        check_steps(specs, [])
    check_steps(specs, ["creat"])


def test_a_plan_arrives_as_it_was_sent() -> None:
    plan = Plan(
        seed=7,
        kubelets=500,
        target=Target(
            (TargetMember("member-0", "127.0.0.1", 6443), TargetMember("member-1", "127.0.0.1", 6444)),
            ca="PEM",
            token="secret",
            has_scheduler=True,
        ),
        scenario="/some/config.yaml",
        overrides=("/some/overrides.yaml",),
        environ={"CL2_PODS": "5"},
        http="h2",
        fleet={"cpu": "4"},
    )
    text = plans.encode(plan)
    assert isinstance(text, str)
    assert plans.decode(text) == plan
