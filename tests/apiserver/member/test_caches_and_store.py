"""What a client sees of snapshots, consistency checks and the events' time to live, over a whole member."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from fakemember import Server

from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.featuregates import FeatureGates

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"


@pytest.fixture(params=[True, False], ids=["snapshots", "no snapshots"])
def either(request: Any) -> Iterator[Server]:
    server = Server(feature_gates=FeatureGates(list_from_cache_snapshot=request.param))
    yield server
    server.close()


def cacher(server: Server, resource: str) -> Cacher:
    source = server.member._sources[resource]
    assert isinstance(source, Cacher)
    return source


def create(server: Server, name: str) -> None:
    answer = server.ask("POST", CONFIGMAPS, {"metadata": {"name": name}})
    assert answer.status == 201, answer.data


def names(answer: Any) -> list[str]:
    assert answer.status == 200, answer.data
    return [item["metadata"]["name"] for item in answer.json["items"]]


def test_pages_are_of_one_revision_and_the_gate_decides_from_where(either: Server) -> None:
    for name in "abcde":
        create(either, name)
    first = either.ask("GET", f"{CONFIGMAPS}?limit=2")
    assert names(first) == ["a", "b"]
    create(either, "bb")
    either.ask("DELETE", f"{CONFIGMAPS}/d")
    token = first.json["metadata"]["continue"]
    second = either.ask("GET", f"{CONFIGMAPS}?limit=2&continue={token}")
    assert names(second) == ["c", "d"]
    assert second.json["metadata"]["remainingItemCount"] == 1
    assert second.json["metadata"]["resourceVersion"] == first.json["metadata"]["resourceVersion"]
    metrics = either.member.metrics
    snapshots = either.member.options.feature_gates.list_from_cache_snapshot
    assert metrics.apiserver_storage_list_total.labels("", "configmaps").value == (0 if snapshots else 1)
    assert metrics.apiserver_cache_list_total.labels("", "configmaps", "").value == (2 if snapshots else 1)


def test_a_page_whose_revision_was_compacted_is_answered_with_a_token_for_the_latest(either: Server) -> None:
    for name in "abcd":
        create(either, name)
    token = either.ask("GET", f"{CONFIGMAPS}?limit=2").json["metadata"]["continue"]
    create(either, "bb")
    either.core.compact(either.core.revision)
    either.settle(16.0)
    late = either.ask("GET", f"{CONFIGMAPS}?limit=2&continue={token}")
    assert (late.status, late.json["reason"]) == (410, "Expired")
    again = late.json["metadata"]["continue"]
    assert names(either.ask("GET", f"{CONFIGMAPS}?limit=2&continue={again}")) == ["bb", "c"]


def test_verify_says_of_every_cache_whether_it_is_right() -> None:
    server = Server()
    create(server, "a")
    verdicts = server.ask("POST", "/swarmlet/verify").json
    assert {verdict["status"] for verdict in verdicts} == {"success"}
    assert {"pods", "configmaps", "leases.coordination.k8s.io"} <= {
        verdict["resource"] for verdict in verdicts
    }
    cacher(server, "configmaps").corrupt("drop", Random(1))
    (bad,) = [v for v in server.ask("POST", "/swarmlet/verify").json if v["status"] != "success"]
    assert (bad["resource"], bad["status"], bad["cache"] != bad["store"]) == ("configmaps", "failure", True)
    revision = cacher(server, "configmaps").revision
    exact = server.ask("GET", f"{CONFIGMAPS}?resourceVersion={revision}&resourceVersionMatch=Exact")
    assert names(exact) == ["a"], "the store has it"
    assert names(server.ask("GET", f"{CONFIGMAPS}?resourceVersion=0")) == []
    server.close()


def test_verify_is_for_admins_and_by_post() -> None:
    server = Server()
    assert server.ask("GET", "/swarmlet/verify").status == 405
    assert server.ask("POST", "/swarmlet/verify", user="system:node:n1").status == 403
    assert server.ask("POST", "/swarmlet/verify", user="anonymous").status in (401, 403)
    server.close()


def test_events_go_after_their_time_and_watchers_see_them_deleted() -> None:
    server = Server(event_ttl_s=600.0)
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "Once"}
    assert server.ask("POST", EVENTS, event).status == 201
    create(server, "stays")
    watch = server.send("GET", f"{EVENTS}?watch=true&resourceVersion=1")
    server.settle(400.0)
    kept = {"content-type": "application/merge-patch+json"}
    assert server.ask("PATCH", f"{EVENTS}/e", {"reason": "Twice"}, headers=kept).status == 200
    server.settle(500.0)
    assert server.ask("GET", f"{EVENTS}/e").status == 200, "a change begins its time anew"
    server.settle(120.0)
    assert server.ask("GET", f"{EVENTS}/e").status == 404
    assert [entry["type"] for entry in watch.events] == ["ADDED", "MODIFIED", "DELETED"]
    assert server.ask("GET", f"{CONFIGMAPS}/stays").status == 200
    server.close()


def test_snapshots_weigh_on_the_modelled_process() -> None:
    server = Server()
    create(server, "a")
    held = cacher(server, "configmaps").snapshot_bytes
    assert held > 0
    load = server.member._load()
    assert load.snapshot_bytes >= held
    server.close()
    off = Server(feature_gates=FeatureGates(list_from_cache_snapshot=False))
    assert off.member._load().snapshot_bytes == 0
    off.close()


def test_checks_are_counted_as_time_goes_by() -> None:
    server = Server()
    server.settle(460.0)
    family = server.member.metrics.apiserver_storage_consistency_checks_total
    assert family.labels("", "pods", "success").value == 1
    server.close()
