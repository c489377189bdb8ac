"""Controllers and their pods: who owns how many, and which are not there yet.

Mirrors clusterloader2/pkg/measurement/util/controlled_pods_indexer.go (pods by their controller; a Deployment's pods
belong to its ReplicaSets) and runtimeobjects.go (how many replicas a controller wants). Added here: a bare pod counts
as a controller of itself with one replica, wanted until it has a deletionTimestamp (perf-tests#1077).

Whether pods have a changed template's spec is taken from the controller's status (observedGeneration and the count of
updated pods), where upstream compares each pod with the template.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from harness.client.store import Change, Changed, Decode, ObjectMeta, decoder_for
from harness.clusterloader.measurements.pods import OwnerReference, PodState, PodTally, PodView

POD = "Pod"
DAEMON_SET = "DaemonSet"
_ROLLED_OUT = ("Deployment", "StatefulSet", DAEMON_SET)  # a change of whose template replaces their pods
DEPLOYMENT = "Deployment"


class ControllerMeta(ObjectMeta, gc=False, rename="camel"):
    generation: int = 0
    owner_references: list[OwnerReference] = msgspec.field(default_factory=list)


class ControllerSpec(msgspec.Struct, gc=False):
    replicas: int | None = None
    parallelism: int | None = None


class ControllerStatus(msgspec.Struct, gc=False, rename="camel"):
    observed_generation: int = 0
    updated_replicas: int = 0
    updated_number_scheduled: int = 0


class ControllerView(msgspec.Struct, gc=False):
    metadata: ControllerMeta = msgspec.field(default_factory=ControllerMeta)
    spec: ControllerSpec = msgspec.field(default_factory=ControllerSpec)
    status: ControllerStatus = msgspec.field(default_factory=ControllerStatus)


class Controller(Protocol):
    """What the views of all controllers have."""

    metadata: ControllerMeta
    status: ControllerStatus


Replicas = Callable[[Any], int]
"""How many pods a view of a controller wants."""

decode_controller: Decode = decoder_for(ControllerView)


class Target:
    """One controller and how many pods it wants; `stale` while some of them have an older template."""

    __slots__ = ("deleted", "desired", "key", "stale", "uid")

    def __init__(self, uid: str, key: str, desired: int, deleted: bool, stale: bool) -> None:
        self.uid, self.key = uid, key
        self.desired, self.deleted, self.stale = desired, deleted, stale


class ControlledPods:
    """The targets of one kind, the pods of each, and those that still wait. Changes go in by kind of object.

    `replicas` says how many a controller wants, None as its spec does; `margin` is countErrorMargin; `check_updated`
    waits for the pods of a changed template.
    """

    def __init__(
        self, kind: str, replicas: Replicas | None = None, margin: int = 0, check_updated: bool = True
    ) -> None:
        self._kind = kind
        self._replicas = replicas or (lambda view: _replicas(view.spec, kind))
        self._margin = margin
        self._check_updated = check_updated and kind in _ROLLED_OUT
        self._targets: dict[str, Target] = {}
        self._tallies: defaultdict[str, PodTally] = defaultdict(PodTally)  # by uid of the pods' direct owner
        self._parents: dict[str, str] = {}  # ReplicaSet to Deployment
        self._children: defaultdict[str, set[str]] = defaultdict(set)
        self._waiting: set[str] = set()
        self._existing: set[str] = set()
        self._versions: dict[str, int] = {}
        self.latest_change = 0.0
        """When a target last began to want something else."""

    # ---- changes ---------------------------------------------------------------------------------------------------
    def controller_changed(self, changed: Changed, now: float) -> None:
        view: Controller | PodView | None = changed.object
        if view is None:
            return
        if changed.change is Change.DELETED:
            self._existing.discard(view.metadata.uid)
            self._want(view, 0, now, deleted=True)
            return
        self._existing.add(view.metadata.uid)
        self._versions[view.metadata.uid] = version_of(view.metadata.resource_version)
        if isinstance(view, PodView):
            terminating = bool(view.metadata.deletion_timestamp)
            self._want(view, 0 if terminating else 1, now, deleted=terminating)
        else:
            desired = self._replicas(view)
            self._want(view, desired, now, deleted=False, stale=self._is_stale(view, desired))

    def pod_changed(self, changed: Changed, now: float) -> None:
        """A pod of any controller, or, for bare pods, a target."""
        for pod, sign in ((changed.old, -1), (changed.object, 1)):
            if pod is None or (sign > 0 and changed.change is Change.DELETED):
                continue
            owner = pod.metadata.uid if self._kind == POD else _controller_of(pod.metadata.owner_references)
            if not owner:
                continue
            self._tallies[owner].add(pod, sign)
            self._check(self._parents.get(owner, owner))
        if self._kind == POD:
            self.controller_changed(changed, now)

    def replica_set_changed(self, changed: Changed) -> None:
        """Which Deployment a ReplicaSet's pods belong to."""
        view: ControllerView | None = changed.object
        owner = "" if view is None else _controller_of(view.metadata.owner_references)
        if view is None or not owner or view.metadata.uid in self._parents:
            return
        self._parents[view.metadata.uid] = owner
        self._children[owner].add(view.metadata.uid)
        self._check(owner)

    def desired_changed(self, uid: str, desired: int) -> None:
        """A controller wants another number of pods though nobody changed it (a DaemonSet, when a node comes)."""
        target = self._targets.get(uid)
        if target is not None and not target.deleted:
            target.desired = desired
            self._check(uid)

    # ---- answers ---------------------------------------------------------------------------------------------------
    @property
    def waiting(self) -> list[Target]:
        """Targets whose pods are not as wanted."""
        return [self._targets[uid] for uid in sorted(self._waiting)]

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    @property
    def existing(self) -> int:
        return len(self._existing)

    def progress(self) -> tuple[int, int]:
        """Pods that run and pods that are wanted; for bare pods that are to go, pods gone and pods to go."""
        if self._kind == POD:
            return len(self._targets) - len(self._waiting), len(self._targets)
        wanted = sum(target.desired for target in self._targets.values())
        return sum(self._sum(uid)[PodState.RUNNING] for uid in self._targets), wanted

    def has_seen(self, listed: dict[str, int]) -> bool:
        """Whether every object of a LIST (uid to resourceVersion) has come through the informer, and every object
        that the LIST lacks has gone. One that has gone since the LIST counts as seen, whatever version it went with: an
        informer that had to begin anew learns of a deletion by the object's absence, not by its last version."""
        versions = self._versions
        return self._existing <= listed.keys() and all(
            versions.get(uid, -1) >= version or (uid in versions and uid not in self._existing)
            for uid, version in listed.items()
        )

    def text(self, target: Target) -> str:
        return f"{target.key}: {self._sum(target.uid).text(target.desired)}"

    # ---- targets ---------------------------------------------------------------------------------------------------
    def _want(
        self, view: Controller | PodView, desired: int, now: float, *, deleted: bool, stale: bool = False
    ) -> None:
        metadata = view.metadata
        known = self._targets.get(metadata.uid)
        if known is None or (known.desired, known.deleted) != (desired, deleted):
            self.latest_change = now
            key = f"{metadata.namespace}/{metadata.name}"
            self._targets[metadata.uid] = Target(metadata.uid, key, desired, deleted, stale)
        else:
            if stale and not known.stale:
                self.latest_change = now
            known.stale = stale
        self._check(metadata.uid)

    def _is_stale(self, view: Controller, desired: int) -> bool:
        """A controller that was changed since its creation, and has not yet replaced all pods or not yet begun to."""
        generation, status = view.metadata.generation, view.status
        if not self._check_updated or generation <= 1:
            return False
        updated = max(status.updated_replicas, status.updated_number_scheduled)
        return status.observed_generation < generation or updated < desired - self._margin

    def _check(self, uid: str) -> None:
        """Sort a target into waiting or not; forget one that is gone with its pods."""
        target = self._targets.get(uid)
        if target is None:
            return
        if target.stale or not self._sum(uid).all_running(target.desired, self._margin):
            self._waiting.add(uid)
            return
        self._waiting.discard(uid)
        if target.deleted and uid not in self._existing:
            del self._targets[uid]
            self._tallies.pop(uid, None)

    def _owners(self, uid: str) -> Iterator[str]:
        yield uid
        yield from self._children.get(uid, ())

    def _sum(self, uid: str) -> PodTally:
        if uid not in self._children:
            return self._tallies[uid]
        total = PodTally()
        for owner in self._owners(uid):
            total.merge(self._tallies[owner])
        return total


def version_of(text: str) -> int:
    """A resourceVersion as a number, -1 where it is none."""
    return int(text) if text.isdecimal() else -1


def _replicas(spec: ControllerSpec, kind: str) -> int:
    """0 where the field is missing, as upstream (ConstReplicas{0})."""
    return (spec.parallelism if kind == "Job" else spec.replicas) or 0


def _controller_of(references: list[OwnerReference]) -> str:
    """The uid of the owner that is the controller, "" where there is none."""
    return next((item.uid for item in references if item.controller), "")
