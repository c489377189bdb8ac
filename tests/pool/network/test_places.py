"""Where links may be."""

from __future__ import annotations

import pytest

from harness.apiserver.faults.spec import parse_spec
from harness.pool.network.places import Parts, Place, parse_places, places_of
from harness.wire.errors import ConfigError

EMBEDDED = Parts(("member-0", "member-1"), store=True)
ETCD = Parts(("member-0", "member-1"), ("etcd-0", "etcd-1", "etcd-2"), balancer=True)


def names(texts: list[str], parts: Parts) -> list[str]:
    return [place.name for place in parse_places(texts, parts)]


def test_either_part_may_be_named_first() -> None:
    assert names(["member-1,clients", "clients , member-1"], EMBEDDED) == ["clients,member-1"]


def test_members_and_etcd_stand_for_all_of_them() -> None:
    assert names(["clients,members"], EMBEDDED) == ["clients,member-0", "clients,member-1"]
    assert names(["members,store"], EMBEDDED) == ["member-0,store", "member-1,store"]
    assert len(names(["etcd,members"], ETCD)) == 6
    assert names(["member-1,etcd"], ETCD) == ["member-1,etcd-0", "member-1,etcd-1", "member-1,etcd-2"]


def test_a_balancer_stands_between_clients_and_members() -> None:
    assert names(["clients,balancer", "balancer,members"], ETCD) == [
        "clients,balancer",
        "balancer,member-0",
        "balancer,member-1",
    ]
    with pytest.raises(ConfigError, match=r"no such link.*clients,balancer"):
        parse_places(["clients,member-0"], ETCD)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clients", "expected two parts"),
        ("clients,member-9", "no such link.*clients,member-0"),
        ("clients,etcd", "no such link"),
        ("member-0,member-1", "no such link"),
    ],
)
def test_what_is_no_place_is_one_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_places([text], EMBEDDED)


def test_faults_of_the_network_bring_their_places() -> None:
    specs = map(parse_spec, ["kill", "cut between=clients,members", "link between=member-0,store latency=1s"])
    assert places_of(specs) == ["clients,members", "member-0,store"]


def test_processes_are_what_can_be_ended() -> None:
    assert EMBEDDED.processes == ("member-0", "member-1", "store")
    assert ETCD.processes == ("member-0", "member-1", "etcd-0", "etcd-1", "etcd-2", "balancer")
    assert ETCD.others == ("etcd-0", "etcd-1", "etcd-2", "balancer", "network")
    assert Place("a", "b").name == "a,b"
