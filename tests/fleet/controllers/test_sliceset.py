"""Which slices are written where some pods of a service have changed, without a server."""

from __future__ import annotations

import json
from random import Random

import msgspec
import pytest

from harness.fleet.controllers.sliceset import MOST, Draft, SliceSet, Wanted, Writes, updated
from harness.fleet.controllers.views import WholeView, decode_whole
from tests.fleet.controllers.serverworld import Object

LABELS = {"l": "v"}
PORTS: list[Object] = [{"name": "", "port": 80, "protocol": "TCP"}]
KEY = msgspec.json.encode(PORTS)


def endpoint(uid: str, ready: bool = True) -> Object:
    return {"addresses": [uid], "conditions": {"ready": ready}, "targetRef": {"uid": uid}}


def wants(uid: str, ready: bool = True, ports: list[Object] = PORTS) -> Wanted:
    return Wanted(msgspec.json.encode(ports), ports, msgspec.Raw(json.dumps(endpoint(uid, ready)).encode()))


def wanted(first: int, count: int) -> dict[str, Wanted | None]:
    return {f"{index}": wants(f"{index}") for index in range(first, first + count)}


def seen(name: str, endpoints: list[Object], ports: list[Object] = PORTS, version: str = "1") -> WholeView:
    """A slice as the informer shows it."""
    metadata = {"name": name, "namespace": "m", "resourceVersion": version, "labels": LABELS}
    body = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}
    return decode_whole(json.dumps(body).encode())


def slice_of(name: str, first: int, count: int) -> WholeView:
    return seen(name, [endpoint(f"{index}") for index in range(first, first + count)])


class World:
    """A SliceSet and the slices that a server would have after its writes."""

    def __init__(self, *slices: WholeView) -> None:
        self.views = {each.name: each for each in slices}
        self.held = SliceSet()
        self.held.load(self.views)
        self.version = 1

    def sync(self, pods: dict[str, Wanted | None], labels: dict[str, str] = LABELS) -> Writes:
        writes = self.held.plan(self.views, pods, labels)
        for draft in [*writes.create, *writes.update]:
            self.write(draft)
        for each in writes.delete:
            self.held.drop(each.name)
            del self.views[each.name]
        return writes

    def write(self, draft: Draft) -> None:
        self.version += 1
        name = f"made-{self.version}" if draft.of is None else draft.of.name
        if draft.of is None:
            endpoints = json.loads(msgspec.json.encode(draft.endpoints))
            ports = draft.ports or []
        else:
            body = json.loads(msgspec.json.encode(updated(self.views[name], draft, LABELS)))
            endpoints, ports = body["endpoints"], body["ports"]
        self.views[name] = seen(name, endpoints, ports, f"{self.version}")
        self.held.wrote(draft, name, f"{self.version}", LABELS)

    def everything(self) -> dict[str, Wanted | None]:
        return dict.fromkeys(self.held.holder)

    def endpoints(self) -> dict[str, list[Object]]:
        return {name: json.loads(view.raw)["endpoints"] for name, view in self.views.items()}


@pytest.mark.parametrize(
    ("slices", "want", "made", "changed", "emptied"),
    [
        ([], wanted(0, 1), [1], {}, []),
        ([], wanted(0, MOST), [MOST], {}, []),
        ([], wanted(0, MOST + 1), [MOST, 1], {}, []),
        ([slice_of("a", 0, 3)], wanted(0, 3), [], {}, []),
        ([slice_of("a", 0, 3)], wanted(0, 4), [], {"a": 4}, []),
        ([slice_of("a", 0, 3)], wanted(0, 2), [], {"a": 2}, []),
        ([slice_of("a", 0, MOST)], wanted(0, MOST + 1), [1], {}, []),
        ([slice_of("a", 0, 99), slice_of("b", 99, 50)], wanted(0, 151), [], {"b": 52}, []),
        ([slice_of("a", 0, 99), slice_of("b", 99, 50)], wanted(0, 150), [], {"a": 100}, []),
        ([slice_of("a", 0, 3), slice_of("b", 3, 3)], wanted(3, 3), [], {}, ["a"]),
        ([slice_of("a", 0, 3), slice_of("b", 3, 3)], wanted(1, 6), [], {"a": 3}, []),
        ([slice_of("a", 0, 3)], wanted(3, 3), [], {"a": 3}, []),
    ],
    ids=[
        "first",
        "a whole one",
        "one more",
        "nothing to do",
        "one comes",
        "one goes",
        "full",
        "two into the one that has room for both",
        "one into the fullest",
        "emptied",
        "the changed one is filled",
        "all are others",
    ],
)
def test_which_slices_are_written(
    slices: list[WholeView],
    want: dict[str, Wanted | None],
    made: list[int],
    changed: dict[str, int],
    emptied: list[str],
) -> None:
    world = World(*slices)
    writes = world.sync({**world.everything(), **want})
    assert [len(each.uids) for each in writes.create] == made
    assert {each.of.name: len(each.uids) for each in writes.update if each.of is not None} == changed
    assert [each.name for each in writes.delete] == emptied
    held = [each["targetRef"]["uid"] for members in world.endpoints().values() for each in members]
    assert sorted(held) == sorted(want)


def test_one_pod_s_change_writes_its_slice_and_leaves_the_others_as_bytes() -> None:
    world = World(slice_of("a", 0, MOST), slice_of("b", MOST, MOST), slice_of("c", 2 * MOST, 5))
    (draft,) = world.sync({"150": wants("150", ready=False)}).update
    assert draft.of is not None
    assert draft.of.name == "b"
    assert [each["conditions"]["ready"] for each in world.endpoints()["b"]].count(False) == 1
    assert [each["addresses"] for each in world.endpoints()["b"]] == [[f"{n}"] for n in range(MOST, 2 * MOST)]


def test_an_endpoint_that_is_as_it_was_writes_nothing_however_its_keys_are_ordered() -> None:
    made = {"targetRef": {"uid": "0"}, "conditions": {"ready": True}, "addresses": ["0"]}
    world = World(seen("a", [made]))
    writes = world.sync({"0": wants("0"), "gone long ago": None})
    assert (writes.create, writes.update, writes.delete) == ([], [], [])


def test_a_service_without_pods_keeps_one_slice_that_is_empty() -> None:
    world = World()
    (made,) = world.sync({}).create
    assert (made.uids, made.ports) == ([], [])
    again = world.sync({})
    assert (again.create, again.update, again.delete) == ([], [], [])
    (filled,) = world.sync({"0": wants("0")}).update
    assert filled.ports == PORTS
    (emptied,) = world.sync({"0": None}).update
    assert (emptied.uids, emptied.ports) == ([], [])
    assert len(world.views) == 1


def test_the_empty_slice_of_a_relabelled_service_is_written_again() -> None:
    world = World()
    world.sync({})
    (draft,) = world.held.plan(world.views, {}, {"l": "w"}).update
    assert draft.of is not None


def test_other_labels_write_every_slice() -> None:
    world = World(slice_of("a", 0, 2), slice_of("b", 2, 2))
    writes = world.held.plan(world.views, {}, {"l": "w"})
    assert [len(draft.uids) for draft in writes.update] == [2, 2]


def test_a_pod_whose_ports_are_others_moves_to_another_slice() -> None:
    other: list[Object] = [{"name": "", "port": 81, "protocol": "TCP"}]
    world = World(slice_of("a", 0, 2))
    writes = world.sync({"1": wants("1", ports=other)})
    assert [draft.ports for draft in writes.create] == [other]
    assert {name: len(each) for name, each in world.endpoints().items()} == {"a": 1, "made-2": 1}


def test_what_stands_in_two_slices_or_speaks_for_no_pod_is_taken_out() -> None:
    nobody: Object = {"addresses": ["9.9.9.9"], "conditions": {}}
    world = World(slice_of("a", 0, 2), seen("b", [endpoint("1"), endpoint("2"), nobody]))
    world.sync(wanted(0, 3))
    assert [[each["addresses"][0] for each in members] for members in world.endpoints().values()] == [
        ["0", "1"],
        ["2"],
    ]


def test_it_knows_whether_the_informer_shows_what_was_written() -> None:
    world = World(slice_of("a", 0, 2))
    assert world.held.matches(world.views)
    assert not world.held.matches({})
    assert not world.held.matches({**world.views, "b": slice_of("b", 2, 1)})
    assert not world.held.matches({"a": seen("a", [], version="2")})
    assert world.held.version_of("a") == "1"
    assert world.held.version_of("b") > "9"


@pytest.mark.parametrize("seed", range(5))
def test_however_pods_come_and_go_each_is_in_one_slice_as_it_is(seed: int) -> None:
    """Beside a set that looks at everything each time: the same endpoints, and never more than fit."""
    rng = Random(seed)
    world = World()
    pods: dict[str, bool] = {}
    for _ in range(60):
        touched: dict[str, Wanted | None] = {}
        for _ in range(rng.randrange(1, 40)):
            uid = f"{rng.randrange(400)}"
            if uid in pods and rng.random() < 0.4:
                del pods[uid]
                touched[uid] = None
            else:
                pods[uid] = rng.random() < 0.5
                touched[uid] = wants(uid, pods[uid])
        world.sync(touched)
        found = [each for members in world.endpoints().values() for each in members]
        assert {each["targetRef"]["uid"]: each["conditions"]["ready"] for each in found} == pods
        assert len(found) == len(pods)
        assert max(len(members) for members in world.endpoints().values()) <= MOST
        whole = SliceSet()
        whole.load(world.views)
        every = whole.plan(world.views, {uid: wants(uid, ready) for uid, ready in pods.items()}, LABELS)
        assert (every.create, every.update, every.delete) == ([], [], [])
