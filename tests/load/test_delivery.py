"""A write and those who hear of it meet under one key, whichever process noted what first."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.client.delivery import binding_key, followed, revision_key
from harness.client.machine import Seen
from harness.load import delivery
from harness.load.delivery import (
    HELD_AT_MOST,
    SEEN_KEPT_S,
    WRITES_KEPT_S,
    Deliveries,
    DeliveryJoin,
    follow_one_of,
)
from harness.observe.histogram import bucket_of
from harness.wire.request import Request, Response


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def a_patch(name: str = "pods/status") -> Request:
    return Request("patch", "PATCH", "/api/v1/namespaces/t/pods/p/status", name)


def answer(version: str) -> Response:
    body = {"kind": "Pod", "metadata": {"name": "p", "uid": "u", "resourceVersion": version}}
    return Response(200, {}, msgspec.json.encode(body))


def seen(version: str, member: str = "member-1") -> Seen:
    return Seen(
        revision_key("pods", version), "watch_delivery_ms", (("member", member), ("resource", "pods"))
    )


def buckets(join: DeliveryJoin, **how: Any) -> dict[tuple[str, str], list[tuple[int, int]]]:
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for _, user, name, _, bucket, count in join.rows(0.0, **how):
        found.setdefault((user, name), []).append((bucket, count))
    return found


def test_latency_counts_from_the_answer_and_its_bound_from_the_sending(clock: Clock) -> None:
    notes = Deliveries(1, clock)
    notes.wrote(a_patch(), answer("7"), 0.004)  # sent 4 ms before
    clock.now += 0.010
    notes.seen("kubelet", seen("7"))
    join = DeliveryJoin(clock)
    join.take(notes.take())
    assert buckets(join) == {
        ("kubelet", "watch_delivery_ms"): [(bucket_of(10_000), 1)],
        ("kubelet", "watch_delivery_since_sent_ms"): [(bucket_of(14_000), 1)],
    }
    assert join.counts() == {"dropped": 0, "matched": 1}


def test_the_member_that_delivered_is_a_label(clock: Clock) -> None:
    notes = Deliveries(1, clock)
    notes.wrote(a_patch(), answer("7"), 0.0)
    notes.seen("kubelet", seen("7", "member-2"))
    join = DeliveryJoin(clock)
    join.take(notes.take())
    assert {row[3] for row in join.rows(0.0)} == {"member=member-2,resource=pods"}


def test_an_event_before_the_writers_answer_took_no_time(clock: Clock) -> None:
    notes = Deliveries(1, clock)
    clock.now += 0.001
    notes.seen("kubelet", seen("7"))
    clock.now += 0.001
    notes.wrote(a_patch(), answer("7"), 0.002)
    join = DeliveryJoin(clock)
    join.take(notes.take())
    found = buckets(join)
    assert found["kubelet", "watch_delivery_ms"] == [(0, 1)]
    assert found["kubelet", "watch_delivery_since_sent_ms"] == [(bucket_of(1000), 1)]


def test_an_event_of_an_earlier_write_is_not_that_of_one_that_changed_nothing(clock: Clock) -> None:
    notes = Deliveries(1, clock)
    notes.seen("kubelet", seen("7"))
    clock.now += 5.0
    notes.wrote(a_patch(), answer("7"), 0.002)  # answered with the revision that was there
    join = DeliveryJoin(clock)
    join.take(notes.take())
    assert buckets(join) == {}
    assert join.counts()["unmatched"] == 1


def test_a_sighting_waits_for_the_writers_report_and_not_for_ever(clock: Clock) -> None:
    writer, watcher, join = Deliveries(1, clock), Deliveries(1, clock), DeliveryJoin(clock)
    writer.wrote(a_patch(), answer("7"), 0.0)
    watcher.seen("kubelet", seen("7"))
    watcher.seen("kubelet", seen("8"))
    join.take(watcher.take())
    assert buckets(join) == {}
    join.take(writer.take())
    assert buckets(join)["kubelet", "watch_delivery_ms"] == [(0, 1)]
    clock.now += SEEN_KEPT_S
    assert buckets(join) == {}
    assert join.counts() == {"dropped": 0, "matched": 1, "unmatched": 1}


def test_at_the_end_nothing_is_waited_for(clock: Clock) -> None:
    notes, join = Deliveries(1, clock), DeliveryJoin(clock)
    notes.seen("kubelet", seen("8"))
    join.take(notes.take())
    assert buckets(join, last=True) == {}
    assert join.counts()["unmatched"] == 1


def test_writes_are_forgotten(clock: Clock) -> None:
    notes, join = Deliveries(1, clock), DeliveryJoin(clock)
    notes.wrote(a_patch(), answer("7"), 0.0)
    join.take(notes.take())
    clock.now += WRITES_KEPT_S
    join.rows(0.0)
    notes.seen("kubelet", seen("7"))
    join.take(notes.take())
    assert buckets(join, last=True) == {}


def test_a_binding_is_known_by_the_pods_uid(clock: Clock) -> None:
    notes, join = Deliveries(1, clock), DeliveryJoin(clock)
    body = b'{"kind":"Binding","metadata":{"name":"p","uid":"u-1"},"target":{"kind":"Node","name":"n"}}'
    request = Request("create", "POST", "/api/v1/namespaces/t/pods/p/binding", "pods/binding", body)
    notes.wrote(request, Response(201, {}, b'{"kind":"Status"}'), 0.0)
    clock.now += 0.5
    notes.seen("kubelet", Seen(binding_key("u-1"), "binding_heard_ms", (("member", "m"),)))
    join.take(notes.take())
    assert buckets(join)["kubelet", "binding_heard_ms"] == [(bucket_of(500_000), 1)]


@pytest.mark.parametrize(
    "request_",
    [
        Request("get", "GET", "/api/v1/nodes/n", "nodes"),
        Request("update", "PUT", "/x", "leases"),
        Request("create", "POST", "/x", "events"),
        Request("delete", "DELETE", "/x", "pods"),
    ],
)
def test_what_nobody_watches_or_is_no_write_is_not_noted(clock: Clock, request_: Request) -> None:
    notes = Deliveries(1, clock)
    notes.wrote(request_, answer("7"), 0.0)
    assert notes.take()["writes"] == []


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"k8s\x00broken", b'{"metadata":{}}'])
def test_an_answer_without_a_revision_is_not_noted(clock: Clock, body: bytes) -> None:
    notes = Deliveries(1, clock)
    notes.wrote(a_patch(), Response(200, {}, body), 0.0)
    assert notes.take()["writes"] == []


def test_nothing_is_noted_where_nothing_is_followed(clock: Clock) -> None:
    notes = Deliveries(0, clock)
    notes.wrote(a_patch(), answer("7"), 0.0)
    assert notes.take()["writes"] == []


def test_writer_and_watcher_follow_the_same_part(clock: Clock) -> None:
    notes = Deliveries(25, clock)
    for version in range(1000):
        notes.wrote(a_patch(), answer(str(version)), 0.0)
    keys = {write[0] for write in notes.take()["writes"]}
    assert keys == {revision_key("pods", str(v)) for v in range(1000) if followed(str(v), 25)}
    assert 15 <= len(keys) <= 80


def test_what_exceeds_a_report_is_counted(clock: Clock) -> None:
    notes, join = Deliveries(1, clock), DeliveryJoin(clock)
    for _ in range(HELD_AT_MOST + 3):
        notes.seen("kubelet", seen("8"))
    join.take(notes.take())
    join.rows(0.0, last=True)
    assert join.counts() == {"dropped": 3, "unmatched": HELD_AT_MOST}


def test_another_machines_clock_is_placed_by_its_fastest_report(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Clock()
    there.now = 5000.0  # another machine's monotonic time
    notes, join = Deliveries(1, there), DeliveryJoin(clock)
    monkeypatch.setattr(delivery, "machine_id", lambda: "there")
    slow = notes.take()
    notes.wrote(a_patch(), answer("7"), 0.0)
    there.now += 1.0
    clock.now += 1.0
    notes.seen("kubelet", seen("7"))
    fast = notes.take()
    monkeypatch.setattr(delivery, "machine_id", lambda: "here")
    clock.now += 0.001
    join.take(fast)
    clock.now += 3.0
    join.take(slow)  # was under way for 3 s more
    assert join.offsets_ms == {"there": pytest.approx(-4900_000 + 1, abs=1.5)}
    assert buckets(join)["kubelet", "watch_delivery_ms"] == [(bucket_of(1e6), 1)]


def test_a_larger_fleet_follows_a_smaller_part() -> None:
    assert [follow_one_of(n) for n in (1, 200, 201, 5000)] == [1, 1, 2, 25]
