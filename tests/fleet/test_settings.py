"""What a user may tell a fleet, and what happens when it is mistyped."""

from __future__ import annotations

from random import Random

import pytest

from harness.fleet.options import KubeletOptions
from harness.fleet.settings import parse_settings
from harness.wire.errors import ConfigError
from tests.fleet.builders import add_kubelet
from tests.fleet.fakeapi import World


def test_values_have_the_types_of_their_options() -> None:
    texts = [
        "kube_proxy=true,watch_list=false, qps=10,burst=20",
        "start_delay_s=0.5:2",
        "stop_delay_s=1",
        "labels=zone=a;tier=b",
        "content-type=json",
    ]
    assert parse_settings(texts) == {
        "kube_proxy": True,
        "watch_list": False,
        "qps": 10.0,
        "burst": 20,
        "start_delay_s": (0.5, 2.0),
        "stop_delay_s": (1.0, 1.0),
        "labels": (("zone", "a"), ("tier", "b")),
        "content_type": "json",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kube_prox=true", "there is no option 'kube_prox' of a kubelet; did you mean kube_proxy?"),
        ("xyz=1", "there is no option 'xyz' of a kubelet"),
        ("qps", "--fleet qps: a value is missing"),
        ("qps=many", "--fleet qps=many: expected `float`"),
        ("burst=1.5", "--fleet burst=1.5: expected `int`"),
        ("kube_proxy=perhaps", "--fleet kube_proxy=perhaps: expected `bool`"),
        ("start_delay_s=2:1", "must be two seconds, 0 <= low <= high"),
        ("start_delay_s=:", "--fleet start_delay_s=:: expected `float`"),
        ("qps=0", "kubelet option qps=0.0 must be above 0"),
        ("content_type=yaml", "--fleet content_type=yaml: allowed are auto, protobuf, json"),
        ("start_jitter=often", "--fleet start_jitter=often: allowed are none, uniform, exponential"),
    ],
)
def test_a_mistake_is_told_with_what_is_allowed(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=None) as caught:
        parse_settings([text])
    assert says.lower() in str(caught.value).lower()


@pytest.mark.parametrize("text", ["start_jitter=often", "start_jitter_s=-1"])
def test_a_jitter_that_cannot_be_drawn_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_settings([text])


def draws(**options: object) -> list[float]:
    rng = Random(1)
    made = KubeletOptions(**options)  # type: ignore[arg-type]
    return [made.draw_start_s(rng) for _ in range(4000)]


def test_the_start_is_spread_as_asked_for() -> None:
    assert set(draws()) == {0.0}
    assert set(draws(start_jitter="none", start_jitter_s=5.0)) == {0.0}
    uniform = draws(start_jitter_s=10.0)
    assert 0.0 <= min(uniform) < 0.1
    assert 9.9 < max(uniform) < 10.0
    exponential = draws(start_jitter="exponential", start_jitter_s=10.0)
    assert 9.0 < sum(exponential) / len(exponential) < 11.0
    assert max(exponential) > 50.0


def test_a_kubelet_that_starts_later_sends_nothing_before() -> None:
    world = World()
    add_kubelet(world, events=False, start_jitter_s=20.0)
    world.run(60.0)
    first = world.log[0].at
    assert 0.0 < first < 20.0
    assert world.requests("create nodes")[0].at == pytest.approx(first + 0.1)
