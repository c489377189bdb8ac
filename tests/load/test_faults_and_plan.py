"""Fault specifications, and the plan on its way from master to workers."""

from __future__ import annotations

import pytest

from harness.load import plan as plans
from harness.load.faults import Fault, inject, parse_fault
from harness.load.plan import Plan, Target, TargetMember
from harness.wire.errors import ConfigError


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("stall-informer:member-0:20@5", Fault("stall-informer", "member-0", 20, 5)),
        ("stall-informer:member-12:0.5@0", Fault("stall-informer", "member-12", 0.5, 0)),
    ],
)
def test_a_fault_is_kind_member_length_and_time(spec: str, fault: Fault) -> None:
    assert parse_fault(spec) == fault


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "stall-informer",
        "stall-informer:member-0:20",
        "stall-informer:member-0:@5",
        "stall-informer:member-0:1.2.3@5",
        "stall-informer:member-0:.@5",
        "stall-informer:member-0:-1@5",
        "stall-informer:member-0:20@5s",
        "stall-informer:member-0:20@5\n",
        "burn:member-0:20@5",
    ],
)
def test_anything_else_is_refused_with_what_is_expected(spec: str) -> None:
    with pytest.raises(
        ConfigError, match="expected KIND:MEMBER:SECONDS@SECONDS with KIND one of stall-informer"
    ):
        parse_fault(spec)


def test_a_fault_of_a_member_that_is_not_there_says_so() -> None:
    target = Target((TargetMember("member-0", "127.0.0.1", 1),))
    assert inject(target, Fault("stall-informer", "member-1", 1, 1)) == "no member member-1"


def test_a_fault_that_cannot_be_delivered_says_why() -> None:
    target = Target((TargetMember("member-0", "127.0.0.1", 1),))
    assert "refused" in inject(target, Fault("stall-informer", "member-0", 1, 1))


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
