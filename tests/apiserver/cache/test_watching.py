"""Watches: from which revision, with which events, ending how (wire.md D)."""

from __future__ import annotations

from typing import Any

import pytest

from harness.apiserver.cache.cacher import CacheNotReady
from harness.apiserver.store.storage import unavailable
from harness.wire.selectors import parse_fields, parse_labels
from tests.apiserver.cache.world import ROWS, World, event, pod, secret

END = {"k8s.io/initial-events-end": "true"}


def test_a_watch_list_sends_the_state_sorted_by_key_then_the_annotated_bookmark() -> None:
    world = World()
    for name in ("b", "c", "a"):
        world.put(secret(name))
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, send_initial_events=True, allow_bookmarks=True)
    assert client.seen == [
        ("ADDED", "a", "4"),
        ("ADDED", "b", "2"),
        ("ADDED", "c", "3"),
        ("BOOKMARK", "", "4"),
    ]
    assert client.events[-1]["object"]["metadata"]["annotations"] == END
    assert (client.heads, client.ready) == (1, 1)
    world.put(secret("d"))
    assert client.seen[-1] == ("ADDED", "d", "5"), "the same stream goes on"


def test_the_bookmark_of_pods_is_word_for_word_that_of_a_real_server() -> None:
    world = World()
    cacher = world.member.cacher("pods")
    world.settle()
    client, _ = world.watch(cacher, send_initial_events=True, allow_bookmarks=True)
    assert client.data == (
        b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1",'
        b'"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}\n'
    )


@pytest.mark.parametrize("version", [None, 0])
@pytest.mark.parametrize("bookmarks", [True, False])
def test_without_options_the_state_comes_first_and_ends_in_a_bookmark_where_bookmarks_are_allowed(
    version: int | None, bookmarks: bool
) -> None:
    world = World()
    world.put(secret("a"))
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, resource_version=version, allow_bookmarks=bookmarks)
    expected = [("ADDED", "a", "2")] + ([("BOOKMARK", "", "2")] if bookmarks else [])
    assert client.seen == expected


def test_without_initial_events_a_watch_begins_now() -> None:
    world = World()
    world.put(secret("a"))
    cacher = world.member.cacher("secrets")
    world.settle()
    for version in (None, 0):
        client, _ = world.watch(cacher, resource_version=version, send_initial_events=False)
        assert client.seen == []
        name = f"b{version}"
        world.put(secret(name))
        assert [seen[:2] for seen in client.seen] == [("ADDED", name)]


def test_a_watch_from_a_revision_gets_everything_after_it() -> None:
    world = World()
    world.put(secret("a"))
    cacher = world.member.cacher("secrets")
    world.settle()
    world.put(secret("b"))
    world.put(secret("a", value="2"))
    world.delete("secrets", "default", "b")
    client, _ = world.watch(cacher, resource_version=3)
    assert client.seen == [("MODIFIED", "a", "4"), ("DELETED", "b", "5")]


def test_a_revision_yet_to_come_is_accepted_in_silence() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, resource_version=3)
    assert client.heads == 1
    for name in ("a", "b", "c"):  # revisions 2, 3, 4
        world.put(secret(name))
    assert client.seen == [("ADDED", "c", "4")]


def test_a_revision_before_the_history_is_an_error_event_and_the_end() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.put(secret(name))
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, resource_version=3)
    assert client.data == (
        b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":'
        b'"too old resource version: 3 (4)","reason":"Expired","code":410}}\n'
    )
    assert (client.heads, client.finished) == (1, 1)
    exactly, _ = world.watch(cacher, resource_version=4)
    assert exactly.data == b""


def test_a_watch_list_of_a_revision_that_does_not_come_is_an_error_event_after_three_seconds() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, send_initial_events=True, resource_version=9, allow_bookmarks=True)
    world.settle(2.999)
    assert client.heads == 0
    world.settle(0.002)
    (error,) = client.events
    assert error["object"] == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Timeout: Too large resource version: 9, current: 1",
        "reason": "Timeout",
        "details": {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        "code": 504,
    }
    assert client.finished == 1


def test_a_watch_list_of_a_revision_waits_for_it() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, send_initial_events=True, resource_version=2, allow_bookmarks=True)
    assert client.heads == 0
    world.put(secret("a"))
    assert client.seen == [("ADDED", "a", "2"), ("BOOKMARK", "", "2")]


def test_a_consistent_watch_list_sees_what_other_resources_wrote_before_it() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    world.put(pod("p"))  # the secrets cache hears nothing of it but by progress notification
    assert cacher.revision == 1
    client, _ = world.watch(cacher, send_initial_events=True, allow_bookmarks=True)
    assert client.seen == [("BOOKMARK", "", "2")]


def test_a_deletion_carries_the_last_object_with_the_revision_of_the_deletion() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, resource_version=1)
    world.put(secret("a", value="last"))
    world.delete("secrets", "default", "a")
    assert client.seen == [("ADDED", "a", "2"), ("DELETED", "a", "3")]
    assert client.events[1]["object"]["data"] == {"v": "last"}


def test_an_object_that_begins_or_ceases_to_be_selected_is_added_or_deleted() -> None:
    world = World()
    cacher = world.member.cacher("pods")
    world.settle()
    client, _ = world.watch(cacher, resource_version=1, labels=parse_labels("app=x"))
    world.put(pod("p", app="y"))
    world.put(pod("p", app="x"))
    world.put(pod("p", app="x", more="z"))
    world.put(pod("p", app="y"))
    world.put(pod("p", app="y", more="z"))
    assert client.seen == [("ADDED", "p", "3"), ("MODIFIED", "p", "4"), ("DELETED", "p", "5")]
    assert client.events[2]["object"]["metadata"]["labels"] == {"app": "x", "more": "z"}, "as last seen"


def test_a_pod_that_is_bound_is_added_for_its_node_and_deleted_for_the_scheduler() -> None:
    world = World()
    cacher = world.member.cacher("pods")
    world.settle()
    kubelet, _ = world.watch(cacher, resource_version=1, fields=parse_fields("spec.nodeName=n1"))
    other, _ = world.watch(cacher, resource_version=1, fields=parse_fields("spec.nodeName=n2"))
    scheduler, _ = world.watch(cacher, resource_version=1, fields=parse_fields("spec.nodeName="))
    world.put(pod("p"))
    world.put(pod("p", "n1"))
    assert kubelet.seen == [("ADDED", "p", "3")]
    assert scheduler.seen == [("ADDED", "p", "2"), ("DELETED", "p", "3")]
    assert other.seen == []


def test_watches_of_a_name_or_a_namespace_get_no_others() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    by_field, _ = world.watch(
        cacher, namespace="x", fields=parse_fields("metadata.name=a"), resource_version=1
    )
    by_namespace, _ = world.watch(cacher, namespace="x", resource_version=1)
    anywhere, _ = world.watch(cacher, fields=parse_fields("metadata.name=a"), resource_version=1)
    unlike, _ = world.watch(cacher, fields=parse_fields("metadata.name!=a"), resource_version=1)
    for name, namespace in (("a", "x"), ("b", "x"), ("a", "y")):
        world.put(secret(name, namespace))
    assert [version for _, _, version in by_field.seen] == ["2"]
    assert [version for _, _, version in by_namespace.seen] == ["2", "3"]
    assert [version for _, _, version in anywhere.seen] == ["2", "4"]
    assert [version for _, _, version in unlike.seen] == ["3"]


def test_a_watch_ends_cleanly_at_its_deadline() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, resource_version=1, timeout_s=10.0)
    later, _ = world.watch(cacher, resource_version=1, timeout_s=20.0)
    world.settle(9.999)
    assert client.finished == 0
    world.settle(0.002)
    assert (client.finished, later.finished) == (1, 0)
    assert cacher.watchers == 1


def test_a_watch_without_a_timeout_lasts_thirty_to_sixty_minutes() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    for _ in range(20):
        _, watcher = world.watch(cacher, resource_version=1)
        assert 1800 <= watcher.deadline < 3600


def test_bookmarks_come_each_minute_and_two_seconds_before_the_deadline_without_the_annotation() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, send_initial_events=True, allow_bookmarks=True, timeout_s=150.0)
    world.put(secret("a"))
    client.events_at.clear()
    world.settle(150.0)
    bookmarks = [entry for entry in client.events if entry["type"] == "BOOKMARK"]
    assert [entry["object"]["metadata"] for entry in bookmarks[1:]] == [{"resourceVersion": "2"}] * 4
    at_once, first, second, last = client.events_at
    assert 1 <= at_once < 1.3, "a watch-list is due at the next tick, and there is news"
    assert 60 <= first < 62.6
    assert 120 <= second < 123.9
    assert 147 <= last < 149.3


def test_a_watch_that_has_nothing_to_learn_gets_no_bookmark() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, resource_version=1, allow_bookmarks=True)
    world.settle(200.0)
    assert client.seen == []
    world.put(pod("p"))
    world.settle(70.0)
    assert client.seen == [("BOOKMARK", "", "2")], "etcd's progress notification moves the cache on"


def test_a_watch_that_is_stopped_gets_nothing_more() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, watcher = world.watch(cacher, resource_version=1)
    watcher.stop()
    watcher.stop()
    world.put(secret("a"))
    assert (client.seen, client.finished, cacher.watchers) == ([], 0, 0)


def test_a_transform_reencodes_events_and_may_leave_them_out() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()

    def names(kind: str, obj: Any) -> bytes | None:
        return None if obj.name == "b" else f'{{"type":"{kind}","object":{{"metadata":{{}}}}}}\n'.encode()

    client, _ = world.watch(cacher, send_initial_events=True, allow_bookmarks=True, transform=names)
    for name in ("a", "b"):
        world.put(secret(name))
    assert [kind for kind, _, _ in client.seen] == ["BOOKMARK", "ADDED"]


def test_a_cache_that_is_not_filled_refuses_with_a_retry_after_that_grows() -> None:
    world = World(fsync_s=0.001, rtt_s=0.001)
    cacher = world.member.cacher("secrets")
    world.member.store.lose(unavailable("connection refused"))
    world.settle(1.0)
    for after_s, expected in ((0.0, 1), (11.0, 2), (40.0, 22), (20.0, 30)):
        world.settle(after_s)
        with pytest.raises(CacheNotReady, match=r"storage is \(re\)initializing") as caught:
            cacher.check_ready()
        assert caught.value.retry_after_s == expected


def test_when_the_store_is_lost_all_watches_end_and_the_cache_is_not_ready() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    client, _ = world.watch(cacher, resource_version=1)
    world.member.store.lose(unavailable("connection refused"))
    world.settle()
    assert client.finished == 1
    assert not cacher.ready


def test_watches_of_uncached_resources_come_from_the_store() -> None:
    world = World()
    world.put(event("old", "Created"))
    events = world.member.uncached()
    state, _ = world.watch(events, send_initial_events=True, allow_bookmarks=True)
    assert state.seen == [("ADDED", "old", "2"), ("BOOKMARK", "", "2")]
    since, _ = world.watch(events, resource_version=1)
    assert since.seen == [("ADDED", "old", "2")]
    some, _ = world.watch(
        events, namespace="default", resource_version=2, fields=parse_fields("reason=Failed")
    )
    world.put(event("new", "Failed"))
    world.put(event("new", "Fine"))
    world.put(event("elsewhere", "Failed", "other"))
    assert some.seen == [("ADDED", "new", "3"), ("DELETED", "new", "4")]
    world.delete("events", "default", "old")
    assert since.seen[-1] == ("DELETED", "old", "6")


def test_an_uncached_watch_from_a_compacted_revision_is_an_error_event() -> None:
    world = World()
    for number in range(3):
        world.put(event(f"e{number}", "Created"))
    world.core.compact(3)
    client, _ = world.watch(world.member.uncached(), resource_version=2)
    (error,) = client.events
    assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")
    assert error["object"]["message"] == "The resourceVersion for the provided watch is too old."
    assert client.finished == 1


def test_a_stopped_uncached_watch_leaves_nothing_behind() -> None:
    world = World()
    events = world.member.uncached()
    client, watcher = world.watch(events, resource_version=1)
    watcher.stop()
    world.put(event("e", "Created"))
    assert (client.seen, events.watchers) == ([], 0)


def test_index_of_every_resource_is_one_of_its_selectable_fields() -> None:
    assert all(not row.index or row.index in row.selectable for row in ROWS.values())
