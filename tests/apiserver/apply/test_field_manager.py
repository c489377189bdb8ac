"""What applies and other writes make of objects and of managedFields."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from harness.apiserver.apply.endpoints import FieldManagers
from harness.apiserver.apply.fieldmanager import MAX_UPDATERS, FieldManager, settle_times
from harness.apiserver.apply.fieldset import FieldSet
from harness.apiserver.apply.lastapplied import ANNOTATION
from harness.apiserver.resources import Resource
from harness.apiserver.schema import schema_for
from harness.wire.status import StatusError
from tests.apiserver.apply.schemas import everything

T1, T2, T3 = (f"2026-11-29T10:00:0{second}Z" for second in (1, 2, 3))
VERSION = "example.com/v1"
MANAGER = FieldManager(VERSION, "Thing", everything(), "", FieldSet())


def thing(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "t"}, **fields}


def apply(
    live: Any,
    applied: Any,
    name: str = "one",
    force: bool = False,
    now: str = T1,
    manager: FieldManager = MANAGER,
) -> Any:
    before = copy.deepcopy((live, applied))
    new = manager.apply(live, applied, name, force, now)
    assert (live, applied) == before, "an argument was changed"
    return new


def update(live: Any, new: Any, name: str = "one", now: str = T1, manager: FieldManager = MANAGER) -> Any:
    before, new = copy.deepcopy(live), copy.deepcopy(new)
    manager.update(live, new, name, now)
    assert live == before, "the live object was changed"
    return new


def owners(obj: Any) -> dict[str, Any]:
    """fieldsV1 by manager and operation."""
    return {
        f"{entry['manager']} {entry['operation']}": entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields") or ()
    }


def conflict(live: Any, applied: Any, name: str = "two") -> Any:
    with pytest.raises(StatusError) as raised:
        apply(live, applied, name)
    assert raised.value.status.code == 409
    return raised.value.status


# ---- apply ---------------------------------------------------------------------------------------------------------
def test_the_first_apply_makes_the_object_and_one_entry() -> None:
    new = apply(None, thing(text="x", inner={"a": "1"}))
    assert new["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": VERSION,
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:inner": {"f:a": {}}, "f:text": {}},
        }
    ]
    assert {key: value for key, value in new.items() if key != "metadata"} == {
        "apiVersion": VERSION,
        "kind": "Thing",
        "text": "x",
        "inner": {"a": "1"},
    }


def test_fields_no_longer_applied_go() -> None:
    first = apply(None, thing(text="x", inner={"a": "1", "b": "2"}, labels={"k": "v"}))
    second = apply(first, thing(inner={"b": "2"}), now=T2)
    assert second["inner"] == {"b": "2"}
    assert second.get("text") is None
    assert second.get("labels") is None
    assert owners(second) == {"one Apply": {"f:inner": {"f:b": {}}}}


def test_fields_that_another_manager_also_applies_stay() -> None:
    first = apply(None, thing(text="x", number=1))
    shared = apply(first, thing(text="x"), "two", now=T2)
    assert owners(shared)["two Apply"] == {"f:text": {}}
    left = apply(shared, thing(number=1), "one", now=T3)
    assert left["text"] == "x"
    assert owners(left) == {"one Apply": {"f:number": {}}, "two Apply": {"f:text": {}}}


def test_a_field_of_another_manager_is_a_conflict() -> None:
    live = apply(None, thing(text="x", labels={"a": "1"}))
    status = conflict(live, thing(text="y"))
    assert status.message == 'Apply failed with 1 conflict: conflict with "one": .text'
    assert [(cause.reason, cause.message, cause.field) for cause in status.details.causes] == [
        ("FieldManagerConflict", 'conflict with "one"', ".text")
    ]
    status = conflict(live, thing(text="y", labels={"a": "2"}))
    assert status.message == 'Apply failed with 2 conflicts: conflicts with "one":\n- .text\n- .labels.a'


def test_conflicts_with_several_managers_are_listed_by_manager() -> None:
    live = apply(None, thing(text="x"))
    live = update(live, {**live, "number": 1}, "kubectl-edit", T2)
    status = conflict(live, thing(text="y", number=2))
    assert status.message == (
        'Apply failed with 2 conflicts: conflicts with "kubectl-edit" using example.com/v1:\n- .number\n'
        'conflicts with "one":\n- .text'
    )


def test_force_takes_the_fields_over() -> None:
    live = apply(None, thing(text="x", number=1))
    new = apply(live, thing(text="y"), "two", force=True, now=T2)
    assert new["text"] == "y"
    assert owners(new) == {"one Apply": {"f:number": {}}, "two Apply": {"f:text": {}}}


def test_a_manager_that_loses_all_its_fields_is_gone() -> None:
    live = apply(None, thing(text="x"))
    assert owners(apply(live, thing(text="y"), "two", force=True)) == {"two Apply": {"f:text": {}}}


def test_applying_nothing_gives_up_what_was_applied() -> None:
    live = apply(None, thing(text="x", number=1))
    new = apply(live, thing(), now=T2)
    assert "managedFields" not in new["metadata"]
    assert new.get("text") is None
    assert new.get("number") is None


def test_items_of_a_keyed_list_are_owned_one_by_one() -> None:
    live = apply(None, thing(items=[{"name": "a", "value": "1"}, {"name": "b"}]))
    live = apply(live, thing(items=[{"name": "c", "value": "3"}]), "two", now=T2)
    assert [item["name"] for item in live["items"]] == ["a", "b", "c"]
    assert owners(live)["two Apply"] == {
        "f:items": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:value": {}}}
    }
    left = apply(live, thing(items=[{"name": "a"}]), now=T3)
    assert left["items"] == [{"name": "a"}, {"name": "c", "value": "3"}]


def test_the_protocol_of_a_port_is_tcp_unless_said_otherwise() -> None:
    live = thing(ports=[{"port": 80, "protocol": "TCP"}])
    new = apply(live, thing(ports=[{"port": 80, "name": "web"}]))
    assert new["ports"] == [{"port": 80, "protocol": "TCP", "name": "web"}]
    assert owners(new)["one Apply"]["f:ports"] == {
        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}
    }


def test_sets_are_owned_by_value() -> None:
    live = apply(None, thing(finalizers=["a/x", "a/y"]))
    live = apply(live, thing(finalizers=["b/z"]), "two")
    assert live["finalizers"] == ["a/x", "a/y", "b/z"]
    assert apply(live, thing(finalizers=["a/y"]))["finalizers"] == ["a/y", "b/z"]


def test_what_was_there_before_the_first_apply_belongs_to_a_manager_of_that_name() -> None:
    live = thing(text="x", inner={"a": "1"})
    new = apply(live, thing(text="x"))
    assert owners(new) == {
        "one Apply": {"f:text": {}},
        "before-first-apply Update": {"f:inner": {".": {}, "f:a": {}}, "f:text": {}},
    }
    status = conflict(live, thing(text="y"))
    assert status.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using example.com/v1: .text'
    )


def test_applying_the_same_again_changes_nothing_not_even_a_time() -> None:
    live = apply(None, thing(text="x"), now=T1)
    assert apply(live, thing(text="x"), now=T2) == live


def test_identity_is_never_owned() -> None:
    live = apply(None, thing(text="x"))
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": T1, "namespace": "n"}
    applied = thing(text="y")
    applied["metadata"] |= {"uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    assert owners(apply(live, applied))["one Apply"] == {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:text": {},
    }


@pytest.mark.parametrize(
    ("applied", "code", "text"),
    [
        ({}, 400, "invalid object type: /, Kind="),
        ({"apiVersion": ["v1"], "kind": 7}, 400, "invalid object type: /, Kind="),
        ({"apiVersion": "v1", "kind": "Thing"}, 400, "invalid object type: /v1, Kind=Thing"),
        ({"apiVersion": VERSION, "kind": "Other"}, 400, "invalid object type: example.com/v1, Kind=Other"),
        (
            {"apiVersion": VERSION, "kind": "Thing", "metadata": {"managedFields": []}},
            400,
            "metadata.managedFields must be nil",
        ),
        (
            {"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "t"}, "nope": 1},
            500,
            "failed to create typed patch object (/t; example.com/v1, Kind=Thing): .nope: field not declared in schema",
        ),
        (
            {"apiVersion": VERSION, "kind": "Thing", "metadata": "x"},
            500,
            "failed to create typed patch object (/; example.com/v1, Kind=Thing): .metadata: expected map, got &{x}",
        ),
    ],
)
def test_what_cannot_be_applied(applied: Any, code: int, text: str) -> None:
    with pytest.raises(StatusError) as raised:
        MANAGER.apply(None, applied, "one", False, T1)
    assert (raised.value.status.code, raised.value.status.message) == (code, text)


def test_a_live_object_that_its_schema_cannot_read_is_an_error() -> None:
    live = apply(None, thing(text="x"))
    live["items"] = [{"value": "without a name"}]
    with pytest.raises(StatusError, match="failed to create typed live object"):
        apply(live, thing(items=[{"name": "a"}]))
    live["metadata"]["managedFields"] = [{"operation": "Apply"}]
    with pytest.raises(StatusError, match="failed to decode managed fields: apiVersion must not be empty"):
        apply(live, thing(text="y"))


# ---- other writes --------------------------------------------------------------------------------------------------
def test_an_object_that_nobody_applied_is_not_tracked() -> None:
    live = thing(text="x")
    assert update(live, thing(text="y")) == thing(text="y")
    assert update(None, thing(text="y")) == thing(text="y")


def test_an_update_takes_what_it_changes() -> None:
    live = apply(None, thing(text="x", number=1))
    new = update(live, {**live, "text": "y", "inner": {"a": "1"}}, "kubectl-edit", T2)
    assert new["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": VERSION,
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:number": {}},
        },
        {
            "manager": "kubectl-edit",
            "operation": "Update",
            "apiVersion": VERSION,
            "time": T2,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:inner": {".": {}, "f:a": {}}, "f:text": {}},
        },
    ]


def test_an_update_that_changes_nothing_owns_nothing() -> None:
    live = apply(None, thing(text="x"))
    assert update(live, live, "other", T2) == live


def test_further_updates_of_a_manager_add_to_its_entry() -> None:
    live = apply(None, thing(text="x"))
    live = update(live, {**live, "number": 1}, "other", T2)
    live = update(live, {**live, "words": ["a"]}, "other", T3)
    entry = live["metadata"]["managedFields"][1]
    assert (entry["time"], entry["fieldsV1"]) == (T3, {"f:number": {}, "f:words": {}})
    gone = update(live, {key: value for key, value in live.items() if key != "words"}, "other", T3)
    assert owners(gone)["other Update"] == {"f:number": {}}


def test_fields_that_are_gone_belong_to_nobody() -> None:
    live = apply(None, thing(text="x", number=1))
    new = update(live, {key: value for key, value in live.items() if key != "text"}, "other", T2)
    assert owners(new) == {"one Apply": {"f:number": {}}}
    assert new["metadata"]["managedFields"][0]["time"] == T1


def test_a_client_that_leaves_managed_fields_out_does_not_drop_them() -> None:
    live = apply(None, thing(text="x"))
    assert owners(update(live, thing(text="x"), "other")) == {"one Apply": {"f:text": {}}}
    broken = thing(text="x")
    broken["metadata"]["managedFields"] = [{"manager": "m"}]
    assert owners(update(live, broken, "other")) == {"one Apply": {"f:text": {}}}


@pytest.mark.parametrize("reset", [[], [{}]])
def test_an_empty_list_resets_managed_fields(reset: Any) -> None:
    live = apply(None, thing(text="x"))
    new = thing(text="y")
    new["metadata"]["managedFields"] = reset
    assert "managedFields" not in update(live, new)["metadata"]


def test_a_client_may_change_managed_fields_but_not_through_a_subresource() -> None:
    live = apply(None, thing(text="x", number=1))
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"][0]["manager"] = "renamed"
    assert list(owners(update(live, new, "other"))) == ["renamed Apply"]
    status = FieldManager(VERSION, "Thing", everything(), "status", FieldSet())
    assert list(owners(update(live, new, "other", manager=status))) == ["one Apply"]
    new["metadata"]["managedFields"] = []
    assert list(owners(update(live, new, "other", manager=status))) == ["one Apply"]


def test_a_create_that_brings_managed_fields_is_tracked() -> None:
    new = thing(text="x")
    new["metadata"]["managedFields"] = apply(None, thing(text="x"))["metadata"]["managedFields"]
    assert owners(update(None, new, "other")) == {"other Update": {"f:text": {}}}


def test_a_subresource_has_entries_of_its_own() -> None:
    live = apply(None, thing(text="x"))
    status = FieldManager(VERSION, "Thing", everything(), "status", FieldSet.of(("f:inner",)))
    new = update(live, {**live, "number": 1, "inner": {"a": "ignored"}}, "one", T2, manager=status)
    entry = new["metadata"]["managedFields"][1]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:number": {}})
    text = conflict(new, thing(number=2)).message
    assert text == (
        'Apply failed with 1 conflict: conflict with "one" with subresource "status" using example.com/v1: .number'
    )


def test_entries_of_another_group_are_dropped_of_another_version_kept() -> None:
    live = apply(None, thing(text="x", number=1))
    entries = live["metadata"]["managedFields"]
    entries.append({**entries[0], "manager": "older", "apiVersion": "example.com/v1beta1"})
    entries.append({**entries[0], "manager": "foreign", "apiVersion": "v1"})
    assert list(owners(update(live, {**live, "text": "y"}, "other"))) == [
        "older Apply",
        "one Apply",
        "other Update",
    ]


def test_an_object_that_cannot_be_read_keeps_its_managed_fields() -> None:
    live = apply(None, thing(text="x"))
    new = update(live, {**live, "items": [{"value": "without a name"}]}, "other", T2)
    assert new["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_the_oldest_updaters_become_ancient_changes() -> None:
    live = apply(None, thing(text="x"))
    for number in range(MAX_UPDATERS + 2):
        labels = {**live.get("labels", {}), f"l{number:02d}": "x"}
        now = f"2026-11-29T10:01:{number:02d}Z"
        live = update(live, {**live, "labels": labels}, f"m{number:02d}", now)
    found = owners(live)
    updaters = [name for name in found if name.endswith(" Update")]
    assert len(updaters) == MAX_UPDATERS
    assert set(found["ancient-changes Update"]["f:labels"]) == {".", "f:l00", "f:l01", "f:l02"}
    assert "one Apply" in found
    ancient = next(e for e in live["metadata"]["managedFields"] if e["manager"] == "ancient-changes")
    assert ancient["time"] == "2026-11-29T10:01:02Z"


def test_times_alone_are_no_change() -> None:
    live = apply(None, thing(text="x"))
    touched = copy.deepcopy(live)
    touched["metadata"]["managedFields"][0]["time"] = T3
    settle_times(touched, live)
    assert touched == live
    changed = copy.deepcopy(touched) | {"number": 1}
    changed["metadata"]["managedFields"][0]["time"] = T3
    settle_times(changed, live)
    assert changed["metadata"]["managedFields"][0]["time"] == T3


# ---- from kubectl apply to server-side apply -----------------------------------------------------------------------
def client_side(**fields: Any) -> dict[str, Any]:
    """An object as `kubectl apply` left it: an annotation says what was applied, the fields are an updater's."""
    last = '{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"text":"x"}\n'
    made = thing(**fields)
    made["metadata"]["annotations"] = {ANNOTATION: last}
    return made


def test_kubectl_takes_over_what_it_applied_client_side_without_force() -> None:
    live = client_side(text="x", number=1)
    new = apply(live, thing(text="y"), "kubectl")
    assert new["text"] == "y"
    assert new["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"text":"y"}\n'
    )
    status = conflict(live, thing(text="y", number=2), "kubectl")
    assert [cause.field for cause in status.details.causes] == [".number"]
    assert len(conflict(live, thing(text="y", number=2), "other").details.causes) == 2


def test_what_was_changed_since_is_not_taken_over() -> None:
    assert conflict(client_side(text="changed"), thing(text="y"), "kubectl").code == 409


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"apiVersion":"v2"}', '{"apiVersion":"example.com/v1","nope":1}']
)
def test_an_annotation_that_says_nothing_allows_nothing(text: str) -> None:
    live = client_side(text="x")
    live["metadata"]["annotations"][ANNOTATION] = text
    assert conflict(live, thing(text="y"), "kubectl").code == 409


def test_an_annotation_that_would_be_too_large_is_dropped() -> None:
    new = apply(client_side(text="x"), thing(text="y" * 300_000), "kubectl")
    assert ANNOTATION not in new["metadata"]["annotations"]


# ---- endpoints -----------------------------------------------------------------------------------------------------
def test_endpoints_reset_what_their_strategies_reset() -> None:
    pods = Resource("", "v1", "pods", "Pod", "pod", subresources=("status",))
    managers = FieldManagers(pods, lambda: schema_for("v1", "Pod"))
    assert managers.of("") is managers.of("")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Failed"}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    new = managers.of("").apply(None, {**pod, "spec": spec}, "one", False, T1)
    assert list(owners(new)["one Apply"]) == ["f:spec"]
    new = managers.of("status").apply(new, {**pod, "spec": spec}, "kubelet", False, T2)
    assert list(owners(new)["kubelet Apply"]) == ["f:status"]
    plain = FieldManagers(Resource("", "v1", "configmaps", "ConfigMap", "configmap"), lambda: None)
    made = plain.of("").apply(None, {"apiVersion": "v1", "kind": "ConfigMap", "x": 1}, "one", False, T1)
    assert owners(made) == {"one Apply": {"f:x": {}}}


def test_what_go_writes_of_an_empty_object_is_not_owned_before_the_first_apply() -> None:
    resource = Resource("", "v1", "pods", "Pod", "pod", subresources=("status",))
    pods = FieldManagers(resource, lambda: schema_for("v1", "Pod")).of("")
    live = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}], "nodeName": "n"},
        "status": {"phase": "Pending"},
    }
    applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}
    assert owners(apply(live, applied, manager=pods))["before-first-apply Update"] == {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}},
            "f:nodeName": {},
        },
    }
