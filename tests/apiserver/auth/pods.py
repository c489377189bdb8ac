"""Pods as the node authorizer hears of them."""

from __future__ import annotations

from typing import Any

import msgspec


def pod(
    name: str,
    node: str = "",
    namespace: str = "na",
    uid: str = "",
    mirror: bool = False,
    **spec: Any,
) -> bytes:
    """The JSON of a pod; `spec` adds to its spec."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid or f"uid-{namespace}-{name}"}
    if mirror:
        metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
    full = {"containers": [{"name": "c"}], **({"nodeName": node} if node else {}), **spec}
    return msgspec.json.encode(
        {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": full, "status": {}}
    )


def secret_volume(name: str) -> dict[str, Any]:
    return {"name": f"v-{name}", "secret": {"secretName": name}}


def configmap_volume(name: str) -> dict[str, Any]:
    return {"name": f"v-{name}", "configMap": {"name": name}}
