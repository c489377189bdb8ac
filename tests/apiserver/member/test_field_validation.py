"""fieldValidation: what clients hear of fields that a kind does not have, and that these are never kept."""

from typing import Any

import pytest
from fakemember import FakeExchange, Server

PODS = "/api/v1/namespaces/ns/pods"
MERGE, STRATEGIC, JSON = (
    {"content-type": f"application/{name}+json"}
    for name in ("merge-patch", "strategic-merge-patch", "json-patch")
)
YAML = {"content-type": "application/yaml"}
FAULTS = ['unknown field "spec.containers[0].bogus"', 'duplicate field "spec.nodeName"', 'unknown field "x"']


def body() -> str:
    return (
        '{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","bogus":1}],'
        '"nodeName":"m","nodeName":"n"},"x":{"a":1,"a":2}}'
    )


def warnings(answer: FakeExchange) -> list[str]:
    header = answer.answer_headers.get("warning", "")
    return [part.replace('\\"', '"')[len('299 - "') : -1] for part in header.split(", ") if part]


@pytest.mark.parametrize("validation", ["", "Warn", "Ignore"])
def test_unknown_fields_are_dropped_and_warned_of(server: Server, validation: str) -> None:
    answer = server.ask("POST", f"{PODS}?fieldValidation={validation}", body())
    assert answer.status == 201
    assert warnings(answer) == ([] if validation == "Ignore" else FAULTS)
    assert "bogus" not in answer.json["spec"]["containers"][0]
    assert answer.json["spec"]["nodeName"] == "n"
    assert "x" not in answer.json


def test_strict_refuses_all_at_once(server: Server) -> None:
    answer = server.ask("POST", f"{PODS}?fieldValidation=Strict", body())
    assert answer.status == 400
    assert answer.json["message"] == (
        f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: {", ".join(FAULTS)}'
    )
    assert server.ask("GET", f"{PODS}/p").status == 404


def test_a_body_without_faults_has_no_warnings(server: Server) -> None:
    sent = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    answer = server.ask("POST", f"{PODS}?fieldValidation=Strict", sent)
    assert (answer.status, warnings(answer)) == (201, [])


def test_updates_are_looked_at_too(server: Server) -> None:
    made = server.ask("POST", "/api/v1/namespaces/ns/configmaps", {"metadata": {"name": "c"}}).json
    path = "/api/v1/namespaces/ns/configmaps/c"
    changed = {**made, "bogus": 1, "metadata": {**made["metadata"], "color": "red"}}
    answer = server.ask("PUT", path, changed)
    assert sorted(warnings(answer)) == ['unknown field "bogus"', 'unknown field "metadata.color"']
    assert server.ask("PUT", f"{path}?fieldValidation=Strict", changed).status == 400


def test_yaml_is_looked_at_by_its_lines(server: Server) -> None:
    text = (
        "metadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: i\n    image: j\n    bogus: 1\n"
    )
    answer = server.ask("POST", PODS, text, headers=YAML)
    assert warnings(answer) == [
        'line 6: key "image" already set in map',
        'unknown field "spec.containers[0].bogus"',
    ]
    refused = server.ask("POST", f"{PODS}?fieldValidation=Strict", text, headers=YAML)
    assert "error converting YAML to JSON: yaml: unmarshal errors:" in refused.json["message"]


@pytest.fixture
def pod(server: Server) -> Server:
    server.ask(
        "POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    )
    return server


@pytest.mark.parametrize(
    ("headers", "patch", "faults"),
    [
        (MERGE, {"metadata": {"labels": {"a": "b"}}, "bogus": 1}, ['unknown field "bogus"']),
        (MERGE, {"spec": {"bogus": 1}, "metadata": {"color": 1}}, None),
        (STRATEGIC, {"spec": {"containers": [{"name": "c", "z": 1, "b": 2}]}}, None),
        (JSON, [{"op": "add", "path": "/spec/bogus", "value": 1}], ['unknown field "spec.bogus"']),
    ],
)
def test_patches_cannot_bring_them_in(
    pod: Server, headers: dict[str, str], patch: Any, faults: list[str] | None
) -> None:
    refused = pod.ask("PATCH", f"{PODS}/p?fieldValidation=Strict", patch, headers=headers)
    assert refused.status == 422
    assert refused.json["details"]["causes"][0]["field"] == "patch"
    assert "strict decoding error: unknown field" in refused.json["message"]
    answer = pod.ask("PATCH", f"{PODS}/p", patch, headers=headers)
    assert answer.status == 200
    assert "unknown field" in answer.answer_headers["warning"]
    if faults is not None:
        assert warnings(answer) == faults
    there = pod.ask("GET", f"{PODS}/p").json
    assert "bogus" not in there
    assert "bogus" not in there["spec"]
    assert set(there["spec"]["containers"][0]) & {"z", "b"} == set()
    quiet = pod.ask("PATCH", f"{PODS}/p?fieldValidation=Ignore", patch, headers=headers)
    assert warnings(quiet) == []


def test_keys_that_stand_twice_in_a_patch_are_minded(pod: Server) -> None:
    twice = '{"metadata":{"labels":{"a":"1","a":"2"}}}'
    answer = pod.ask("PATCH", f"{PODS}/p", twice, headers=MERGE)
    assert warnings(answer) == ['duplicate field "metadata.labels.a"']
    assert answer.json["metadata"]["labels"] == {"a": "2"}
    refused = pod.ask("PATCH", f"{PODS}/p?fieldValidation=Strict", twice, headers=STRATEGIC)
    assert refused.json["message"] == (
        ' "" is invalid: patch: Invalid value: "map[metadata:map[labels:map[a:2]]]": '
        'strict decoding error: duplicate field "metadata.labels.a"'
    )
    operation = '[{"op":"add","op":"test","path":"/metadata/name","value":"p","bogus":1}]'
    answer = pod.ask("PATCH", f"{PODS}/p", operation, headers=JSON)
    assert warnings(answer) == [
        'json patch duplicate field "[0].op"',
        'json patch unknown field "[0].bogus"',
    ]


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        (MERGE, "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"),
        (STRATEGIC, "unrecognized type: int32"),
    ],
)
def test_a_patched_object_of_another_type_is_the_patch_s_fault(
    pod: Server, headers: dict[str, str], why: str
) -> None:
    answer = pod.ask("PATCH", f"{PODS}/p", {"spec": {"priority": "high"}}, headers=headers)
    assert answer.status == 422
    assert answer.json["message"].startswith(' "" is invalid: patch: Invalid value: "')
    assert answer.json["message"].endswith(why)
