"""Requests as kperf sends them: paths, queries, headers, bodies."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.kperf import Spec
from harness.kperf.building import Builder, Call, random_text
from harness.wire.request import Request
from tests.kperf.play import profile, spec

WALL_S = 1_800_000_000.5


def builder(folder: Path, request: str, **values: object) -> Builder:
    loaded: Spec = profile(folder, spec(f"      - shares: 1\n        {request}\n", **values)).specs[0]
    return Builder(loaded, random.Random(1), random.Random(2), "7-", {"swarmlet.io/run": "r"})


def built(folder: Path, request: str, **values: object) -> Call:
    return builder(folder, request, **values).build(0, WALL_S, "3")


@pytest.mark.parametrize(
    ("request_", "name", "path"),
    [
        (
            "staleGet: {version: v1, resource: pods, namespace: a, name: x}",
            "GET",
            "/api/v1/namespaces/a/pods/x?resourceVersion=0&timeout=1m0s",
        ),
        ("quorumGet: {version: v1, resource: nodes, name: x}", "GET", "/api/v1/nodes/x?timeout=1m0s"),
        (
            "staleList: {group: apps, version: v1, resource: daemonsets, selector: 'a=b', fieldSelector: 'c=d'}",
            "LIST",
            "/apis/apps/v1/daemonsets?fieldSelector=c%3Dd&labelSelector=a%3Db&resourceVersion=0&timeout=1m0s",
        ),
        (
            "quorumList: {group: core, version: v1, resource: pods, limit: 500}",
            "LIST",
            "/api/v1/pods?limit=500&timeout=1m0s",
        ),
        (
            "watchList: {version: v1, resource: pods, namespace: a}",
            "WATCHLIST",
            (
                "/api/v1/namespaces/a/pods?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
                "&sendInitialEvents=true&timeout=1m0s&watch=true"
            ),
        ),
        (
            "getPodLog: {namespace: a, name: x, container: c, tailLines: 5, limitBytes: 9}",
            "POD_LOG",
            "/api/v1/namespaces/a/pods/x/log?container=c&limitBytes=9&tailLines=5&timeout=1m0s",
        ),
    ],
)
def test_reads(tmp_path: Path, request_: str, name: str, path: str) -> None:
    call = built(tmp_path, request_)
    assert (call.method, call.url, call.request.path, call.request.method) == (name, path, path, "GET")
    assert call.request.discards
    assert call.request.client == "3"
    assert call.request.timeout_s == (None if name == "WATCHLIST" else 90.0)


@pytest.mark.parametrize(
    ("content_type", "accept"),
    [("json", "application/json, */*"), ("protobuf", "application/vnd.kubernetes.protobuf, */*")],
)
def test_the_content_type_is_the_answers(tmp_path: Path, content_type: str, accept: str) -> None:
    call = built(tmp_path, "staleList: {version: v1, resource: pods}", contentType=content_type)
    assert call.request.accept == accept


def test_a_patch_goes_to_one_of_a_key_space(tmp_path: Path) -> None:
    make = builder(
        tmp_path,
        "patch: {version: v1, resource: pods, namespace: a, name: p, keySpaceSize: 3, patchType: json, body: ' [] '}",
    )
    calls = [make.build(index, WALL_S, "0") for index in range(50)]
    assert {call.request.path for call in calls} == {
        f"/api/v1/namespaces/a/pods/p-{index}?timeout=1m0s" for index in range(3)
    }
    assert {call.url for call in calls} == {"/api/v1/namespaces/a/pods/:name?timeout=1m0s"}
    assert {(c.method, c.request.body, c.request.content_type) for c in calls} == {
        ("PATCH", b"[]", "application/json-patch+json")
    }


def test_a_put_overwrites_a_config_map(tmp_path: Path) -> None:
    call = built(
        tmp_path,
        "put: {version: v1, resource: configmaps, namespace: a, name: c, keySpaceSize: 1, payloadSize: 40}",
    )
    body: dict[str, Any] = msgspec.json.decode(call.request.body)
    assert call.request.path == "/api/v1/namespaces/a/configmaps/c-0?timeout=1m0s"
    assert (body["kind"], body["metadata"]) == ("ConfigMap", {"name": "c-0", "namespace": "a"})
    assert len(body["data"]["payload"]) == 40
    assert body["data"]["payload"].isalnum()


def posts(folder: Path, ratio: float) -> Builder:
    request = f"postDel: {{version: v1, resource: pods, namespace: a, deleteRatio: {ratio}, payloadSize: 8}}"
    return builder(folder, request)


def end(call: Call, *, done: bool) -> Request:
    assert call.on_end is not None
    call.on_end(done)
    return call.request


def test_a_post_creates_a_pod_of_its_own_name(tmp_path: Path) -> None:
    call = posts(tmp_path, 0).build(4, WALL_S, "0")
    body: dict[str, Any] = msgspec.json.decode(call.request.body)
    assert (call.method, call.url) == ("POST", "/api/v1/namespaces/a/pods?timeout=1m0s")
    assert body["metadata"] == {
        "name": "1800000000500000000-7-4",
        "namespace": "a",
        "labels": {"app": "fake-pod", "swarmlet.io/run": "r"},
    }
    (container,) = body["spec"]["containers"]
    assert len(container["env"][0]["value"]) == 8


def test_deletes_take_what_was_created_oldest_first(tmp_path: Path) -> None:
    make = posts(tmp_path, 0.5)
    created: list[str] = []
    deleted: list[str] = []
    for index in range(60):
        request = end(make.build(index, WALL_S, "0"), done=True)
        if request.method == "POST":
            created.append(msgspec.json.decode(request.body)["metadata"]["name"])
        else:
            deleted.append(request.path.partition("/pods/")[2].partition("?")[0])
    assert deleted == created[: len(deleted)]
    assert 15 < len(deleted) < 35


def test_what_was_not_created_is_not_deleted(tmp_path: Path) -> None:
    make = posts(tmp_path, 0.5)
    methods = {end(make.build(index, WALL_S, "0"), done=False).method for index in range(40)}
    assert methods == {"POST"}


def test_what_was_not_deleted_is_deleted_later(tmp_path: Path) -> None:
    make = posts(tmp_path, 0.5)
    end(make.build(0, WALL_S, "0"), done=True)
    paths = []
    for index in range(1, 60):
        call = make.build(index, WALL_S, "0")
        if call.method == "DELETE":
            paths.append(end(call, done=False).path)
            assert call.request.body == b""
    assert len(paths) > 5
    assert len(set(paths)) == 1


def test_kinds_come_by_their_shares(tmp_path: Path) -> None:
    text = (
        "      - {shares: 3, staleList: {version: v1, resource: pods}}\n"
        "      - {shares: 0, staleList: {version: v1, resource: nodes}}\n"
        "      - {shares: 1, quorumList: {version: v1, resource: pods}}\n"
    )
    make = Builder(profile(tmp_path, spec(text)).specs[0], random.Random(1), random.Random(2))
    calls = [make.build(index, WALL_S, "0").url for index in range(4000)]
    assert "nodes" not in "".join(calls)
    assert sum("resourceVersion=0" in url for url in calls) == pytest.approx(3000, abs=120)


def test_random_text_is_letters_and_digits() -> None:
    text = random_text(random.Random(1), 5000)
    assert len(text) == 5000
    assert len(set(text)) == 62
