"""What a kubelet reads of a pod."""

from __future__ import annotations

import msgspec
import pytest

from harness.fleet.options import KubeletOptions
from harness.fleet.pods import decode_pod
from harness.wire.errors import ConfigError
from tests.fleet.builders import pod


def held(**options: object):
    obj = pod("p", "n1", **options)
    obj["metadata"].update(namespace="t", uid="u", resourceVersion="7")
    return obj


def test_every_object_that_a_pod_refers_to_is_found_once() -> None:
    obj = held(secrets=("s0", "s0"), configmaps=("c0",), env_secret="s1")
    obj["spec"]["imagePullSecrets"] = [{"name": "pull"}]
    obj["spec"]["initContainers"] = [{"name": "i", "envFrom": [{"configMapRef": {"name": "c1"}}]}]
    plan = decode_pod(msgspec.json.encode(obj)).plan
    assert sorted(plan.refs) == [
        ("configmaps", "t", "c0"),
        ("configmaps", "t", "c1"),
        ("configmaps", "t", "kube-root-ca.crt"),
        ("secrets", "t", "pull"),
        ("secrets", "t", "s0"),
        ("secrets", "t", "s1"),
    ]


def test_volumes_that_need_no_server_are_left_out() -> None:
    obj = held(token=False)
    obj["spec"]["volumes"] = [{"name": "e", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/"}}]
    assert decode_pod(msgspec.json.encode(obj)).plan.volumes == ()


def test_replicas_share_one_plan() -> None:
    one, other = held(secrets=("s0",)), held(secrets=("s0",))
    other["metadata"]["name"] = "q"
    other["spec"]["volumes"][-1] = {**other["spec"]["volumes"][-1], "name": "kube-api-access-other"}
    first, second = (decode_pod(msgspec.json.encode(each)) for each in (one, other))
    assert first.plan is second.plan
    assert first.volume_names != second.volume_names


def test_the_grace_period_is_the_deletions_once_there_is_one() -> None:
    obj = held(grace_s=30)
    assert (decode_pod(msgspec.json.encode(obj)).deleted, decode_pod(msgspec.json.encode(obj)).grace_s) == (
        False,
        30,
    )
    obj["metadata"].update(deletionTimestamp="2027-01-01T00:00:00Z", deletionGracePeriodSeconds=0)
    assert (decode_pod(msgspec.json.encode(obj)).deleted, decode_pod(msgspec.json.encode(obj)).grace_s) == (
        True,
        0,
    )


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"metadata":{}}', b'{"metadata":{"name":1,"uid":"u"}}'])
def test_what_is_no_pod_is_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_pod(raw)


@pytest.mark.parametrize(
    ("option", "value"), [("qps", 0.0), ("start_delay_s", (2.0, 1.0)), ("stop_delay_s", (-1.0, 1.0))]
)
def test_an_impossible_option_is_named(option: str, value: object) -> None:
    with pytest.raises(ConfigError, match=option):
        KubeletOptions(**{option: value})  # type: ignore[arg-type]
