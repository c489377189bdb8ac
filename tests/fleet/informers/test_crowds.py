"""Whole crowds against emulated members in virtual time: what is right is found right, what is planted is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.apiserver.faults.kinds import CorruptCache
from harness.apiserver.featuregates import FeatureGates
from harness.fleet.informers.listmix import ListKind, ListMix
from harness.fleet.informers.options import Crowd, WriterOptions
from tests.fleet.informers.crowds import Play

WRITER = WriterOptions(objects=60, rate=20.0, namespaces=2, size=40)
MIX = ListMix(
    [
        ListKind("consistent"),
        ListKind("cached", resource_version="0"),
        ListKind("paged", limit=7),
        ListKind("exact", resource_version="exact", age_s=1.0, limit=20),
        ListKind("selected", label_selector="shard=3"),
        ListKind("first-page", limit=10, pages=1),
        ListKind("get", get=True, resource_version="0"),
    ],
    rate=20.0,
)

Make = Callable[..., Play]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Play] = []

    def start(writer: WriterOptions = WRITER, **options: Any) -> Play:
        made.append(Play(writer, **options))
        return made[-1]

    yield start
    for play in made:
        play.close()


@pytest.mark.parametrize(("mode", "snapshots"), [("watch-list", True), ("list", False)])
def test_storms_lists_and_churn_on_three_members_are_found_right(
    make: Make, mode: Any, snapshots: bool
) -> None:
    play = make(members=3, feature_gates=FeatureGates(list_from_cache_snapshot=snapshots))
    play.informers(Crowd(count=5, mode=mode, restart_every_s=2.0, restart_share=0.5, relist_every_s=1.5))
    play.informers(Crowd(count=2, mode=mode, selector="shard=3", spread_s=2.0, resync_s=1.0))
    play.go()
    play.lister(MIX)
    play.run(5.0)
    checked = play.end()
    assert play.violations == []
    assert (checked["undecided"], checked["unsynced"], checked["failed"]) == (0, 0, 0)
    assert checked["compared"] > 30
    assert checked["lists"] > 30
    assert not play.heard.of("list_failed")
    assert play.tally.restarts > 3
    assert play.tally.resynced > 0
    firsts = [sample for sample in play.heard.of("informer_sync_ms") if ("start", "first") in sample.labels]
    assert len(firsts) == 7


def test_each_kind_of_a_mix_is_measured(make: Make) -> None:
    play = make()
    play.go()
    play.lister(MIX)
    play.run(10.0)
    measured = {dict(sample.labels)["kind"] for sample in play.heard.of("list_ms")}
    assert measured == {kind.name for kind in MIX.kinds}
    whole = [s.value for s in play.heard.of("list_objects") if ("kind", "paged") in s.labels]
    assert all(59 <= value <= 60 for value in whole)
    paths = [call.request.path for call, _ in play.heard.answers if call.kind == "lister"]
    assert any("resourceVersionMatch=Exact" in path for path in paths)
    assert not any("continue=" in path and "resourceVersion=" in path for path in paths)


def test_writes_are_followed_to_the_informers(make: Make) -> None:
    play = make()
    play.informers(Crowd(count=2))
    play.go()
    play.run(5.0)
    assert play.tally.events > 100
    assert play.tally.bytes > play.tally.objects * 300


def test_informers_that_speak_protobuf_are_told_the_same(make: Make) -> None:
    play = make(protobuf_answers=True)
    play.informers(Crowd(count=1))
    play.informers(Crowd(count=2, content_type="protobuf"))
    play.informers(Crowd(count=1, content_type="protobuf", mode="list"))
    play.go()
    play.run(3.0)
    assert play.end()["compared"] == 5
    assert play.violations == []


# ---- planted ---------------------------------------------------------------------------------------------------------
def tampering(what: str) -> Callable[[bytes], list[bytes]]:
    """Once, behind the first state: of two events the first is dropped, doubled, or told last."""
    held: list[bytes] = []
    done: list[bool] = []

    def change(data: bytes) -> list[bytes]:
        if done or b'"type":"MODIFIED"' not in data:
            return [data]
        if what == "lost":
            done.append(True)
            return []
        if what == "duplicated":
            done.append(True)
            return [data, data]
        held.append(data)
        if len(held) < 2:
            return []
        done.append(True)
        return [held[1], held[0]]

    return change


@pytest.mark.parametrize("what", ["lost", "duplicated", "reordered"])
def test_what_is_done_to_one_informers_stream_is_found(make: Make, what: str) -> None:
    play = make()
    play.informers(Crowd(count=2))
    play.informers(Crowd(count=1), tampering(what))
    play.go()
    play.run(5.0)
    play.end()
    assert play.violations == [(what, "informer-2")]


@pytest.mark.parametrize("how", ["drop", "alter", "stale"])
def test_a_spoilt_watch_cache_is_found(make: Make, how: Any) -> None:
    play = make(WriterOptions(objects=60, rate=1.0, size=40, replace_share=0.0))
    play.informers(Crowd(count=3))
    play.go()
    play.run(2.0)
    play.pool.member.faults.begin(CorruptCache(resource="configmaps", how=how))
    checked = play.end()
    assert checked["violations"] > 0
    assert {kind for kind, _ in play.violations} == {"differs"}


def test_an_informer_that_began_with_a_spoilt_cache_is_found_by_those_of_another_member(make: Make) -> None:
    play = make(WriterOptions(objects=60, rate=0.0, size=40), members=2)
    play.informers(Crowd(count=2), member=0)
    play.pool.members[1].faults.begin(CorruptCache(resource="configmaps", how="drop"))
    play.informers(Crowd(count=1), member=1)
    play.go()
    play.run(1.0)
    play.end()
    assert ("differs", "informer-2") in play.violations
