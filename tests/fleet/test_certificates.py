"""Renewing a client certificate, and what closes a kubelet's connections."""

from __future__ import annotations

import itertools
from base64 import b64decode, b64encode
from random import Random
from typing import Any

import msgspec
import pytest

from harness.fleet.certificates import RotationState
from harness.fleet.kubelet import Kubelet
from harness.fleet.options import KubeletOptions
from harness.wire.errors import ConfigError
from harness.wire.request import Failure, TransportError
from tests.fleet.builders import OwnOne, add_kubelet
from tests.fleet.fakeapi import EPOCH_S, Logged, Refusal, World, status_body

LIFE_S = 1000.0


def with_certificate(**options: Any) -> tuple[World, Kubelet]:
    world = World()
    options = {"events": False, **options}
    kubelet = Kubelet("n1", KubeletOptions(**options), Random(1), EPOCH_S, certificate=OwnOne(LIFE_S))
    world.add(kubelet)
    return world, kubelet


def signed(begins_s: float, ends_s: float) -> dict[str, Any]:
    """The status of a request whose certificate lives from then till then, of the world's time."""
    return approved(b"%f %f" % (begins_s, ends_s))


def approved(certificate: bytes) -> dict[str, Any]:
    encoded = b64encode(certificate).decode()
    return {"status": {"conditions": [{"type": "Approved"}], "certificate": encoded}}


def of_requests(world: World) -> list[str]:
    return [each.line for each in world.log if each.info.resource == "certificatesigningrequests"]


def name_of(world: World) -> str:
    return str(world.requests("list certificatesigningrequests")[-1].info.query["fieldSelector"]).partition(
        "="
    )[2]


def asked(world: World) -> None:
    world.run_until(lambda: "watch certificatesigningrequests" in of_requests(world), limit_s=LIFE_S)


def wait_for_requests(world: World, count: int) -> None:
    world.run_until(lambda: len(world.requests("create certificatesigningrequests")) == count)


def test_it_is_asked_for_at_seventy_to_ninety_percent_of_the_old_ones_life() -> None:
    world, _ = with_certificate()
    asked(world)
    created = world.requests("create certificatesigningrequests")[0]
    assert 700.0 <= created.at <= 900.0
    assert of_requests(world) == [
        "create certificatesigningrequests",
        "list certificatesigningrequests",
        "watch certificatesigningrequests",
    ]
    body = msgspec.json.decode(created.request.body)
    assert b64decode(body["spec"]["request"]) == b"-----BEGIN 0"
    assert body["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
    assert body["spec"]["usages"] == ["digital signature", "client auth"]
    assert created.request.client == "certificate"
    assert body["metadata"] == {"generateName": "csr-"}
    assert "expirationSeconds" not in body["spec"], "a kubelet leaves it to the cluster"


def test_it_carries_the_labels_of_the_node_and_the_life_that_was_asked_for() -> None:
    world, _ = with_certificate(labels=(("run", "r1"),), certificate_life_s=700)
    asked(world)
    body = msgspec.json.decode(world.requests("create certificatesigningrequests")[0].request.body)
    assert body["metadata"]["labels"] == {"run": "r1"}
    assert body["spec"]["expirationSeconds"] == 700


@pytest.mark.parametrize(("seconds", "good"), [(0, True), (600, True), (599, False), (-1, False)])
def test_no_life_is_asked_for_that_the_api_refuses(seconds: int, good: bool) -> None:
    if good:
        assert KubeletOptions(certificate_life_s=seconds).certificate_life_s == seconds
        return
    with pytest.raises(ConfigError, match=f"certificate_life_s={seconds}: at least 600, or 0"):
        KubeletOptions(certificate_life_s=seconds)


def test_a_new_certificate_closes_all_connections_at_the_next_look_and_every_watch_begins_anew() -> None:
    world, kubelet = with_certificate()
    asked(world)
    begins = world.now
    world.change("certificatesigningrequests", "", name_of(world), signed(begins, begins + LIFE_S))
    world.run(world.now + 0.01)
    assert len(world.certificates) == 1
    assert world.closings == []
    (took,) = [each.value for each in world.samples if each.name == "certificate_signing_ms"]
    assert took == pytest.approx(6.0)  # two answers and an event, 2 ms each
    heard = world.now
    world.run(heard + 10.5)
    (closed, why), *more = world.closings
    assert (why, more) == ("new certificate", [])
    assert closed - heard <= 10.0
    assert closed == pytest.approx(round(closed, -1))  # each 10 s since the kubelet's start
    again = [each for each in world.log if each.at >= closed and each.info.verb == "watch"]
    assert len(again) == len(world.watches) == 5
    assert "certificatesigningrequests" not in {each.info.resource for each in again}
    asked_again = world.run_until(
        lambda: len(world.requests("create certificatesigningrequests")) == 2, limit_s=LIFE_S
    )
    assert 700.0 <= asked_again - begins <= 900.0
    kubelet.validate()


def test_a_life_counts_from_the_certificates_own_beginning() -> None:
    """As the signer of Kubernetes makes one of ten minutes: begun 5 min ago, it is due 330 to 510 s from now."""
    world, _ = with_certificate()
    asked(world)
    now = world.now
    world.change("certificatesigningrequests", "", name_of(world), signed(now - 300.0, now + 600.0))
    again = world.run_until(lambda: len(world.requests("create certificatesigningrequests")) == 2)
    assert 330.0 <= again - now <= 510.0


def test_one_that_is_due_when_it_is_new_is_renewed_after_a_second_each() -> None:
    world, _ = with_certificate()
    asked(world)
    for count in (2, 3):
        now = world.now
        world.change("certificatesigningrequests", "", name_of(world), signed(now - 300.0, now + 10.0))
        wait_for_requests(world, count)
        assert world.now - now == pytest.approx(1.0, abs=0.05)
        world.run_until(lambda: of_requests(world)[-1].startswith("watch"))
    assert len(world.certificates) == 2


def test_a_certificate_that_is_none_is_asked_for_again() -> None:
    for rubbish in (b"no certificate", b""):
        world, _ = with_certificate()
        asked(world)
        status = (
            approved(rubbish) if rubbish else {"status": {**approved(b"x")["status"], "certificate": "?"}}
        )
        world.change("certificatesigningrequests", "", name_of(world), status)
        wait_for_requests(world, 2)
        assert world.certificates == []
        assert [each.labels for each in world.samples if each.name == "kubelet_certificates_failed"] == [
            (("why", "unreadable"),)
        ]


def test_what_is_not_signed_within_fifteen_minutes_is_asked_for_again() -> None:
    world, _ = with_certificate()
    asked(world)
    first = world.requests("create certificatesigningrequests")[0].at
    world.run_until(lambda: len(world.requests("create certificatesigningrequests")) == 2, limit_s=1000)
    assert world.now - first == pytest.approx(900 + 2, abs=0.3)
    samples = [each for each in world.samples if each.name == "kubelet_certificates_failed"]
    assert [each.labels for each in samples] == [(("why", "not signed"),)]


@pytest.mark.parametrize("verdict", ["Denied", "Failed"])
def test_a_request_that_was_denied_is_made_anew(verdict: str) -> None:
    world, _ = with_certificate()
    asked(world)
    name = name_of(world)
    world.change("certificatesigningrequests", "", name, {"status": {"conditions": [{"type": verdict}]}})
    began = world.now
    world.run_until(lambda: len(world.requests("create certificatesigningrequests")) == 2)
    assert 2.0 <= world.now - began <= 2.3


@pytest.mark.parametrize(
    "refusal", [(403, status_body(403, "Forbidden", "no")), TransportError(Failure.RESET, "gone")]
)
def test_requests_that_fail_are_repeated_after_two_seconds_doubled_and_then_each_thirty_two(
    refusal: Refusal,
) -> None:
    world, kubelet = with_certificate()

    def refuse(logged: Logged) -> Refusal:
        return refusal if logged.line == "create certificatesigningrequests" else None

    world.refuse = refuse
    world.run_until(lambda: len(world.requests("create certificatesigningrequests")) == 7, limit_s=2000)
    times = [each.at for each in world.requests("create certificatesigningrequests")]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    for gap, low in zip(gaps, (2.0, 4.0, 8.0, 16.0, 32.0, 32.0), strict=True):
        assert low <= gap <= low * 1.1 + 0.01
    world.stop(0)
    assert kubelet._certificates is not None
    assert kubelet._certificates.state is RotationState.OFF


def test_a_kubelet_whose_certificates_are_not_rotated_never_asks() -> None:
    world, _ = with_certificate(rotate_certificates=False)
    world.run(2 * LIFE_S)
    assert of_requests(world) == []


# ---- failing heartbeats ----------------------------------------------------------------------------------------------
def failing(world: World, line: str, refusal: Refusal, since: float) -> None:
    def refuse(logged: Logged) -> Refusal:
        return refusal if logged.line == line and logged.at >= since else None

    world.refuse = refuse


@pytest.mark.parametrize("line", ["update leases", "patch nodes/status"])
def test_the_second_failure_of_a_heartbeat_in_a_row_closes_all_connections_where_asked_for(line: str) -> None:
    world = World()
    add_kubelet(world, events=False, close_on_heartbeat_failure=True, status_report_s=10.0)
    world.run(30.0)
    failing(world, line, TransportError(Failure.TIMEOUT, "10 s"), 30.0)
    world.run_until(lambda: len(world.closings) == 1)
    assert len(world.requests(line, since=30.0)) <= 3  # the third try may go out at that very moment
    assert world.closings[0][1] == "heartbeat failed"


def test_a_kubelet_that_speaks_http2_leaves_its_connections_alone() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(30.0)
    failing(world, "update leases", TransportError(Failure.TIMEOUT, "10 s"), 30.0)
    world.run(80.0)
    assert world.closings == []


def test_a_lease_that_someone_else_wrote_is_no_failure_of_the_connection() -> None:
    world = World()
    add_kubelet(world, events=False, close_on_heartbeat_failure=True)
    world.run(30.0)
    failing(world, "update leases", (409, status_body(409, "Conflict", "newer")), 30.0)
    world.run(80.0)
    assert world.closings == []
