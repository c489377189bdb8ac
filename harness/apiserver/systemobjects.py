"""What a real apiserver creates on an empty store: namespaces, the system's priority classes, the range of cluster IPs,
the service ``kubernetes``, and the ConfigMap that says whose clients it takes.

kk/pkg/controlplane/controller/{systemnamespaces,kubernetesservice,defaultservicecidr,clusterauthenticationtrust} and
kk/pkg/registry/scheduling/rest. The first member that starts makes them; the others find them there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from harness.apiserver.auth.authentication import UserInfo, admin_user
from harness.apiserver.clock import Clock, Promise, sleep
from harness.apiserver.deletion import Deletion
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.store.core import GetResult
from harness.apiserver.strategies.policies import SYSTEM_CLASSES
from harness.wire.status import StatusError

Object = dict[str, Any]
NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")
RETRY_S = 0.1
ORPHANED_AFTER = 30  # attempts
_LABELS = {"component": "apiserver", "provider": "kubernetes"}


def loopback_user() -> UserInfo:
    """As whom a server talks to itself."""
    return admin_user("system:apiserver")


async def create_system_objects(
    registries: Mapping[str, Registry],
    read: Callable[[str], Promise[GetResult]],
    clock: Clock,
    cluster_ip: str,
    cidr: str,
) -> None:
    """Create what is missing; `read(key)` asks the store. Raises StoreError."""
    user = loopback_user()
    for name in NAMESPACES:
        await _ensure(registries["namespaces"], Caller(user), {"metadata": {"name": name}})
    for name, (value, description) in SYSTEM_CLASSES.items():
        new = {"metadata": {"name": name}, "value": value, "description": description}
        await _ensure(registries["priorityclasses.scheduling.k8s.io"], Caller(user), new)
    await _ensure_range(registries["servicecidrs.networking.k8s.io"], user, cidr)
    await _ensure_service(registries, read, clock, cluster_ip)


async def publish_client_ca(registries: Mapping[str, Registry], pem: str) -> None:
    """kube-system/extension-apiserver-authentication, from which kube-scheduler, kube-controller-manager and aggregated
    apiservers learn whose certificates to take (controller/clusterauthenticationtrust). There is no front proxy here,
    and without its authority upstream writes none of the requestheader-* keys either. An authority that is there stays:
    it was another member's, or an earlier one's."""
    name, namespace, key = "extension-apiserver-authentication", "kube-system", "client-ca-file"
    configmaps, user = registries["configmaps"], loopback_user()
    new = {"metadata": {"name": name, "namespace": namespace}, "data": {key: pem}}
    if await _ensure(configmaps, Caller(user, namespace), new):
        return

    def with_ours(old: Object, revision: int) -> Object:
        data = old.get("data") or {}
        known = str(data.get(key, ""))
        combined = known if pem in known else known + pem
        return {**old, "metadata": dict(old["metadata"]), "data": {**data, key: combined}}

    await configmaps.update(Caller(user, namespace, name), with_ours)


async def create_storage_class(registries: Mapping[str, Registry]) -> None:
    """What no apiserver makes but every cluster has: a default StorageClass, as kube-up's addon
    (kk/cluster/addons/storage-class). The provisioner is one that the run's volume binder stands in for."""
    metadata = {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    new = {"metadata": metadata, "provisioner": "kubernetes.io/gce-pd", "parameters": {"type": "pd-standard"}}
    await _ensure(registries["storageclasses.storage.k8s.io"], Caller(loopback_user()), new)


async def _ensure(registry: Registry, caller: Caller, new: Object) -> bool:
    """Whether it was missing."""
    try:
        await registry.create(caller, new)
    except StatusError as error:
        if error.status.reason != "AlreadyExists":
            raise
        return False
    return True


async def _ensure_range(registry: Registry, user: UserInfo, cidr: str) -> None:
    """The default range of cluster IPs, which is ready from the start (controller/defaultservicecidr)."""
    name = "kubernetes"
    if not await _ensure(registry, Caller(user), {"metadata": {"name": name}, "spec": {"cidrs": [cidr]}}):
        return
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": registry.context().now,
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }

    def with_status(old: Object, revision: int) -> Object:
        return {**old, "metadata": dict(old["metadata"]), "status": {"conditions": [ready]}}

    await registry.update(Caller(user, name=name), with_status, "status")


async def _ensure_service(
    registries: Mapping[str, Registry],
    read: Callable[[str], Promise[GetResult]],
    clock: Clock,
    cluster_ip: str,
) -> None:
    """The service that stands for the servers themselves. Its address may be taken by a member that starts at the same
    time and is about to write the service; where that does not come, the address is an orphan and is freed."""
    services, addresses = registries["services"], registries["ipaddresses.networking.k8s.io"]
    user = loopback_user()
    caller = Caller(user, "default")
    for attempt in itertools.count():
        if (await read(services.resource.key("default", "kubernetes"))).kv is not None:
            return
        try:
            await _ensure(services, caller, _kubernetes_service(cluster_ip))
            return
        except StatusError as error:
            if error.status.reason != "Invalid":
                raise
        await sleep(clock, RETRY_S)
        if attempt == ORPHANED_AFTER:
            await _remove(addresses, Caller(user, name=cluster_ip))


async def _remove(registry: Registry, caller: Caller) -> None:
    try:
        await registry.delete(caller, Deletion())
    except StatusError as error:
        if error.status.code != 404:
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
