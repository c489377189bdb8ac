"""The options of informers and the file of a list mix: what arrives, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.fleet.informers.listmix import ListKind
from harness.fleet.informers.options import Crowd, WriterOptions
from harness.load.informerarguments import read_mix
from harness.load.informerplan import InformerPlan
from harness.load.informerrun import NODES_ALONE, fit
from harness.load.informerusers import InformerUser, ListUser, WriterUser
from harness.load.plan import Plan, Target, decode, encode
from harness.load.users import ClusterLoaderUser, KubeletUser
from harness.observe.environment import share
from harness.wire.errors import ConfigError
from tests.load.test_arguments import Parser, add_arguments, options_from, parse


class Informer(InformerUser):
    """As a locustfile has it."""


class Lister(ListUser):
    """As a locustfile has it."""


class Writer(WriterUser):
    """As a locustfile has it."""


class Kubelet(KubeletUser):
    """As a locustfile has it."""


class ClusterLoader(ClusterLoaderUser):
    """As a locustfile has it."""


ALONE = [Informer, Lister, Writer]


def fitted(*arguments: str, classes: list[Any] | None = None) -> tuple[Any, list[Any]]:
    """Options by the users that there are, and these."""
    parser = Parser()
    add_arguments(parser)
    parsed = parser.parse_args(arguments)
    users = list(ALONE if classes is None else classes)
    environment = SimpleNamespace(user_classes=users, parsed_options=parsed)
    return fit(environment, options_from(parsed)), users


def test_no_argument_is_needed() -> None:
    assert parse().informers == InformerPlan((Crowd(),), None, WriterOptions())


def test_what_is_given_arrives() -> None:
    options = parse(
        *("--informers", "count=200,selector=shard=3,restart_every_s=60,timeout_s=30:60"),
        *("--informers", "resource=pods,mode=list"),
        *("--writer", "objects=10000,rate=50,size=1000", "--audit-every", "5"),
        *("--lists", str(share("locustfiles") / "lists.yaml")),
    )
    plan = options.informers
    assert plan.crowds == (
        Crowd(count=200, selector="shard=3", restart_every_s=60.0, timeout_s=(30.0, 60.0)),
        Crowd(resource="pods", mode="list"),
    )
    assert plan.writer == WriterOptions(objects=10_000, rate=50.0, size=1000)
    assert (plan.informers, plan.listers, plan.audit_every_s) == (220, 4, 5.0)
    assert [str(ref) for ref in plan.resources] == ["configmaps", "pods"]


def test_a_plan_with_informers_reaches_workers() -> None:
    plan = Plan(1, 0, Target(()), informers=parse("--informers", "count=7").informers)
    assert decode(encode(plan)) == plan


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--informers", "count=0"), "informers option count=0: must be 1 or more"),
        (("--informers", "count=many"), "--informers count=many: expected `int`, got `str`"),
        (
            ("--informers", "cuont=5"),
            "--informers cuont=5: there is no option 'cuont' of a crowd; did you mean count?",
        ),
        (("--informers", "count"), "--informers count: a value is missing, as in count=..."),
        (("--informers", "mode=push"), "--informers mode=push: allowed are watch-list, list"),
        (("--writer", "rate=-5"), "writer option rate=-5: must be 0 or more"),
        (("--writer", "rate=fast"), "--writer rate=fast: expected `float`, got `str`"),
        (("--audit-every", "-1"), "--audit-every -1: 0 or more seconds are needed"),
    ],
)
def test_bad_options_are_one_line(arguments: tuple[str, ...], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(*arguments)
    assert str(caught.value) == line
    assert caught.value.exit_code == 2


# ---- the mix ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "mix.yaml: an empty mix asks for nothing; kinds are needed (docs/informers.md)"),
        ("- a\n", "mix.yaml: an empty mix asks for nothing; kinds are needed (docs/informers.md)"),
        ("clients: 2\n", "mix.yaml: the document: object missing required field `kinds`"),
        ("kinds: []\n", "mix.yaml:1: kinds: []: an empty mix asks for nothing; at least one kind is needed"),
        (
            "kinds:\n- {name: a}\n- name: b\n  weight: heavy\n",
            "mix.yaml:4: kinds[1].weight: expected `float`, got `str` ('heavy')",
        ),
        (
            "kinds:\n- name: a\n  weight: -1\n",
            "mix.yaml:3: kinds[0].weight: -1.0: must be 0 or more",
        ),
        (
            "kinds:\n- name: a\n  wieght: 1\n",
            "mix.yaml:3: kinds[0].wieght: no such key; did you mean weight?",
        ),
        ("kinds:\n- name: a\n  colour: red\n", "mix.yaml:3: kinds[0].colour: no such key"),
        (
            "rate: -2\nkinds: [{name: a}]\n",
            "mix.yaml:1: rate: -2.0: must be 0 or more",
        ),
        (
            'kinds:\n- {name: a, resourceVersion: "7"}\n',
            "mix.yaml:2: kinds[0].resourceVersion: invalid enum value '7'",
        ),
        ("kinds: [\n", "mix.yaml:2: is not YAML: "),
    ],
)
def test_a_bad_mix_is_one_line_with_file_line_and_value(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "mix.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_mix(path)
    said = str(caught.value).replace(f"{tmp_path}/", "")
    assert said.startswith(line) if line.endswith(": ") else said == line
    assert caught.value.exit_code == 2


def test_a_mix_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nosuch.yaml: cannot be read: No such file"):
        read_mix(tmp_path / "nosuch.yaml")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="bytes: is not UTF-8 text"):
        read_mix(tmp_path / "bytes")


def test_our_own_mix_is_one() -> None:
    mix = read_mix(share("locustfiles") / "lists.yaml")
    assert ListKind("exact", 2.0, resource_version="exact", limit=500) in mix.kinds


# ---- the users of a locustfile ---------------------------------------------------------------------------------------
def test_users_are_as_many_as_the_options_say() -> None:
    options, users = fitted("--informers", "count=30", "--informers", "count=12")
    assert users == [Informer, Writer]  # no lists were asked for
    assert Informer.fixed_count == 42
    assert (options.kubelets, options.scenario, options.pool.nodes) == (0, "", NODES_ALONE)


def test_without_kubelets_u_is_what_the_control_plane_is_sized_for() -> None:
    options, _ = fitted("-u", "100")
    assert (options.kubelets, options.pool.nodes) == (0, 100)


def test_lists_bring_their_clients(tmp_path: Path) -> None:
    path = tmp_path / "mix.yaml"
    path.write_text("clients: 3\nkinds: [{name: a}]\n")
    _, users = fitted("--lists", str(path))
    assert users == ALONE
    assert Lister.fixed_count == 3


def test_beside_kubelets_these_and_their_scenario_stay() -> None:
    options, users = fitted("-u", "7", classes=[Kubelet, ClusterLoader, *ALONE])
    assert (options.kubelets, options.pool.nodes) == (7, 7)
    assert options.scenario.endswith("density.yaml")
    assert users == [Kubelet, ClusterLoader, Informer, Writer]


@pytest.mark.parametrize("flag", ["--informers", "--writer"])
def test_options_of_informers_need_a_locustfile_that_has_them(flag: str) -> None:
    with pytest.raises(ConfigError, match="no user of this locustfile is an informer"):
        fitted(flag, "", classes=[Kubelet])
    options, users = fitted(classes=[Kubelet])
    assert (options.kubelets, users) == (20, [Kubelet])


# ---- shares ----------------------------------------------------------------------------------------------------------
def test_every_crowd_has_its_count_over_all_processes() -> None:
    plan = InformerPlan((Crowd(count=100), Crowd(count=1), Crowd(count=4)))
    shares = plan.shares({"a": 40, "b": 35, "c": 30})
    assert {name: len(crowds) for name, crowds in shares.items()} == {"a": 40, "b": 35, "c": 30}
    crowds = [crowd for each in shares.values() for crowd in each]
    assert [crowds.count(number) for number in range(3)] == [100, 1, 4]


def test_more_informers_than_places_are_left_out() -> None:
    assert InformerPlan((Crowd(count=5),)).shares({"a": 2}) == {"a": [0, 0]}
    assert InformerPlan((Crowd(count=5),)).shares({}) == {}
