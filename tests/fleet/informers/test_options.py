"""What a crowd, a writer and a mix can be told, and what is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harness.client.requests import CONFIGMAPS, LEASES, ResourceRef
from harness.fleet.informers.listmix import ListKind, ListMix, broken_rule
from harness.fleet.informers.options import Crowd, WriterOptions, resource_of
from harness.wire.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("configmaps", CONFIGMAPS),
        ("leases.coordination.k8s.io", LEASES),
        ("deployments.v1.apps", ResourceRef("apps", "v1", "deployments")),
        ("things.v1beta2.example.com", ResourceRef("example.com", "v1beta2", "things")),
    ],
)
def test_resources_are_named_as_kubectl_names_them(text: str, ref: ResourceRef) -> None:
    assert resource_of(text, "x") == ref


@pytest.mark.parametrize("text", ["", "nosuch", "deployments.apps", ".v1.apps", "deployments.v1."])
def test_what_is_no_resource_is_refused(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^--informers: .* is neither a resource as deployments.v1.apps nor one of "
    ):
        resource_of(text, "--informers")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"count": 0}, "count=0: must be 1 or more"),
        ({"spread_s": -1.0}, "spread_s=-1: must be 0 or more"),
        ({"spread_s": float("nan")}, "spread_s=nan"),
        ({"spread_s": float("inf")}, "spread_s=inf"),
        ({"restart_every_s": 0.5}, "restart_every_s=0.5: 1 or more, or 0 for never"),
        ({"restart_share": 0.0}, "restart_share=0: must be above 0"),
        ({"restart_share": 1.5}, "restart_share=1.5"),
        ({"timeout_s": (5.0, 2.0)}, "timeout_s"),
        ({"qps": -1.0}, "qps=-1"),
        ({"resource": "nosuch"}, "resource: 'nosuch'"),
    ],
)
def test_crowds_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Crowd(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": -1.0}, "rate=-1: must be 0 or more"),
        ({"objects": -1}, "objects=-1"),
        ({"objects": 0}, "rate=10: nothing to write"),
        ({"namespaces": 0}, "namespaces=0"),
        ({"replace_share": 2.0}, "replace_share=2: must be 0 to 1"),
        ({"size": 1_000_000}, "900000 at most"),
    ],
)
def test_writers_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        WriterOptions(**options)


def test_several_requirements_of_a_selector_are_separated_by_semicolons() -> None:
    crowd = Crowd(selector="a=b;c!=d", fields="metadata.name=x;metadata.namespace=y")
    assert crowd.label_selector == "a=b,c!=d"
    assert crowd.field_selector == "metadata.name=x,metadata.namespace=y"


@pytest.mark.parametrize(
    ("mix", "key"),
    [
        (ListMix([]), "kinds"),
        (ListMix([ListKind("a", weight=0.0)]), "kinds"),
        (ListMix([ListKind("a")], clients=0), "clients"),
        (ListMix([ListKind("a")], rate=-1.0), "rate"),
        (ListMix([ListKind("a")], rate=float("nan")), "rate"),
        (ListMix([ListKind("a"), ListKind("a")]), "kinds[1].name"),
        (ListMix([ListKind("A b")]), "kinds[0].name"),
        (ListMix([ListKind("")]), "kinds[0].name"),
        (ListMix([ListKind("a", weight=-1.0)]), "kinds[0].weight"),
        (ListMix([ListKind("a", weight=float("inf"))]), "kinds[0].weight"),
        (ListMix([ListKind("a", limit=-1)]), "kinds[0].limit"),
        (ListMix([ListKind("a", pages=2)]), "kinds[0].pages"),
        (ListMix([ListKind("a", get=True, limit=5)]), "kinds[0].get"),
        (ListMix([ListKind("a", get=True, resource_version="exact")]), "kinds[0].resourceVersion"),
        (ListMix([ListKind("a", resource="nosuch")]), "kinds[0].resource"),
        (ListMix([ListKind("a", resource_version="exact", age_s=-1.0)]), "kinds[0].ageS"),
    ],
)
def test_mixes_that_cannot_be_are_refused_with_the_key(mix: ListMix, key: str) -> None:
    broken = broken_rule(mix)
    assert broken is not None
    assert broken[0] == key


def test_kinds_are_drawn_by_weight() -> None:
    mix = ListMix([ListKind("a", weight=3.0), ListKind("b", weight=1.0), ListKind("c", weight=0.0)])
    assert broken_rule(mix) is None
    rng = Random(1)
    drawn = [mix.draw(rng).name for _ in range(4000)]
    assert drawn.count("c") == 0
    assert 2850 < drawn.count("a") < 3150
