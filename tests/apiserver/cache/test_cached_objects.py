"""Objects as bytes: what is stored, what is served, what selectors see."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apiserver.cache.bookmarks import bookmark
from harness.apiserver.cache.cachedobject import ObjectReader, Selection, encode_stored, respliced, splice
from harness.apiserver.resources import RESOURCES
from harness.wire.selectors import parse_fields, parse_labels
from tests.apiserver.cache.world import ROWS, event, pod

names = st.text(max_size=8)


@given(
    metadata=st.dictionaries(
        names.filter(lambda key: key not in ("name", "namespace", "labels")), names, max_size=4
    ),
    rest=st.dictionaries(
        names.filter(lambda key: key not in ("kind", "apiVersion", "metadata")), names, max_size=4
    ),
    revision=st.integers(1, 10**12),
    later=st.integers(1, 10**12),
)
def test_the_revision_is_put_in_and_replaced_and_nothing_else_changes(
    metadata: dict[str, Any], rest: dict[str, Any], revision: int, later: int
) -> None:
    obj = {**rest, "metadata": metadata, "kind": "K", "apiVersion": "v1"}
    without = {key: value for key, value in metadata.items() if key != "resourceVersion"}
    body = splice(encode_stored(obj), revision)
    assert msgspec.json.decode(body) == {**obj, "metadata": {**without, "resourceVersion": str(revision)}}
    assert respliced(body, later) == splice(encode_stored(obj), later)


def test_the_revision_of_an_object_that_comes_in_is_not_stored() -> None:
    obj = pod("p")
    obj["metadata"]["resourceVersion"] = "7"
    assert b"resourceVersion" not in encode_stored(obj)
    assert obj["metadata"]["resourceVersion"] == "7", "the argument is left as it is"


def test_a_metadata_inside_the_object_is_not_mistaken_for_its_own() -> None:
    obj = {"spec": {"template": {"metadata": {"name": "inner"}}}, **pod("outer")}
    body = splice(encode_stored(obj), 5)
    assert msgspec.json.decode(body)["metadata"]["resourceVersion"] == "5"


@pytest.mark.parametrize("row", RESOURCES, ids=lambda row: row.resource)
def test_an_object_with_nothing_in_it_has_every_field(row: Any) -> None:
    value = encode_stored({"kind": row.kind, "apiVersion": row.api_version, "metadata": {"name": "x"}})
    fields = ObjectReader(row).read("/k", value, 3).fields
    assert set(fields) == {*row.selectable, "metadata.name"}
    absent = {
        "spec.hostNetwork": "false",
        "spec.unschedulable": "false",
        "status.replicas": "0",
        "status.successful": "0",
    }
    assert all(value == absent.get(name, "") for name, value in fields.items() if "metadata" not in name)


def test_fields_of_a_pod() -> None:
    obj = pod("p", "n1")
    obj["spec"].update(hostNetwork=True, restartPolicy="Always", containers=[{"name": "c"}])
    obj["status"] = {"phase": "Running", "podIP": "10.0.0.1", "conditions": []}
    cached = ObjectReader(ROWS["pods"]).read("/k", encode_stored(obj), 3)
    assert cached.fields == {
        "metadata.name": "p",
        "metadata.namespace": "default",
        "spec.hostNetwork": "true",
        "spec.nodeName": "n1",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "status.nominatedNodeName": "",
        "status.phase": "Running",
        "status.podIP": "10.0.0.1",
    }
    assert cached.field("spec.nodeName") == "n1"
    assert cached.field("no.such") == ""


def test_nulls_count_as_absent() -> None:
    value = b'{"kind":"Pod","metadata":{"name":"p","labels":null},"spec":null,"status":{"phase":null}}'
    cached = ObjectReader(ROWS["pods"]).read("/k", value, 3)
    assert (cached.field("spec.hostNetwork"), cached.field("status.phase"), cached.labels) == (
        "false",
        "",
        {},
    )


def test_the_source_of_an_event_is_its_component() -> None:
    cached = ObjectReader(ROWS["events"]).read("/k", encode_stored(event("e", "Failed")), 3)
    assert (cached.field("source"), cached.field("reason")) == ("kubelet", "Failed")


def test_a_decoded_object_may_be_changed() -> None:
    cached = ObjectReader(ROWS["pods"]).read("/k", encode_stored(pod("p")), 3)
    cached.decode()["metadata"]["name"] = "other"
    assert cached.decode()["metadata"]["name"] == "p"


@pytest.mark.parametrize(
    ("labels", "fields", "expected"),
    [
        ("", "", True),
        ("app=x", "", True),
        ("app=y", "", False),
        ("", "spec.nodeName=n1", True),
        ("", "spec.nodeName!=n1", False),
        ("", "metadata.name=p,spec.nodeName=n1", True),
        ("", "metadata.name=q", False),
        ("", "metadata.name!=p", False),
        ("", "metadata.namespace=default", True),
        ("", "metadata.namespace=other", False),
        ("", "metadata.name=p,metadata.name=q", False),
        ("app", "status.phase=", True),
    ],
)
def test_selection(labels: str, fields: str, expected: bool) -> None:
    cached = ObjectReader(ROWS["pods"]).read("/k", encode_stored(pod("p", "n1", app="x")), 3)
    assert Selection("", "", parse_labels(labels), parse_fields(fields)).matches(cached) is expected


def test_a_name_beside_the_path_selects_only_if_both_agree() -> None:
    selection = Selection("default", "p", None, parse_fields("metadata.name=q"))
    cached = ObjectReader(ROWS["pods"]).read("/k", encode_stored(pod("p")), 3)
    assert (selection.name, selection.matches(cached)) == ("p", False)


@pytest.mark.parametrize("row", RESOURCES, ids=lambda row: row.resource)
def test_every_bookmark_is_an_object_with_nothing_but_a_revision(row: Any) -> None:
    decoded = bookmark(row, 12).decode()
    assert decoded["metadata"] == {"resourceVersion": "12"}
    assert (decoded["kind"], decoded["apiVersion"]) == (row.kind, row.api_version)
