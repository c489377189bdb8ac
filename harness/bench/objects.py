"""What a benchmark's kubelets hold watches on: pods that are bound already, and what these mount.

A kubelet has five watches of its own (its pods, its node, services, drivers, runtime classes), one for the CA bundle of
its pods' tokens, and one for each distinct secret and configmap. So pods with the right number of these give any number
of watches, the way they come about on a real node: nothing is scripted. Nodes in groups share their objects, as the
pods of one Deployment do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.wire.errors import ConfigError

NAMESPACE = "bench"
OWN_WATCHES = 6
SHARE = 50  # nodes that have the same secrets and configmaps
OBJECTS_A_POD = 40
_DATA = "eHh4eHh4" * 16


def node_name(index: int) -> str:
    """As `WorkerContext` of the first worker names them."""
    return f"swarmlet-0-{index}"


def check_watches(watches: int) -> None:
    """Raises ConfigError for fewer than a kubelet has anyway."""
    if not OWN_WATCHES <= watches <= 200:
        raise ConfigError(
            f"--watches {watches}: not within {OWN_WATCHES} (those of a node with one pod) to 200"
        )


def base_objects() -> list[tuple[str, bytes]]:
    """(path, body) of what everything else needs, in order; a controller manager makes the last two elsewhere."""
    bundle = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "none"}}
    return [
        ("/api/v1/namespaces", _encode({"metadata": {"name": NAMESPACE}})),
        (_path("serviceaccounts"), _encode({"metadata": {"name": "default"}})),
        (_path("configmaps"), _encode(bundle)),
    ]


def mounted_objects(nodes: int, watches: int) -> Iterator[tuple[str, bytes]]:
    """(path, body) of the secrets and configmaps of all nodes."""
    for group in range(-(-nodes // SHARE)):
        for number in range(watches - OWN_WATCHES):
            kind, name = object_of(group, number)
            yield _path(kind), mounted_object(name, 0)


def mounted_object(name: str, generation: int) -> bytes:
    """A secret or configmap; each generation differs, so that writing it is a change."""
    return _encode(
        {"metadata": {"name": name, "labels": {"generation": str(generation)}}, "data": {"v": _DATA}}
    )


def object_of(group: int, number: int) -> tuple[str, str]:
    """(resource, name): every other one is a secret."""
    return ("configmaps", "secrets")[number % 2], f"o-{group}-{number}"


def bound_pods(nodes: int, watches: int) -> Iterator[tuple[str, bytes]]:
    """(path, body) of each node's pods, at least one, with `OBJECTS_A_POD` of the node's objects each."""
    numbers = range(watches - OWN_WATCHES)
    chunks = [numbers[at : at + OBJECTS_A_POD] for at in range(0, len(numbers), OBJECTS_A_POD)] or [numbers]
    for index in range(nodes):
        for chunk, held in enumerate(chunks):
            yield _path("pods"), _pod(index, chunk, [object_of(index // SHARE, number) for number in held])


def _pod(node: int, chunk: int, objects: list[tuple[str, str]]) -> bytes:
    volumes: list[dict[str, Any]] = [
        {"name": name, "secret": {"secretName": name}}
        if kind == "secrets"
        else {"name": name, "configMap": {"name": name}}
        for kind, name in objects
    ]
    mounts = [{"name": name, "mountPath": f"/{name}"} for _, name in objects]
    container = {"name": "c", "image": "registry.k8s.io/pause:3.9", "volumeMounts": mounts}
    spec = {"nodeName": node_name(node), "containers": [container], "volumes": volumes}
    return _encode({"metadata": {"name": f"p-{node}-{chunk}"}, "spec": spec})


def _path(resource: str) -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/{resource}"


def _encode(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value)
