"""What comes back of what is posted: a real kube-apiserver v1.36's defaults, kind by kind.

Taken from the API types and the defaulting functions of Kubernetes v1.36 (staging/src/k8s.io/api/*/types.go,
pkg/apis/*/v1/defaults.go), and from `kubectl get -o yaml` of such objects; metadata is checked where it is special.
"""

from typing import Any

import pytest
from defaultcases import CASES, Object
from fakemember import Server


@pytest.fixture(scope="module")
def shared() -> Any:
    server = Server()
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
    yield server
    server.close()


def collection(server: Server, version: str, resource: str) -> str:
    group = version.rpartition("/")[0]
    endpoint = server.member.router.endpoints[group, version.rpartition("/")[2], resource]
    prefix = f"/apis/{version}" if group else "/api/v1"
    return f"{prefix}/namespaces/ns/{resource}" if endpoint.resource.namespaced else f"{prefix}/{resource}"


def with_uid(value: Any, uid: str) -> Any:
    """The expectation with what is the job's own uid filled in."""
    if isinstance(value, dict):
        return {key: with_uid(item, uid) for key, item in value.items()}
    return uid if value == "UID" else value


@pytest.mark.parametrize(("version", "resource", "posted", "expected", "generation"), CASES)
def test_what_is_posted_comes_back_complete(
    shared: Server, version: str, resource: str, posted: Object, expected: Object, generation: int | None
) -> None:
    path = collection(shared, version, resource)
    answer = shared.ask("POST", path, {"metadata": {"name": "x"}, **posted})
    assert answer.status == 201, answer.data
    got = answer.json
    meta = got.pop("metadata")
    assert meta.get("generation") == generation
    assert got.pop("apiVersion") == version
    assert got.pop("kind")
    special = {key: value for key, value in expected.items() if key.startswith("metadata.")}
    for key, value in special.items():
        assert meta[key.partition(".")[2]] == with_uid(value, meta["uid"])
    wanted = {key: value for key, value in expected.items() if key not in special}
    assert got == with_uid(wanted, meta["uid"])

    again = shared.ask("PUT", f"{path}/x", shared.ask("GET", f"{path}/x").json)
    assert again.status == 200, again.data
    assert again.json["metadata"]["resourceVersion"] == meta["resourceVersion"], "sending it back changed it"
    assert shared.ask("DELETE", f"{path}/x", {"propagationPolicy": "Background"}).status == 200
    assert shared.ask("GET", f"{path}/x").status == 404
