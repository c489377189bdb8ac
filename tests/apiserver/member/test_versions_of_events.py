"""Events of events.k8s.io/v1 and core events are the same objects in two forms."""

from typing import Any

import pytest
from fakemember import Server

CORE = "/api/v1/namespaces/ns/events"
NEW = "/apis/events.k8s.io/v1/namespaces/ns/events"
MERGE = {"content-type": "application/merge-patch+json"}
POD = {"kind": "Pod", "namespace": "ns", "name": "p", "apiVersion": "v1"}
WHEN = "2026-01-02T03:04:05.000006Z"


def scheduled(name: str = "e", **fields: Any) -> dict[str, Any]:
    """As kube-scheduler writes it."""
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "eventTime": WHEN,
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": POD,
        "note": "Successfully assigned ns/p to n1",
        "type": "Normal",
        **fields,
    }


def without_metadata(event: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key != "metadata"}


def test_what_the_scheduler_writes_is_read_by_who_knows_core_events_only(server: Server) -> None:
    created = server.ask("POST", NEW, scheduled())
    assert created.status == 201, created.data
    assert without_metadata(created.json) == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        **without_metadata(scheduled()),
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    core = server.ask("GET", f"{CORE}/e").json
    assert without_metadata(core) == {
        "kind": "Event",
        "apiVersion": "v1",
        "involvedObject": POD,
        "reason": "Scheduled",
        "message": "Successfully assigned ns/p to n1",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": WHEN,
        "action": "Binding",
        "reportingComponent": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
    }
    assert core["metadata"] == created.json["metadata"]


def test_what_a_kubelet_writes_is_read_by_newer_clients(server: Server) -> None:
    stamp = "2026-01-02T03:04:05Z"
    server.ask(
        "POST",
        CORE,
        {
            "metadata": {"name": "k"},
            "involvedObject": POD,
            "reason": "Pulled",
            "message": "there already",
            "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 3,
            "type": "Normal",
        },
    )
    new = server.ask("GET", f"{NEW}/k").json
    assert without_metadata(new) == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "eventTime": None,
        "reason": "Pulled",
        "regarding": POD,
        "note": "there already",
        "type": "Normal",
        "deprecatedSource": {"component": "kubelet", "host": "n1"},
        "deprecatedFirstTimestamp": stamp,
        "deprecatedLastTimestamp": stamp,
        "deprecatedCount": 3,
    }
    assert server.ask("PUT", f"{NEW}/k", new).status == 422, "an old event is no complete new one"


def test_lists_selectors_and_tables_work_in_both(server: Server) -> None:
    server.ask("POST", NEW, scheduled("a"))
    server.ask("POST", NEW, scheduled("b", regarding={**POD, "name": "q"}))
    new = server.ask(
        "GET", f"{NEW}?fieldSelector=regarding.name%3Dq,reportingController%3Ddefault-scheduler"
    ).json
    assert (new["kind"], new["apiVersion"]) == ("EventList", "events.k8s.io/v1")
    assert [item["metadata"]["name"] for item in new["items"]] == ["b"]
    assert new["items"][0]["regarding"]["name"] == "q"
    assert "kind" not in new["items"][0]
    core = server.ask("GET", f"{CORE}?fieldSelector=involvedObject.name%3Dq").json
    assert [item["metadata"]["name"] for item in core["items"]] == ["b"]
    assert server.ask("GET", f"{NEW}?fieldSelector=involvedObject.name%3Dq").status == 400
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    tables = [server.ask("GET", path, headers=accept).json for path in (CORE, NEW)]
    assert [row["cells"] for row in tables[0]["rows"]] == [row["cells"] for row in tables[1]["rows"]]
    assert tables[0]["rows"][0]["cells"][3] == "pod/p"


def test_a_watch_of_one_form_sees_what_is_written_in_the_other(server: Server) -> None:
    watch = server.send("GET", f"{NEW}?watch=true")
    server.settle()
    server.ask("POST", CORE, {"metadata": {"name": "c"}, "involvedObject": POD, "message": "m"})
    server.settle()
    event = watch.events[-1]
    assert (event["type"], event["object"]["apiVersion"], event["object"]["note"]) == (
        "ADDED",
        "events.k8s.io/v1",
        "m",
    )


def test_a_series_is_patched_in_the_form_of_who_patches(server: Server) -> None:
    """As client-go's events broadcaster does on a repeat."""
    server.ask("POST", NEW, scheduled())
    series = {"count": 2, "lastObservedTime": WHEN}
    patched = server.ask("PATCH", f"{NEW}/e", {"series": series}, headers=MERGE)
    assert (patched.status, patched.json["series"]) == (200, series)
    assert server.ask("GET", f"{CORE}/e").json["series"] == series
    refused = server.ask("PATCH", f"{NEW}/e", {"note": "other"}, headers=MERGE)
    assert refused.status == 422
    assert server.ask("PATCH", f"{CORE}/e", {"message": "other"}, headers=MERGE).status == 200


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"eventTime": None}, "eventTime: Required value"),
        ({"reportingController": ""}, "reportingController: Required value"),
        ({"reportingInstance": ""}, "reportingInstance: Required value"),
        ({"action": ""}, "action: Required value"),
        ({"reason": ""}, "reason: Required value"),
        ({"type": "Odd"}, 'type: Invalid value: "": has invalid value: Odd'),
        ({"deprecatedCount": 1}, 'count: Invalid value: "": needs to be unset'),
        (
            {"regarding": {**POD, "namespace": "other"}},
            'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
        ),
    ],
)
def test_a_new_event_must_be_complete(server: Server, fields: dict[str, Any], fault: str) -> None:
    refused = server.ask("POST", NEW, scheduled(**fields))
    assert refused.status == 422
    assert fault in refused.json["message"]


def test_deletion_and_collections_of_them(server: Server) -> None:
    server.ask("POST", NEW, scheduled("a"))
    server.ask("POST", NEW, scheduled("b"))
    details = server.ask("DELETE", f"{NEW}/a").json["details"]
    assert (details["name"], details["group"], details["kind"]) == ("a", "events.k8s.io", "events")
    assert server.ask("DELETE", NEW).json["kind"] == "EventList"
    assert server.ask("GET", CORE).json["items"] == []
    assert server.ask("GET", f"{NEW}/a").json["message"] == 'events.events.k8s.io "a" not found'
