"""Objects that tests put into the fake API server."""

from __future__ import annotations

from random import Random
from typing import Any

from harness.fleet.certificates import Validity
from harness.fleet.kubelet import Kubelet
from harness.fleet.options import KubeletOptions
from tests.fleet.fakeapi import EPOCH_S, World

TOKEN_VOLUME: dict[str, Any] = {
    "name": "kube-api-access-x",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": []}},
        ]
    },
}


def pod(
    name: str,
    node: str = "",
    *,
    secrets: tuple[str, ...] = (),
    configmaps: tuple[str, ...] = (),
    token: bool = True,
    env_secret: str = "",
    grace_s: int = 30,
    node_selector: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A pod as a server would hold it."""
    volumes = [{"name": f"v-{each}", "secret": {"secretName": each}} for each in secrets]
    volumes += [{"name": f"v-{each}", "configMap": {"name": each}} for each in configmaps]
    container: dict[str, Any] = {"name": "c", "image": "pause"}
    if env_secret:
        container["env"] = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": env_secret, "key": "k"}}}]
    spec: dict[str, Any] = {
        "containers": [container],
        "volumes": volumes + ([TOKEN_VOLUME] if token else []),
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": grace_s,
        "schedulerName": "default-scheduler",
    }
    if node:
        spec["nodeName"] = node
    if node_selector:
        spec["nodeSelector"] = node_selector
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Pending"}}


def with_objects(world: World, namespace: str, *names: str) -> None:
    """Secrets for names beginning with s, configmaps for the rest, and kube-root-ca.crt."""
    for name in (*names, "kube-root-ca.crt"):
        world.create(
            "secrets" if name.startswith("s") else "configmaps", namespace, {"metadata": {"name": name}}
        )


def add_kubelet(world: World, name: str = "n1", seed: int = 1, **options: Any) -> Kubelet:
    kubelet = Kubelet(name, KubeletOptions(**options), Random(seed), EPOCH_S)
    world.add(kubelet)
    world.checks.append(kubelet.validate)
    return kubelet


class OwnOne:
    """A node's client certificate: the first lives `life_s` from the world's beginning; one that is signed says of
    itself when its life begins and ends, in seconds of the world's time."""

    def __init__(self, life_s: float) -> None:
        self._life_s = life_s
        self.made = 0

    def request(self) -> bytes:
        self.made += 1
        return b"-----BEGIN %d" % (self.made - 1)

    def validity(self, certificate: bytes = b"") -> Validity | None:
        try:
            begins_s, ends_s = map(float, certificate.split()) if certificate else (0.0, self._life_s)
        except ValueError:
            return None
        return Validity(EPOCH_S + begins_s, EPOCH_S + ends_s)
