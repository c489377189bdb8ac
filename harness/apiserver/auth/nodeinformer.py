"""What feeds the node authorizer's graph: informers of the member's own, and how far they are behind.

kubernetes v1.36 plugin/pkg/auth/authorizer/node/graph_populator.go:40-290. Pods, volumes, attachments and slices are
each followed by an informer behind the watch cache, like any client: what it has not heard of the graph does not have.
An event's way is: delivery (the modelled host), a drawn lag, the graph's update (the host again). Faults hold it up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from sys import intern
from typing import NamedTuple

from harness.apiserver.auth.nodegraph import Graph
from harness.apiserver.auth.nodelag import Lag
from harness.apiserver.auth.nodereferences import (
    Vertex,
    decode_node_object,
    decode_pod,
    decode_pod_head,
    decode_volume,
    references,
    volume_claim,
    volume_secrets,
)
from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.clock import Clock, Promise
from harness.apiserver.informer import Followed, Following
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import WATCH, Host
from harness.wire.watching import BOOKMARK, DELETED

PODS, VOLUMES = "pods", "persistentvolumes"
ATTACHMENTS, SLICES = "volumeattachments.storage.k8s.io", "resourceslices.resource.k8s.io"
RESOURCES = (PODS, VOLUMES, ATTACHMENTS, SLICES)
_ACTIONS = [
    f"{verb}{of}" for of in ("Pod", "PV", "VolumeAttachment", "ResourceSlice") for verb in ("Add", "Delete")
]


class Change(NamedTuple):
    """One update of the graph on its way: due at, of which resource at which revision, and what it does."""

    due: float
    pending: deque[int]
    action: str
    change: Callable[[], object]


class Behind(NamedTuple):
    """How far the graph is behind what the member has of the store."""

    revisions: int
    seconds: float


class GraphInformer:
    """The graph's only writer. `follow()` begins; the `on_...` methods take one event each.

    The position of the graph is the revision up to which it has everything. The member has one stream from the store
    for all resources, so it knows of each how far it has been told; a real server would ask etcd for a progress
    notification to know as much.
    """

    def __init__(
        self, clock: Clock, host: Host, rng: Random, metrics: Metrics, graph: Graph, lag: Lag
    ) -> None:
        self.lag = lag
        self._graph = graph
        self._clock = clock
        self._host = host
        self._rng = rng
        durations = metrics.node_authorizer_graph_actions_duration_seconds
        self._durations = {action: durations.labels(action) for action in _ACTIONS}
        # What the informer's store has of each bound pod: (uid, node); and of those few whose references may still
        # change, what the graph has been given.
        self._bound: dict[str, tuple[str, str]] = {}
        self._changing: dict[str, set[tuple[Vertex, str, str]]] = {}
        self._known: dict[str, set[str]] = {VOLUMES: set(), ATTACHMENTS: set(), SLICES: set()}
        self._queue: deque[Change] = deque()
        self._pending: dict[str, deque[int]] = {resource: deque() for resource in RESOURCES}
        self._sources: dict[str, Following] = {}
        self._armed = False
        self._stalled_until = 0.0
        self._waiters: list[tuple[int, Promise[None]]] = []

    # ---- what is followed ----------------------------------------------------------------------------------------
    def follow(self, cachers: Mapping[str, Followed]) -> None:
        """Begin to follow those of RESOURCES that there are."""
        handlers: dict[str, Callable[[str, CachedObject], object]] = {
            PODS: lambda kind, obj: self.on_pod(kind, obj.body, obj.revision),
            VOLUMES: lambda kind, obj: self.on_volume(kind, obj.body, obj.revision),
            ATTACHMENTS: partial(self._on_node_object, ATTACHMENTS),
            SLICES: partial(self._on_node_object, SLICES),
        }
        for resource, handle in handlers.items():
            cacher = cachers.get(resource)
            if cacher is not None:
                listed = partial(self._listed, resource, cacher)
                source = Following(self._clock, cacher, partial(self._told, handle), listed)
                self._sources[resource] = source
                source.start()

    def stop(self) -> None:
        for source in self._sources.values():
            source.stop()

    @property
    def synced(self) -> bool:
        """Whether the graph has everything that was there when it began."""
        return all(source.synced for source in self._sources.values()) and not self._queue

    def _told(self, handle: Callable[[str, CachedObject], object], kind: str, obj: CachedObject) -> None:
        handle(kind, obj)
        if self._waiters:
            self._wake()

    def _listed(self, resource: str, cacher: Followed, keys: set[str]) -> None:
        """After a list: what the informer had and the list has not is gone (DeletedFinalStateUnknown)."""
        revision = self._sources[resource].position
        if resource == PODS:
            for pod in [pod for pod in self._bound if cacher.resource.key(*pod.split("/", 1)) not in keys]:
                self._forget_pod(pod, revision)
        else:
            known = self._known[resource]
            for name in [name for name in known if cacher.resource.key("", name) not in keys]:
                known.discard(name)
                self._forget_object(resource, name, revision)
        if self._waiters:
            self._wake()

    # ---- events --------------------------------------------------------------------------------------------------
    def on_pod(self, kind: str, body: bytes, revision: int = 0) -> None:
        """One event of the pods watch (ADDED, MODIFIED, DELETED) with the pod's JSON; bookmarks are ignored."""
        if kind == BOOKMARK:
            return
        head = decode_pod_head(body)
        pod = f"{head.metadata.namespace}/{head.metadata.name}"
        if kind == DELETED:
            self._forget_pod(pod, revision)
            return
        node = head.spec.node_name
        if not node:
            return
        # All references of a bound pod are immutable but for these (graph_populator.go:83-93). The status of an
        # extended resource's claim, which upstream looks at too, is written before the pod is bound.
        may_change = head.spec.may_change
        known = self._bound.get(pod) == (head.metadata.uid, node)
        if known and not may_change:
            return
        keys = references(decode_pod(body))
        if may_change:
            if known and self._changing.get(pod) == keys:
                return
            self._changing[pod] = keys
        self._bound[pod] = (head.metadata.uid, intern(node))
        self._later(PODS, "AddPod", partial(self._graph.add_pod, pod, node, keys), revision)

    def on_volume(self, kind: str, body: bytes, revision: int = 0) -> None:
        """One event of the persistentvolumes watch."""
        if kind == BOOKMARK:
            return
        volume = decode_volume(body)
        name = volume.metadata.name
        if kind == DELETED:
            self._known[VOLUMES].discard(name)
            self._forget_object(VOLUMES, name, revision)
            return
        self._known[VOLUMES].add(name)
        add = partial(self._graph.add_volume, name, volume_claim(volume), volume_secrets(volume))
        self._later(VOLUMES, "AddPV", add, revision)

    def on_attachment(self, kind: str, body: bytes, revision: int = 0) -> None:
        """One event of the volumeattachments watch."""
        self._of_node(ATTACHMENTS, kind, body, revision)

    def on_slice(self, kind: str, body: bytes, revision: int = 0) -> None:
        """One event of the resourceslices watch."""
        self._of_node(SLICES, kind, body, revision)

    def _on_node_object(self, resource: str, kind: str, obj: CachedObject) -> None:
        self._of_node(resource, kind, obj.body, obj.revision)

    def _of_node(self, resource: str, kind: str, body: bytes, revision: int) -> None:
        if kind == BOOKMARK:
            return
        found = decode_node_object(body)
        name, known = found.metadata.name, self._known[resource]
        if kind == DELETED:
            known.discard(name)
            self._forget_object(resource, name, revision)
        elif name not in known:  # the node's name is immutable
            known.add(name)
            vertex, action = _OF_NODE[resource]
            add = partial(self._graph.add_to_node, vertex, name, found.spec.node_name or "")
            self._later(resource, f"Add{action}", add, revision)

    def _forget_pod(self, pod: str, revision: int) -> None:
        self._changing.pop(pod, None)
        if self._bound.pop(pod, None) is not None:
            self._later(PODS, "DeletePod", partial(self._graph.delete_pod, pod), revision)

    def _forget_object(self, resource: str, name: str, revision: int) -> None:
        if resource == VOLUMES:
            self._later(resource, "DeletePV", partial(self._graph.delete_volume, name), revision)
        else:
            vertex, action = _OF_NODE[resource]
            delete = partial(self._graph.delete_of_node, vertex, name)
            self._later(resource, f"Delete{action}", delete, revision)

    # ---- their delivery ------------------------------------------------------------------------------------------
    def _later(self, resource: str, action: str, change: Callable[[], object], revision: int) -> None:
        """Deliver in order, each after a lag of its own."""
        due = self._clock.now() + self.lag.draw(self._rng)
        if self._queue:
            due = max(due, self._queue[-1].due)
        pending = self._pending[resource]
        pending.append(revision)
        self._queue.append(Change(due, pending, action, change))
        if not self._armed:
            self._arm(due)

    def _arm(self, due: float) -> None:
        self._armed = True
        self._clock.call_at(max(due, self._stalled_until), self._deliver)

    def _deliver(self) -> None:
        until = self._clock.now() + self._host.slack_s
        self._armed = False
        queue = self._queue
        if until >= self._stalled_until:
            while queue and queue[0].due <= until:
                change = queue.popleft()
                self._host.run(self._host.costs.graph_update_us, partial(self._apply, change), WATCH)
        if queue and not self._armed:
            self._arm(queue[0].due)

    def _apply(self, change: Change) -> None:
        change.change()
        change.pending.popleft()
        self._durations[change.action].observe(self._host.costs.graph_update_us * 1e-6)
        if self._waiters:
            self._wake()

    # ---- faults --------------------------------------------------------------------------------------------------
    def set_lag(self, lag: Lag) -> None:
        """From now on; what is on its way keeps its time."""
        self.lag = lag

    def stall(self, seconds: float, relist: bool = False) -> None:
        """Deliver nothing for so long, then everything; with `relist` the watches break instead, and each begins anew
        with a list of what there is then. 0 ends either."""
        now = self._clock.now()
        if relist:
            for source in self._sources.values():
                source.break_off(seconds)
            return
        if seconds > 0:
            self._stalled_until = max(self._stalled_until, now + seconds)
            return
        for source in self._sources.values():
            if source.broken:
                source.break_off(0.0)
        self._stalled_until = now
        if self._queue:
            self._arm(self._queue[0].due)

    # ---- how far it is -------------------------------------------------------------------------------------------
    @property
    def backlog(self) -> int:
        """Changes that have been heard of and not been delivered yet."""
        return len(self._queue)

    @property
    def position(self) -> int:
        """The revision up to which the graph has everything; 0 where nothing is followed."""
        return min((self._position(resource) for resource in self._sources), default=0)

    def _position(self, resource: str) -> int:
        position = self._sources[resource].position
        pending = self._pending[resource]
        return min(position, pending[0] - 1) if pending else position

    def behind(self, revision: int) -> Behind:
        """How far behind `revision`, and for how long: since the member's cache got the oldest change that the graph
        does not have."""
        since = [
            since
            for resource, source in self._sources.items()
            if (since := source.changed_after(self._position(resource))) is not None
        ]
        seconds = max(0.0, self._clock.now() - min(since)) if since else 0.0
        return Behind(max(0, revision - self.position) if self._sources else 0, seconds)

    def reached(self, revision: int) -> Promise[None]:
        """Settles once the graph has everything up to a revision that the member's watches have been handed."""
        promise: Promise[None] = Promise()
        if self.position >= revision:
            promise.resolve(None)
        else:
            self._waiters.append((revision, promise))
        return promise

    def _wake(self) -> None:
        position = self.position
        settled = [promise for revision, promise in self._waiters if revision <= position]
        self._waiters = [waiter for waiter in self._waiters if waiter[0] > position and not waiter[1].done]
        for promise in settled:
            promise.resolve(None)


_OF_NODE = {
    ATTACHMENTS: (Vertex.ATTACHMENT, "VolumeAttachment"),
    SLICES: (Vertex.SLICE, "ResourceSlice"),
}
