"""A member's etcd: what is charged to its host, what is counted, what becomes of it when the store goes."""

from __future__ import annotations

import pytest

from harness.apiserver.cache.cachedobject import encode_stored
from harness.apiserver.model.capacity import APISERVER, ETCD
from harness.apiserver.store.core import Compacted, StoreError, StoreEvent, StoreUnavailable, Txn
from harness.apiserver.store.storage import unavailable
from tests.apiserver.cache.world import ROWS, World, event, pod, secret

GONE = unavailable("connection refused")


class Sink:
    def __init__(self) -> None:
        self.revisions: list[int] = []
        self.progress: list[int] = []
        self.lost: list[StoreError] = []

    def on_event(self, event: StoreEvent) -> None:
        self.revisions.append(event.revision)

    def on_progress(self, revision: int) -> None:
        self.progress.append(revision)

    def on_lost(self, error: StoreError) -> None:
        self.lost.append(error)


def test_requests_are_counted_under_upstreams_names() -> None:
    world = World()
    storage = world.member.storage
    key = ROWS["leases"].key("ns", "l")
    storage.txn(Txn(key, b"1", 0))
    world.settle()
    storage.txn(Txn(key, b"2", 2))
    storage.txn(Txn(key, None, 3))
    storage.get(key)
    storage.range(ROWS["leases"], ROWS["leases"].prefix)
    storage.current_revision(ROWS["leases"])
    world.settle()
    family = world.member.metrics.etcd_requests_total
    assert {labels: cell.value for labels, cell in family.children.items()} == {
        (operation, "coordination.k8s.io", "leases"): 1
        for operation in ("create", "update", "delete", "get", "list", "getCurrentResourceVersion")
    }


def test_the_duration_of_a_request_is_from_the_call_to_the_answer() -> None:
    world = World(fsync_s=0.3, fsync_sigma=0.0)
    world.write(secret("a"), expected=0)
    world.settle(1.0)
    histogram = world.member.metrics.etcd_request_duration_seconds.labels("create", "", "secrets")
    assert (histogram.count, histogram.total) == (1, pytest.approx(0.3))


def test_reads_and_writes_cost_the_etcd_of_the_members_host() -> None:
    world = World(cores=1)
    costs, host = world.member.host.costs, world.member.host
    spent = []
    for ask in (
        lambda: world.write(secret("a")),
        lambda: world.member.storage.get(ROWS["secrets"].key("default", "a")),
        lambda: world.member.storage.current_revision(ROWS["secrets"]),
        lambda: world.member.storage.range(ROWS["secrets"], ROWS["secrets"].prefix),
    ):
        before = host.busy_of_s(ETCD)
        promise = ask()  # type: ignore[no-untyped-call]
        world.settle(1.0)
        assert promise.done
        spent.append((host.busy_of_s(ETCD) - before) * 1e6)
    assert spent == pytest.approx(
        [
            costs.replica_etcd_us,
            costs.get_consistent_etcd_us,
            costs.list_consistent_etcd_us,
            costs.list_consistent_etcd_us + costs.list_per_pod_etcd_us,
        ]
    )
    assert host.busy_of_s(APISERVER) == 0


def test_a_write_is_answered_when_the_members_own_host_has_applied_it() -> None:
    world = World(cores=1)
    world.member.host.charge(1e6, ETCD)
    promise = world.write(secret("a"))
    world.settle(0.9)
    assert not promise.done
    world.settle(1.2)
    assert promise.done


def test_a_busy_host_tells_the_store_how_far_its_etcd_is_behind_until_it_has_caught_up() -> None:
    world = World(members=3, cores=1, fsync_s=0.001, rtt_s=0.001)
    told: list[float] = []
    world.members[1].store.report_backlog = told.append  # type: ignore[method-assign]
    world.members[1].host.charge(0.2e6, ETCD)
    world.write(secret("a"))
    world.settle(1.0)
    assert told[0] > 0.19
    assert told[-1] == 0.0
    assert told == sorted(told, reverse=True)
    assert len(told) == pytest.approx(0.2 / 0.05 + 1, abs=1.5)


def test_watches_get_the_events_of_their_prefix() -> None:
    world = World()
    storage, secrets = world.member.storage, ROWS["secrets"]
    everything, namespace, key, other = Sink(), Sink(), Sink(), Sink()
    storage.watch(secrets, secrets.prefix, everything, 1)
    storage.watch(secrets, secrets.prefix + "x/", namespace, 1)
    storage.watch(secrets, secrets.key("x", "a"), key, 1)
    storage.watch(ROWS["pods"], ROWS["pods"].prefix, other, 1)
    for name, ns in (("a", "x"), ("b", "x"), ("a", "y")):
        world.put(secret(name, ns))
    assert everything.revisions == [2, 3, 4]
    assert namespace.revisions == [2, 3]
    assert key.revisions == [2]
    assert other.revisions == []


def test_keys_of_named_groups_and_of_resources_without_namespaces_find_their_watches() -> None:
    world = World()
    storage = world.member.storage
    leases, nodes, node = Sink(), Sink(), Sink()
    storage.watch(ROWS["leases"], ROWS["leases"].prefix + "ns/", leases, 1)
    storage.watch(ROWS["nodes"], ROWS["nodes"].prefix, nodes, 1)
    storage.watch(ROWS["nodes"], ROWS["nodes"].key(None, "n"), node, 1)
    world.member.storage.txn(Txn(ROWS["leases"].key("ns", "l"), b"{}"))
    world.member.storage.txn(Txn(ROWS["nodes"].key(None, "n"), b"{}"))
    world.settle()
    assert (leases.revisions, nodes.revisions, node.revisions) == ([2], [3], [3])


def test_a_watch_from_the_past_gets_history_first_and_nothing_twice() -> None:
    world = World()
    for _ in range(3):
        world.put(secret("a"))
    sink = Sink()
    world.member.storage.watch(ROWS["secrets"], ROWS["secrets"].prefix, sink, 2)
    for _ in range(2):
        world.put(secret("a"))
    assert sink.revisions == [3, 4, 5, 6]


def test_a_watch_from_a_compacted_revision_is_lost_at_once() -> None:
    world = World()
    for _ in range(3):
        world.put(secret("a"))
    world.core.compact(3)
    sink = Sink()
    world.member.storage.watch(ROWS["secrets"], ROWS["secrets"].prefix, sink, 2)
    world.settle()
    assert [type(error) for error in sink.lost] == [Compacted]
    world.put(secret("a"))
    assert sink.revisions == []


def test_progress_comes_behind_everything_that_has_arrived() -> None:
    world = World(cores=1)
    order: list[str] = []
    sink = Sink()
    sink.on_event = lambda event: order.append(f"event {event.revision}")  # type: ignore[method-assign]
    sink.on_progress = lambda revision: order.append(f"progress {revision}")  # type: ignore[method-assign]
    watch = world.member.storage.watch(ROWS["secrets"], ROWS["secrets"].prefix, sink, 1)
    world.write(secret("a"))
    world.write(pod("p"))
    world.settle()  # arrived, not applied
    watch.request_progress()
    world.settle(1.0)
    assert order == ["event 2", "progress 3"]


def test_previous_values_come_with_events_of_uncached_resources() -> None:
    world = World()
    found: list[bytes | None] = []
    sink = Sink()
    sink.on_event = lambda event: found.append(event.previous)  # type: ignore[method-assign]
    world.member.storage.watch(ROWS["events"], ROWS["events"].prefix, sink, 1)
    first = event("e", "One")
    world.put(first)
    world.put(event("e", "Two"))
    assert found == [None, encode_stored(first)]


def test_when_the_store_goes_watches_are_lost_and_every_request_fails_and_is_counted() -> None:
    world = World(fsync_s=1.0, fsync_sigma=0.0)
    member, sink = world.member, Sink()
    member.storage.watch(ROWS["secrets"], ROWS["secrets"].prefix, sink, 1)
    member.store.lose(GONE)
    world.settle()
    assert sink.lost == [GONE]
    assert member.storage.error is GONE
    with pytest.raises(StoreUnavailable, match="connection refused"):
        member.storage.get(ROWS["secrets"].key("x", "a")).result()
    assert member.value("etcd_request_errors_total", "get", "", "secrets") == 1
    late = Sink()
    member.storage.watch(ROWS["secrets"], ROWS["secrets"].prefix, late, 1)
    assert late.lost == [GONE]
