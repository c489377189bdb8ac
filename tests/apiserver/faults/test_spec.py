"""Faults as they are written: what is read, and the one line for what is not."""

from __future__ import annotations

import msgspec
import pytest

from harness.apiserver.faults.active import Order
from harness.apiserver.faults.kinds import (
    KINDS,
    MEMBER_KINDS,
    ClockSkew,
    Compact,
    ErrorAnswer,
    Fault,
    GoAway,
    LagInformer,
    SlowAnswer,
    StallInformer,
)
from harness.apiserver.faults.poolkinds import (
    POOL_KINDS,
    CutLink,
    KillPart,
    PausePart,
    PoolFault,
    RestartParts,
    SlowLink,
    StopPart,
)
from harness.apiserver.faults.spec import FaultSpec, describe_kinds, parse_spec
from harness.wire.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("goaway", FaultSpec(GoAway(0.01))),
        ("goaway chance=0.5 member=member-1 for=20s at=5s", FaultSpec(GoAway(0.5), "member-1", 20.0, 5.0)),
        ("stall-informer for=2m", FaultSpec(StallInformer(), for_s=120.0)),
        ("compact", FaultSpec(Compact())),
        ("clock-skew by=-1h", FaultSpec(ClockSkew(-3600.0))),
        (
            "error status=503 retry-after=7 verbs=get,list resources=pods,deployments.apps",
            FaultSpec(ErrorAnswer(0.01, ("get", "list"), ("pods", "deployments.apps"), 503, 7)),
        ),
        ("slow  median=50ms\tsigma=0", FaultSpec(SlowAnswer(median_s=0.05, sigma=0.0))),
        ("pause member=balancer for=5m", FaultSpec(PausePart(), "balancer", 300.0)),
        ("kill member=etcd-0 step='create objects'", FaultSpec(KillPart(), "etcd-0", step="create objects")),
        ("stop at=2s step=create", FaultSpec(StopPart(), at_s=2.0, step="create")),
        ("restart down=2s settle=0s", FaultSpec(RestartParts(2.0, 0.0))),
        (
            "link between=clients,member-1 latency=50ms rate=10mbit drop=1% for=20s",
            FaultSpec(SlowLink(("clients", "member-1"), 0.05, 0.0, 1e7, 0.01), for_s=20.0),
        ),
        ("link between=a,b rate=1.5kbit", FaultSpec(SlowLink(("a", "b"), rate_bit_s=1500.0))),
        ("link between=a,b rate=100bit jitter=1s", FaultSpec(SlowLink(("a", "b"), 0.0, 1.0, 100.0))),
        ("cut between=members,etcd how=reset", FaultSpec(CutLink(("members", "etcd"), "reset"))),
        ("goaway chance=5%", FaultSpec(GoAway(0.05))),
        ("lag-informer median=50ms sigma=0", FaultSpec(LagInformer(0.05, 0.0))),
        (
            "lag-informer lag=uniform:1ms,5ms for=20s",
            FaultSpec(LagInformer(lag="uniform:1ms,5ms"), for_s=20.0),
        ),
    ],
)
def test_a_fault_is_its_kind_and_its_options_and_reads_back(text: str, spec: FaultSpec) -> None:
    assert parse_spec(text) == spec
    assert parse_spec(spec.text) == spec


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["KIND", "goaway"]),
        ("goawy", ["'goawy'", "did you mean 'goaway'", "known: "]),
        ("goaway 0.5", ["'0.5'", "OPTION=VALUE"]),
        ("goaway chances=1", ["'chances'", "did you mean 'chance'", "member, for, at"]),
        ("goaway chance=1.5", ["chance is 1.5", "0 to 1"]),
        ("goaway chance=nan", ["chance is nan"]),
        ("goaway chance=much", ["chance"]),
        ("goaway for=x", ["for=x", "50ms, 20s or 5m"]),
        ("goaway for=0s", ["for is 0 s"]),
        ("goaway for=2h", ["for is 7200 s", "3600"]),
        ("error status=200", ["status is 200", "429, 500"]),
        ("error retry-after=-1", ["retry-after is -1"]),
        ("cut-watch how=never", ["how is 'never'", "end, reset"]),
        ("compact for=5s", ["at once"]),
        ("pause for=2h", ["3600 s"]),
        ("restart for=5s", ["ends by itself"]),
        ("restart down=2h", ["down is 7200"]),
        ("cut", ["between is ''", "clients,member-0"]),
        ("cut between=a", ["between is 'a'"]),
        ("cut between=a,b member=member-0", ["between=", "no member="]),
        ("link between=a,b", ["one of latency, jitter, rate and drop", "cut"]),
        ("link between=a,b rate=10", ["rate=10 is no rate", "10mbit"]),
        ("link between=a,b drop=91%", ["drop is 0.91"]),
        ("link between=a,b drop=x%", ["drop=x% is no share"]),
        ("kill step=", ["step= is empty"]),
        ("kill step='create", ["no closing quotation"]),
        ("clock-skew by=soon", ["by=soon"]),
        ("lag-informer lag=fixed", ["lag: 'fixed' is none of", "uniform:1ms,5ms"]),
        ("lag-informer lag=none sigma=1", ["lag is the whole distribution"]),
        ("slow-store write=2m", ["write is 120", "60"]),
    ],
)
def test_what_cannot_be_is_one_line_with_what_may_be(text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec(text)
    said = str(caught.value)
    assert all(word in said for word in words), said
    assert "\n" not in said


def test_every_kind_is_described_and_travels_as_json() -> None:
    assert [kind for kind, _, _ in describe_kinds()] == list(KINDS)
    assert all(summary for _, _, summary in describe_kinds())
    for type_ in MEMBER_KINDS.values():
        order = Order(type_(), 5.0)
        assert msgspec.json.decode(msgspec.json.encode(order), type=Order) == order
    assert set(MEMBER_KINDS.values()) == set(Fault.__args__)  # type: ignore[attr-defined]
    assert set(POOL_KINDS.values()) == set(PoolFault.__args__)  # type: ignore[attr-defined]


def test_who_does_a_fault_and_when_is_told() -> None:
    assert [parse_spec(text).of_pool for text in ("kill", "cut between=a,b", "goaway")] == [True, True, False]
    assert [parse_spec(text).later for text in ("kill", "kill at=0s", "kill step=a")] == [False, True, True]
