"""What objects look like once a server has completed them, kind by kind, and what it refuses."""

import random

import pytest

from harness.apiserver.apierrors import FieldError
from harness.apiserver.resources import RESOURCES
from harness.apiserver.strategies import Context, Strategy, strategy_for
from harness.apiserver.strategies.core import corrupt_at
from harness.apiserver.strategies.podspec import default_pod, default_spec, qos_class

BY_NAME = {resource.resource: strategy_for(resource) for resource in RESOURCES if resource.hub is None}
CONTEXT = Context("2026-01-01T00:00:00Z", random.Random(1))


def created(resource: str, new: dict) -> dict:
    strategy = BY_NAME[resource]
    new.setdefault("metadata", {"name": "x"})
    strategy.default(new)
    strategy.fill_create(new, "ns", CONTEXT)
    return strategy.ordered(new)


def test_metadata_is_the_server_s_where_it_decides() -> None:
    meta = {
        "name": "x",
        "uid": "mine",
        "creationTimestamp": "1999-01-01T00:00:00Z",
        "deletionTimestamp": "1999-01-01T00:00:00Z",
        "generation": 9,
        "labels": {},
    }
    found = created("configmaps", {"metadata": meta})["metadata"]
    assert list(found) == ["name", "namespace", "uid", "creationTimestamp"]
    assert found["uid"] != "mine"
    assert found["creationTimestamp"] == CONTEXT.now


def test_a_secret_s_plain_strings_become_data() -> None:
    secret = created("secrets", {"stringData": {"k": "v"}, "data": {"o": "dg=="}})
    assert secret["data"] == {"o": "dg==", "k": "dg=="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


@pytest.mark.parametrize(
    ("text", "at"),
    [("dg==", None), ("", None), ("not base64!", 3), ("dg=", 0), ("d===", 1), ("dgdg", None)],
)
def test_base64_faults_are_found_where_go_finds_them(text: str, at: int | None) -> None:
    found = corrupt_at(text)
    assert (found is None) is (at is None)
    if text == "not base64!":
        assert found == at


def test_images_are_pulled_by_their_tag() -> None:
    policies = {
        "pause": "Always",
        "pause:latest": "Always",
        "pause:3.9": "IfNotPresent",
        "localhost:5000/pause": "Always",
        "localhost:5000/pause:1": "IfNotPresent",
        "pause@sha256:aa": "IfNotPresent",
    }
    for image, policy in policies.items():
        spec = {"containers": [{"name": "c", "image": image}]}
        default_spec(spec)
        assert spec["containers"][0]["imagePullPolicy"] == policy, image


def test_limits_are_requests_where_none_are_given() -> None:
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1"}}}]}
    default_spec(spec)
    assert "requests" not in spec["containers"][0]["resources"]  # a template stays so
    default_pod(spec)
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1"}
    assert qos_class(spec) == "Guaranteed"


def test_volumes_get_modes_and_sources() -> None:
    volumes = [
        {"name": "a", "secret": {"secretName": "s"}},
        {"name": "b"},
        {"name": "c", "hostPath": {"path": "/"}},
        {"name": "d", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    default_spec(spec)
    assert spec["volumes"][0]["secret"]["defaultMode"] == 420
    assert spec["volumes"][1] == {"name": "b", "emptyDir": {}}
    assert spec["volumes"][2]["hostPath"]["type"] == ""
    token = spec["volumes"][3]["projected"]["sources"][0]["serviceAccountToken"]
    assert token["expirationSeconds"] == 3600


def names_refused(strategy: Strategy, names: list[str]) -> list[str]:
    return [name for name in names if strategy.metadata_errors({"name": name})]


def test_names_follow_the_kind_s_rule() -> None:
    names = ["a", "a.b", "1a", "A", "-a", "a" * 63, "a" * 64, "a" * 253, "a" * 254]
    assert names_refused(BY_NAME["configmaps"], names) == ["A", "-a", "a" * 254]
    labels = ["a.b", "A", "-a", "a" * 64, "a" * 253, "a" * 254]
    assert names_refused(BY_NAME["namespaces"], names) == labels
    assert names_refused(BY_NAME["services"], names) == [
        "a.b",
        "1a",
        "A",
        "-a",
        "a" * 64,
        "a" * 253,
        "a" * 254,
    ]


@pytest.mark.parametrize(
    ("labels", "faults"),
    [
        ({"app": "x"}, 0),
        ({"example.com/app": ""}, 0),
        ({"a/b/c": "x"}, 1),
        ({"/x": "y"}, 1),
        ({"app": "no spaces"}, 1),
        ({"a" * 64: "x"}, 1),
        ({"app": "v" * 64}, 1),
    ],
)
def test_labels_are_validated(labels: dict, faults: int) -> None:
    errors = BY_NAME["configmaps"].metadata_errors({"name": "x", "labels": labels})
    assert len(errors) == faults


def test_finalizers_cannot_come_while_an_object_is_being_deleted() -> None:
    before = {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/b"]}
    strategy = BY_NAME["configmaps"]
    assert not strategy.metadata_update_errors({**before, "finalizers": []}, before)
    errors = strategy.metadata_update_errors({**before, "finalizers": ["a.io/b", "c.io/d"]}, before)
    assert [type(error) for error in errors] == [FieldError]
    assert 'found new finalizers []string{"c.io/d"}' in errors[0].message


def test_an_immutable_configmap_stays_as_it_is() -> None:
    strategy = BY_NAME["configmaps"]
    old = {"metadata": {"name": "x"}, "immutable": True, "data": {"k": "v"}}
    new = {"metadata": {"name": "x"}, "data": {"k": "w"}}
    assert [error.field for error in strategy.validate_update(new, old)] == ["immutable", "data"]


def test_an_event_belongs_to_the_namespace_of_its_object() -> None:
    event = created("events", {"involvedObject": {"namespace": "other", "name": "p"}})
    errors = BY_NAME["events"].validate(event)
    assert [error.field for error in errors] == ["involvedObject.namespace"]
