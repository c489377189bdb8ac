"""Which objects a pod gives its node access to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apiserver.auth.nodegraph import Graph
from harness.apiserver.auth.nodereferences import Vertex, decode_pod, references
from tests.apiserver.auth.pods import pod, secret_volume

SECRET, CONFIGMAP = Vertex.SECRET, Vertex.CONFIGMAP


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, (SECRET, "s")),
        ({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}, (CONFIGMAP, "c")),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]}, (SECRET, "s")),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}]}}]},
            (CONFIGMAP, "c"),
        ),
        ({"volumes": [{"name": "v", "csi": {"nodePublishSecretRef": {"name": "s"}}}]}, (SECRET, "s")),
        ({"volumes": [{"name": "v", "rbd": {"secretRef": {"name": "s"}}}]}, (SECRET, "s")),
        ({"volumes": [{"name": "v", "scaleIO": {"secretRef": {"name": "s"}}}]}, (SECRET, "s")),
        ({"volumes": [{"name": "v", "azureFile": {"secretName": "s"}}]}, (SECRET, "s")),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "d"}}]}, (Vertex.CLAIM, "d")),
        ({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]}, (Vertex.CLAIM, "p-v")),
        ({"imagePullSecrets": [{"name": "s"}]}, (SECRET, "s")),
        ({"serviceAccountName": "default"}, (Vertex.SERVICE_ACCOUNT, "default")),
        (
            {"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]},
            (SECRET, "s"),
        ),
        ({"containers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "c"}}}]}]}, (CONFIGMAP, "c")),
        ({"initContainers": [{"envFrom": [{"secretRef": {"name": "s"}}]}]}, (SECRET, "s")),
        ({"ephemeralContainers": [{"envFrom": [{"configMapRef": {"name": "c"}}]}]}, (CONFIGMAP, "c")),
    ],
)
def test_every_kind_of_reference_counts(spec: dict[str, object], found: tuple[Vertex, str]) -> None:
    kind, name = found
    assert references(decode_pod(pod("p", "n1", **spec))) == {(kind, "na", name)}


def test_what_refers_to_nothing_gives_nothing() -> None:
    spec = {
        "volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "w", "projected": {"sources": [{"downwardAPI": {}}]}},
        ],
        "containers": [
            {"env": [{"name": "A", "value": "b"}, {"valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}
        ],
        "initContainers": None,
    }
    assert references(decode_pod(pod("p", "n1", **spec))) == set()


def test_a_mirror_pod_gives_its_node_nothing() -> None:
    assert references(decode_pod(pod("p", "n1", mirror=True, volumes=[secret_volume("s")]))) == set()


def test_access_lasts_until_the_last_pod_on_the_node_is_gone() -> None:
    graph = Graph()
    key = (SECRET, "na", "s")
    graph.add_pod("na/p1", "n1", {key})
    graph.add_pod("na/p2", "n1", {key})
    graph.add_pod("na/p3", "n2", {key})
    graph.delete_pod("na/p1")
    assert graph.leads_to(SECRET, "na", "s", "n1")
    graph.delete_pod("na/p2")
    assert not graph.leads_to(SECRET, "na", "s", "n1")
    assert graph.leads_to(SECRET, "na", "s", "n2")
    graph.delete_pod("na/p3")
    graph.delete_pod("na/p3")
    graph.validate()
    assert graph.pods == 0


def test_a_pod_of_the_same_name_replaces_the_one_before() -> None:
    graph = Graph()
    graph.add_pod("na/p", "n1", {(SECRET, "na", "s")})
    graph.add_pod("na/p", "n2", {(SECRET, "na", "t")})
    assert not graph.leads_to(SECRET, "na", "s", "n1")
    assert graph.leads_to(SECRET, "na", "t", "n2")
    assert graph.pod_on("na/p", "n2")
    assert not graph.pod_on("na/p", "n1")


OPERATIONS = st.lists(
    st.tuples(
        st.booleans(), st.integers(0, 5), st.integers(0, 3), st.frozensets(st.integers(0, 4), max_size=4)
    )
)


@given(OPERATIONS)
def test_counts_are_always_those_of_the_pods(
    operations: list[tuple[bool, int, int, frozenset[int]]],
) -> None:
    graph = Graph()
    pods: dict[int, tuple[int, frozenset[int]]] = {}
    for add, name, node, secrets in operations:
        if add:
            graph.add_pod(f"na/{name}", str(node), {(SECRET, "na", str(secret)) for secret in secrets})
            pods[name] = (node, secrets)
        else:
            graph.delete_pod(f"na/{name}")
            pods.pop(name, None)
    graph.validate()
    for node in range(4):
        for secret in range(5):
            used = any(where == node and secret in secrets for where, secrets in pods.values())
            assert graph.leads_to(SECRET, "na", str(secret), str(node)) == used
