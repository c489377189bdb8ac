"""Strategic merge patches follow the merge keys of Kubernetes' types."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.patchschema import TYPES, ListField, MapField
from harness.wire.strategic import MergeError, apply_strategic
from harness.wire.strategicdiff import diff_strategic


def _apply(original: dict[str, Any], patch: dict[str, Any], kind: str = "Pod") -> Any:
    before = copy.deepcopy((original, patch))
    result = apply_strategic(original, patch, kind)
    assert (original, patch) == before
    return result


def _spec(original: dict[str, Any], patch: dict[str, Any], kind: str = "Pod") -> Any:
    return _apply({"spec": original}, {"spec": patch}, kind)["spec"]


def _containers(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "image": f"{name}:1"} for name in names]


def test_containers_merge_by_name() -> None:
    result = _spec({"containers": _containers("a", "b")}, {"containers": [{"name": "b", "image": "b:2"}]})
    assert result["containers"] == [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]


def test_a_new_container_goes_before_those_of_the_server() -> None:
    result = _spec(
        {"containers": _containers("a", "b")}, {"containers": [{"name": "c", "args": None, "x": {"y": None}}]}
    )
    assert [each["name"] for each in result["containers"]] == ["c", "a", "b"]
    assert result["containers"][0] == {"name": "c", "x": {}}


def test_env_ports_and_mounts_merge_by_their_keys() -> None:
    before = {
        "name": "a",
        "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}],
        "ports": [{"containerPort": 80, "name": "http"}],
        "volumeMounts": [{"mountPath": "/a", "name": "v"}],
        "args": ["1", "2"],
    }
    patch = {
        "name": "a",
        "env": [{"name": "Y", "value": "3"}],
        "ports": [{"containerPort": 80, "name": "web"}],
        "volumeMounts": [{"mountPath": "/a", "readOnly": True}],
        "args": ["3"],
    }
    assert _spec({"containers": [before]}, {"containers": [patch]})["containers"] == [
        {
            "name": "a",
            "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "3"}],
            "ports": [{"containerPort": 80, "name": "web"}],
            "volumeMounts": [{"mountPath": "/a", "name": "v", "readOnly": True}],
            "args": ["3"],
        }
    ]


def test_lists_without_a_merge_key_are_replaced() -> None:
    result = _spec(
        {"tolerations": [{"key": "a"}], "nodeSelector": {"a": "b"}}, {"tolerations": [{"key": "b"}]}
    )
    assert result == {"tolerations": [{"key": "b"}], "nodeSelector": {"a": "b"}}


def test_conditions_come_in_the_patch_s_order_as_recorded() -> None:
    original = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    patch = {
        "status": {
            "conditions": [
                {"type": "ContainersReady", "status": "True"},
                {"type": "Ready", "status": "False"},
            ]
        }
    }
    assert _apply(original, patch)["status"] == {
        "phase": "Running",
        "conditions": [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}],
    }


def test_addresses_of_a_node_merge_by_type_and_taints_do_not() -> None:
    original = {
        "spec": {"taints": [{"key": "a"}], "podCIDRs": ["10.0.0.0/24"]},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "1"}, {"type": "Hostname", "address": "n"}]
        },
    }
    patch = {
        "spec": {"taints": [{"key": "b"}], "podCIDRs": ["fd00::/64"]},
        "status": {"addresses": [{"type": "InternalIP", "address": "2"}]},
    }
    result = _apply(original, patch, "Node")
    assert result["spec"] == {"taints": [{"key": "b"}], "podCIDRs": ["fd00::/64", "10.0.0.0/24"]}
    assert result["status"]["addresses"] == [
        {"type": "InternalIP", "address": "2"},
        {"type": "Hostname", "address": "n"},
    ]


def test_finalizers_are_a_set_and_owners_merge_by_uid() -> None:
    original = {"metadata": {"finalizers": ["a", "b"], "ownerReferences": [{"uid": "1", "name": "x"}]}}
    patch = {"metadata": {"finalizers": ["b", "c"], "ownerReferences": [{"uid": "1", "controller": True}]}}
    for kind in ("ConfigMap", "Pod", "NoSuchKind"):
        assert _apply(original, patch, kind)["metadata"] == {
            "finalizers": ["a", "b", "c"],
            "ownerReferences": [{"uid": "1", "name": "x", "controller": True}],
        }


def test_scalars_are_deleted_from_a_set() -> None:
    original = {"metadata": {"finalizers": ["a", "b", "c"]}}
    assert _apply(original, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "z"]}})[
        "metadata"
    ] == {"finalizers": ["a", "c"]}
    assert (
        _apply({"metadata": {}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}})["metadata"]
        == {}
    )
    with pytest.raises(MergeError, match="invalid patch format of primitive list"):
        _apply(original, {"metadata": {"$deleteFromPrimitiveList/finalizers": "b"}})


def test_what_a_patch_adds_to_a_set_it_can_delete_again() -> None:
    patch = {"finalizers": ["a", "b"], "$deleteFromPrimitiveList/finalizers": ["a"]}
    assert _apply({"metadata": {"finalizers": ["c"]}}, {"metadata": patch}) == {
        "metadata": {"finalizers": ["b", "c"]}
    }


def test_elements_that_are_all_there_merge_in_place() -> None:
    original = {
        "conditions": [{"type": "A", "status": "False", "reason": "r"}, {"type": "B", "status": "True"}]
    }
    patch = {"conditions": [{"type": "A", "status": "True", "reason": None}, {"type": "B", "x": {"y": None}}]}
    result = _apply({"status": original}, {"status": patch})["status"]["conditions"]
    assert result == [{"type": "A", "status": "True"}, {"type": "B", "status": "True", "x": {}}]


def test_of_elements_with_one_key_the_first_is_merged() -> None:
    original = {"conditions": [{"type": "A", "n": 1}, {"type": "A", "n": 2}]}
    patch = {"conditions": [{"type": "A", "m": 1}, {"type": "A", "m": 2}]}
    result = _apply({"status": original}, {"status": patch})["status"]["conditions"]
    assert result == [{"type": "A", "n": 1, "m": 2}, {"type": "A", "n": 2}]


def test_a_field_without_a_name_is_a_field() -> None:
    assert _apply({"": 1, "a": 2}, {"": {"b": None}}) == {"": {}, "a": 2}


def test_an_element_is_deleted_by_its_key() -> None:
    result = _spec(
        {"containers": _containers("a", "b", "c")}, {"containers": [{"$patch": "delete", "name": "b"}]}
    )
    assert [each["name"] for each in result["containers"]] == ["a", "c"]


def test_a_list_is_replaced_on_request() -> None:
    result = _spec(
        {"containers": _containers("a", "b")}, {"containers": [{"$patch": "replace"}, {"name": "z"}]}
    )
    assert result["containers"] == [{"name": "z"}]


def test_a_map_is_replaced_or_emptied_on_request() -> None:
    labels = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    assert _apply(labels, {"metadata": {"labels": {"$patch": "replace", "c": "3"}}})["metadata"][
        "labels"
    ] == {"c": "3"}
    assert _apply(labels, {"metadata": {"labels": {"$patch": "delete"}}})["metadata"]["labels"] == {}
    assert _apply({}, {"metadata": {"$patch": "delete"}}) == {}
    assert _apply({"metadata": "text"}, {"metadata": {"$patch": "delete"}}) == {}


def test_retain_keys_drops_what_it_does_not_name() -> None:
    original = {"volumes": [{"name": "v", "emptyDir": {}, "x": 1}]}
    patch = {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}
    assert _spec(original, patch)["volumes"] == [{"name": "v", "hostPath": {"path": "/"}}]
    strategy = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": None}}
    assert _spec(strategy, patch, "Deployment") == {"strategy": {"type": "Recreate"}}
    with pytest.raises(MergeError, match="invalid patch format of retainKeys"):
        _spec(strategy, {"strategy": {"$retainKeys": ["type"], "other": 1}}, "Deployment")


def test_the_order_of_a_list_is_set() -> None:
    original = {"containers": _containers("a", "b", "c")}
    patch = {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "d"}, {"name": "a"}],
        "containers": [{"name": "d"}, {"name": "a", "image": "a:2"}],
    }
    result = _spec(original, patch)["containers"]
    assert [each["name"] for each in result] == ["b", "c", "d", "a"]
    assert result[-1] == {"name": "a", "image": "a:2"}


def test_an_order_alone_sorts_and_what_it_does_not_name_keeps_its_place() -> None:
    original = {"containers": _containers("a", "b", "c")}
    result = _spec(original, {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]})
    assert [each["name"] for each in result["containers"]] == ["c", "b", "a"]
    finalizers = {"metadata": {"finalizers": ["x", "y"]}}
    patch = {"metadata": {"$setElementOrder/finalizers": ["z", "y"], "finalizers": ["z"]}}
    assert _apply(finalizers, patch)["metadata"]["finalizers"] == ["z", "x", "y"]
    assert _spec({}, {"$setElementOrder/containers": [{"name": "a"}]}) == {}
    patch = {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}]}
    assert _spec({}, patch) == {"containers": [{"name": "a"}]}


def test_an_order_of_a_list_that_does_not_merge_sorts_what_replaces_it() -> None:
    patch = {"$setElementOrder/args": ["b", "a"], "args": ["b", "a"]}
    assert _spec({"args": ["a", "c"]}, patch) == {"args": ["b", "a"]}


def test_empty_lists_stay_and_objects_in_a_set_are_an_error() -> None:
    assert _spec({"containers": []}, {"containers": []}) == {"containers": []}
    with pytest.raises(MergeError, match="cannot merge lists without merge key"):
        _apply({"metadata": {"finalizers": [{}]}}, {"metadata": {"finalizers": [{}]}})


def test_an_order_that_contradicts_its_list_is_an_error() -> None:
    with pytest.raises(MergeError, match="doesn't match \\$setElementOrder"):
        _spec(
            {"containers": _containers("a")},
            {
                "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
                "containers": [{"name": "b"}, {"name": "a"}],
            },
        )
    with pytest.raises(MergeError, match="expected a"):
        _spec({"containers": _containers("a")}, {"$setElementOrder/containers": "a"})


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([{"image": "x"}], "does not contain declared merge key: name"),
        ([{"$patch": "delete"}], "does not contain declared merge key: name"),
        ([{"$patch": "merge", "name": "a"}], "merging lists cannot yet be specified in the patch"),
        ([{"$patch": "bogus", "name": "a"}], "unknown patch type: bogus in map"),
        (["a"], "expected a map"),
    ],
)
def test_elements_that_cannot_be_merged_are_an_error(patch: list[Any], message: str) -> None:
    with pytest.raises(MergeError, match=message):
        _spec({"containers": _containers("a")}, {"containers": patch})


def test_pod_templates_have_the_rules_of_pods() -> None:
    original = {"template": {"spec": {"containers": _containers("a")}}}
    patch = {"template": {"spec": {"containers": [{"name": "a", "image": "a:2"}]}}}
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"):
        assert _spec(original, patch, kind)["template"]["spec"]["containers"] == [
            {"name": "a", "image": "a:2"}
        ]


def test_every_type_that_the_table_names_is_in_it() -> None:
    for fields in TYPES.values():
        for field in fields.values():
            assert isinstance(field, ListField | MapField)
            assert field.type in TYPES


# ---- differences ---------------------------------------------------------------------------------------------------
def test_a_kubelet_s_heartbeat_is_the_patch_that_client_go_makes() -> None:
    before = {
        "status": {
            "conditions": [{"type": "A", "status": "True", "at": 1}, {"type": "B", "status": "True", "at": 1}]
        }
    }
    after = {
        "status": {
            "conditions": [{"type": "A", "status": "True", "at": 2}, {"type": "B", "status": "True", "at": 2}]
        }
    }
    assert diff_strategic(before, after, "Node") == {
        "status": {
            "$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}],
            "conditions": [{"at": 2, "type": "A"}, {"at": 2, "type": "B"}],
        }
    }
    assert diff_strategic(before, before, "Node") == {}


def test_deletions_scalars_and_retained_keys() -> None:
    before = {
        "metadata": {"finalizers": ["a", "b"], "labels": {"x": "1"}},
        "spec": {"containers": _containers("a", "b"), "volumes": [{"name": "v", "emptyDir": {}}]},
    }
    after = {
        "metadata": {"finalizers": ["b", "c"]},
        "spec": {"containers": _containers("b"), "volumes": [{"name": "v", "hostPath": {}}]},
    }
    assert diff_strategic(before, after, "Pod") == {
        "metadata": {
            "labels": None,
            "finalizers": ["c"],
            "$deleteFromPrimitiveList/finalizers": ["a"],
            "$setElementOrder/finalizers": ["b", "c"],
        },
        "spec": {
            "containers": [{"$patch": "delete", "name": "a"}],
            "$setElementOrder/containers": [{"name": "b"}],
            "volumes": [{"name": "v", "hostPath": {}, "emptyDir": None, "$retainKeys": ["hostPath", "name"]}],
            "$setElementOrder/volumes": [{"name": "v"}],
        },
    }


_NAMES = st.lists(st.sampled_from("abcde"), unique=True, max_size=4)
_SCALARS = st.integers(0, 2) | st.sampled_from(["x", "y"])


def _elements(key: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    def named(names: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
        rest = st.dictionaries(st.sampled_from(["p", "q"]), _SCALARS, max_size=2)
        return st.tuples(*[rest.map(lambda extra, name=name: {key: name, **extra}) for name in names]).map(
            list
        )

    return _NAMES.flatmap(named)


_PODS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"finalizers": _NAMES, "labels": st.dictionaries(st.sampled_from("ab"), _SCALARS)}
        ),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "containers": _elements("name"),
                "volumes": _elements("name"),
                "tolerations": st.lists(_SCALARS, max_size=2),
                "nodeName": _SCALARS,
            },
        ),
        "status": st.fixed_dictionaries({}, optional={"conditions": _elements("type")}),
    },
)


@given(_PODS, _PODS)
def test_a_strategic_diff_leads_to_its_target(original: dict[str, Any], modified: dict[str, Any]) -> None:
    patch = diff_strategic(original, modified, "Pod")
    assert _apply(original, patch) == modified


_DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/containers", "$setElementOrder/finalizers")
_FIELDS = ("metadata", "spec", "containers", "finalizers", "name", "volumes")
_WILD_KEYS = st.sampled_from([*_FIELDS, *_DIRECTIVES, "$deleteFromPrimitiveList/finalizers"])
_WILD = st.recursive(
    st.none() | st.sampled_from(["a", "b", "delete", "replace", "merge", 1, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WILD_KEYS, inner, max_size=4),
    max_leaves=20,
)
_WILD_OBJECTS = st.fixed_dictionaries(
    {}, optional={"metadata": st.dictionaries(_WILD_KEYS, _WILD), "spec": st.dictionaries(_WILD_KEYS, _WILD)}
)


@given(_WILD_OBJECTS, _WILD_OBJECTS)
def test_only_the_declared_error_escapes(original: dict[str, Any], patch: dict[str, Any]) -> None:
    try:
        _apply(original, patch)
    except MergeError as error:
        assert str(error)  # noqa: PT017
