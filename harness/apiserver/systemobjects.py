"""What a real apiserver creates on an empty store: system namespaces and the service ``kubernetes``.

kk/pkg/controlplane/controller/systemnamespaces and kubernetesservice. The first member that starts makes them; the
others find them there.
"""

from __future__ import annotations

from typing import Any

from harness.apiserver.auth.authentication import UserInfo, admin_user
from harness.apiserver.registry import Caller, Registry
from harness.wire.status import StatusError

Object = dict[str, Any]
NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")
_LABELS = {"component": "apiserver", "provider": "kubernetes"}


def loopback_user() -> UserInfo:
    """As whom a server talks to itself."""
    return admin_user("system:apiserver")


async def create_system_objects(namespaces: Registry, services: Registry, cluster_ip: str) -> None:
    """Create what is missing. Raises StoreError."""
    user = loopback_user()
    for name in NAMESPACES:
        await _ensure(namespaces, Caller(user), {"metadata": {"name": name}})
    await _ensure(services, Caller(user, "default"), _kubernetes_service(cluster_ip))


async def _ensure(registry: Registry, caller: Caller, new: Object) -> None:
    try:
        await registry.create(caller, new)
    except StatusError as error:
        if error.status.reason != "AlreadyExists":
            raise


def _kubernetes_service(cluster_ip: str) -> Object:
    return {
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": dict(_LABELS)},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": cluster_ip,
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        },
    }
