"""Which objects each node has to do with: the node authorizer's graph.

kubernetes v1.36 plugin/pkg/auth/authorizer/node/graph.go. Upstream walks edges (secret -> pod -> node) and keeps an
index of destinations where an object has many pods; as every path from a pod leads to one node, the index alone
answers, so here it is all there is: for each object the nodes whose pods use it, counted. A volume leads where its
claim leads, and the secrets that mounting it takes lead to the volume; attachments and slices are of one node.
"""

from __future__ import annotations

from sys import intern
from typing import NamedTuple

from harness.apiserver.auth.nodereferences import Key, Vertex


class _Object:
    """An object that pods use: on how many pods of each node."""

    __slots__ = ("key", "pods_on")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.pods_on: dict[str, int] = {}


class _Pod(NamedTuple):
    node: str
    uses: tuple[_Object, ...]


class _Volume(NamedTuple):
    claim: Key
    secrets: frozenset[Key]


class Graph:
    """Objects to nodes. Pods are named ``namespace/name``."""

    def __init__(self) -> None:
        self._pods: dict[str, _Pod] = {}
        self._objects: dict[Key, _Object] = {}
        self._volumes: dict[str, _Volume] = {}
        self._mounted_with: dict[Key, set[str]] = {}  # secrets to the volumes that take them
        self._of_node: dict[tuple[Vertex, str], str] = {}  # attachments and slices

    # ---- pods ----------------------------------------------------------------------------------------------------
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

    # ---- volumes -------------------------------------------------------------------------------------------------
    def add_volume(self, name: str, claim: Key | None, secrets: set[Key]) -> None:
        """A volume bound to `claim` (None: unbound, and of no concern); replaces what was known of it."""
        self.delete_volume(name)
        if claim is None:
            return
        self._volumes[name] = _Volume(claim, frozenset(secrets))
        for secret in secrets:
            self._mounted_with.setdefault(secret, set()).add(name)

    def delete_volume(self, name: str) -> None:
        """No effect if there is none."""
        known = self._volumes.pop(name, None)
        if known is None:
            return
        for secret in known.secrets:
            volumes = self._mounted_with[secret]
            volumes.discard(name)
            if not volumes:
                del self._mounted_with[secret]

    # ---- attachments and slices ----------------------------------------------------------------------------------
    def add_to_node(self, kind: Vertex, name: str, node: str) -> None:
        """An attachment or slice of `node`, "" for one that is of none."""
        if node:
            self._of_node[kind, name] = intern(node)
        else:
            self.delete_of_node(kind, name)

    def delete_of_node(self, kind: Vertex, name: str) -> None:
        """No effect if there is none."""
        self._of_node.pop((kind, name), None)

    # ---- what leads where ----------------------------------------------------------------------------------------
    def leads_to(self, kind: Vertex, namespace: str, name: str, node: str) -> bool:
        """Whether `node` has to do with the object: by a pod that uses it, by a volume of such a pod, or as its own."""
        key = (kind, namespace, name)
        known = self._objects.get(key)
        if known is not None and node in known.pods_on:
            return True
        if kind is Vertex.SECRET:
            volumes = self._mounted_with.get(key)
            return volumes is not None and any(self._volume_leads_to(volume, node) for volume in volumes)
        if kind is Vertex.VOLUME:
            return self._volume_leads_to(name, node)
        return self._of_node.get((kind, name)) == node

    def _volume_leads_to(self, name: str, node: str) -> bool:
        volume = self._volumes.get(name)
        claim = None if volume is None else self._objects.get(volume.claim)
        return claim is not None and node in claim.pods_on

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
        mounted: dict[Key, set[str]] = {}
        for name, volume in self._volumes.items():
            for secret in volume.secrets:
                mounted.setdefault(secret, set()).add(name)
        assert mounted == self._mounted_with, "the secrets of volumes are not theirs"

    def _add_object(self, key: Key) -> _Object:
        added = self._objects[key] = _Object(key)
        return added
