"""Which objects each node has to do with: the node authorizer's graph.

kubernetes v1.36 plugin/pkg/auth/authorizer/node/graph.go. Upstream walks edges (secret -> pod -> node) and keeps an
index of destinations where an object has many pods; as every path from a pod leads to one node, the index alone
answers, so here it is all there is: for each object the nodes whose pods use it, counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from sys import intern
from typing import NamedTuple

import msgspec


class Vertex(Enum):
    """Kinds of objects that lead to nodes."""

    SECRET = "secret"  # noqa: S105  # a kind of object
    CONFIGMAP = "configmap"
    SERVICE_ACCOUNT = "serviceaccount"
    CLAIM = "persistentvolumeclaim"


class _Named(msgspec.Struct):
    name: str = ""


class _SecretVolume(msgspec.Struct, rename="camel"):
    secret_name: str = ""


class _Claim(msgspec.Struct, rename="camel"):
    claim_name: str = ""


class _Source(msgspec.Struct, rename="camel"):
    secret: _Named | None = None
    config_map: _Named | None = None


class _Projected(msgspec.Struct):
    sources: list[_Source] | None = None


class _WithSecret(msgspec.Struct, rename="camel"):
    secret_ref: _Named | None = None
    node_publish_secret_ref: _Named | None = None
    secret_name: str = ""


class _Volume(msgspec.Struct, rename="camel"):
    name: str = ""
    secret: _SecretVolume | None = None
    config_map: _Named | None = None
    projected: _Projected | None = None
    persistent_volume_claim: _Claim | None = None
    ephemeral: dict[str, object] | None = None
    csi: _WithSecret | None = None
    azure_file: _WithSecret | None = None
    cephfs: _WithSecret | None = None
    flex_volume: _WithSecret | None = None
    iscsi: _WithSecret | None = None
    rbd: _WithSecret | None = None
    scale_io: _WithSecret | None = msgspec.field(name="scaleIO", default=None)
    storageos: _WithSecret | None = None


class _ValueFrom(msgspec.Struct, rename="camel"):
    secret_key_ref: _Named | None = None
    config_map_key_ref: _Named | None = None


class _Env(msgspec.Struct, rename="camel"):
    value_from: _ValueFrom | None = None


class _EnvFrom(msgspec.Struct, rename="camel"):
    secret_ref: _Named | None = None
    config_map_ref: _Named | None = None


class _Container(msgspec.Struct, rename="camel"):
    env: list[_Env] | None = None
    env_from: list[_EnvFrom] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    service_account_name: str = ""
    volumes: list[_Volume] | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    image_pull_secrets: list[_Named] | None = None


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] | None = None


class PodView(msgspec.Struct):
    """What of a pod the graph needs."""

    metadata: _Metadata
    spec: _Spec


class _Binding(msgspec.Struct, rename="camel"):
    node_name: str = ""
    service_account_name: str = ""


class PodHead(msgspec.Struct):
    """What says whether a pod's event changes anything; a third of the cost of the whole view."""

    metadata: _Metadata
    spec: _Binding


decode_pod = msgspec.json.Decoder(PodView).decode
decode_pod_head = msgspec.json.Decoder(PodHead).decode
MIRROR = "kubernetes.io/config.mirror"
Key = tuple[Vertex, str, str]


def references(pod: PodView) -> set[Key]:
    """What the pod's node may read because of it; nothing for a mirror pod, which the node made itself."""
    if MIRROR in (pod.metadata.annotations or ()):
        return set()
    namespace = pod.metadata.namespace
    found = {(Vertex.SECRET, namespace, name) for name in _secrets(pod) if name}
    found |= {(Vertex.CONFIGMAP, namespace, name) for name in _configmaps(pod) if name}
    if pod.spec.service_account_name:
        found.add((Vertex.SERVICE_ACCOUNT, namespace, pod.spec.service_account_name))
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.add((Vertex.CLAIM, namespace, volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            found.add((Vertex.CLAIM, namespace, f"{pod.metadata.name}-{volume.name}"))
    return found


def _containers(spec: _Spec) -> Iterator[_Container]:
    for containers in (spec.containers, spec.init_containers, spec.ephemeral_containers):
        yield from containers or ()


def _secrets(pod: PodView) -> Iterator[str]:
    """kk/pkg/api/v1/pod/util.go, VisitPodSecretNames."""
    for reference in pod.spec.image_pull_secrets or ():
        yield reference.name
    for container in _containers(pod.spec):
        for env_from in container.env_from or ():
            if env_from.secret_ref is not None:
                yield env_from.secret_ref.name
        for env in container.env or ():
            if env.value_from is not None and env.value_from.secret_key_ref is not None:
                yield env.value_from.secret_key_ref.name
    for volume in pod.spec.volumes or ():
        yield from _volume_secrets(volume)


def _volume_secrets(volume: _Volume) -> Iterator[str]:
    if volume.config_map is not None:
        return
    if volume.secret is not None:
        yield volume.secret.secret_name
        return
    if volume.projected is not None:
        for source in volume.projected.sources or ():
            if source.secret is not None:
                yield source.secret.name
        return
    for other in (
        volume.csi,
        volume.azure_file,
        volume.cephfs,
        volume.flex_volume,
        volume.iscsi,
        volume.rbd,
        volume.scale_io,
        volume.storageos,
    ):
        if other is not None:
            yield other.secret_name
            for reference in (other.secret_ref, other.node_publish_secret_ref):
                if reference is not None:
                    yield reference.name


def _configmaps(pod: PodView) -> Iterator[str]:
    """kk/pkg/api/v1/pod/util.go, VisitPodConfigmapNames."""
    for container in _containers(pod.spec):
        for env_from in container.env_from or ():
            if env_from.config_map_ref is not None:
                yield env_from.config_map_ref.name
        for env in container.env or ():
            if env.value_from is not None and env.value_from.config_map_key_ref is not None:
                yield env.value_from.config_map_key_ref.name
    for volume in pod.spec.volumes or ():
        if volume.config_map is not None:
            yield volume.config_map.name
        if volume.projected is not None:
            for source in volume.projected.sources or ():
                if source.config_map is not None:
                    yield source.config_map.name


class _Object:
    """An object that pods use: on how many pods of each node."""

    __slots__ = ("key", "pods_on")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.pods_on: dict[str, int] = {}


class _Pod(NamedTuple):
    node: str
    uses: tuple[_Object, ...]


class Graph:
    """Objects to nodes, by way of pods. Pods are named ``namespace/name``."""

    def __init__(self) -> None:
        self._pods: dict[str, _Pod] = {}
        self._objects: dict[Key, _Object] = {}

    def add_pod(self, pod: str, node: str, keys: set[Key]) -> None:
        """A pod bound to `node`; replaces what was known of a pod of that name."""
        self.delete_pod(pod)
        node = intern(node)
        uses = tuple(self._objects.get(key) or self._add_object(key) for key in keys)
        self._pods[pod] = _Pod(node, uses)
        for used in uses:
            used.pods_on[node] = used.pods_on.get(node, 0) + 1

    def delete_pod(self, pod: str) -> None:
        """No effect if there is none."""
        known = self._pods.pop(pod, None)
        if known is None:
            return
        for used in known.uses:
            left = used.pods_on[known.node] - 1
            if left:
                used.pods_on[known.node] = left
            else:
                del used.pods_on[known.node]
                if not used.pods_on:
                    del self._objects[used.key]

    def pod_on(self, pod: str, node: str) -> bool:
        known = self._pods.get(pod)
        return known is not None and known.node == node

    def leads_to(self, kind: Vertex, namespace: str, name: str, node: str) -> bool:
        """Whether a pod on `node` uses the object."""
        known = self._objects.get((kind, namespace, name))
        return known is not None and node in known.pods_on

    @property
    def pods(self) -> int:
        return len(self._pods)

    def validate(self) -> None:
        """Assert that the counts are those of the pods."""
        counted: dict[Key, dict[str, int]] = {}
        for pod in self._pods.values():
            for used in pod.uses:
                nodes = counted.setdefault(used.key, {})
                nodes[pod.node] = nodes.get(pod.node, 0) + 1
        kept = {key: known.pods_on for key, known in self._objects.items()}
        assert counted == kept, "the graph's counts are not those of its pods"

    def _add_object(self, key: Key) -> _Object:
        added = self._objects[key] = _Object(key)
        return added
