"""Pods as measurements see them: a small view, and counts by state.

Mirrors clusterloader2/pkg/measurement/util/pods.go.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum

import msgspec

from harness.client.store import Change, Changed, Decode, ObjectMeta, decoder_for


class OwnerReference(msgspec.Struct, gc=False):
    uid: str = ""
    controller: bool = False


class PodMeta(ObjectMeta, gc=False, rename="camel"):
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    owner_references: list[OwnerReference] = msgspec.field(default_factory=list)


class _Present(msgspec.Struct, gc=False):
    """An object of which only matters that it is there."""


class Volume(msgspec.Struct, gc=False, rename="camel"):
    """Which of the sources that make no pod stateful a volume has."""

    config_map: _Present | None = None
    downward_api: _Present | None = msgspec.field(default=None, name="downwardAPI")
    empty_dir: _Present | None = None
    projected: _Present | None = None
    secret: _Present | None = None

    @property
    def stateless(self) -> bool:
        sources = (self.config_map, self.downward_api, self.empty_dir, self.projected, self.secret)
        return any(source is not None for source in sources)


class PodSpec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""
    volumes: list[Volume] | None = None


class Condition(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class Running(msgspec.Struct, gc=False, rename="camel"):
    started_at: str | None = None


class ContainerState(msgspec.Struct, gc=False):
    running: Running | None = None


class ContainerStatus(msgspec.Struct, gc=False):
    state: ContainerState = msgspec.field(default_factory=ContainerState)


class PodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []


class PodView(msgspec.Struct, gc=False):
    metadata: PodMeta = msgspec.field(default_factory=PodMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


decode_pod: Decode = decoder_for(PodView)


class PodState(Enum):
    """The value is the word of upstream's summary line."""

    RUNNING = "running"
    RUNNING_NOT_READY = "runningButNotReady"
    PENDING_SCHEDULED = "pending scheduled"
    PENDING = "not scheduled"
    INACTIVE = "inactive"
    TERMINATING = "terminating"
    UNKNOWN = "unknown"


def state_of(pod: PodView) -> PodState:
    """Running means running and ready (pods.go: podStatus)."""
    if pod.metadata.deletion_timestamp:
        return PodState.TERMINATING
    phase = pod.status.phase
    if phase == "Running":
        ready = any(item.type == "Ready" and item.status == "True" for item in pod.status.conditions)
        return PodState.RUNNING if ready else PodState.RUNNING_NOT_READY
    if phase == "Pending":
        return PodState.PENDING_SCHEDULED if pod.spec.node_name else PodState.PENDING
    if phase in ("Succeeded", "Failed"):
        return PodState.INACTIVE
    return PodState.UNKNOWN


class PodTally:
    """How many pods are in each state, kept up to date change by change."""

    __slots__ = ("_counts", "scheduled")

    def __init__(self) -> None:
        self._counts: Counter[PodState] = Counter()
        self.scheduled = 0

    def apply(self, changed: Changed) -> None:
        """Take a change of an informer of `PodView`s."""
        if changed.change is Change.DELETED:
            self.remove(changed.old)
        elif changed.object is not None:
            if changed.old is not None:
                self.remove(changed.old)
            self.add(changed.object)

    def add(self, pod: PodView, sign: int = 1) -> None:
        state = state_of(pod)
        self._counts[state] += sign
        if pod.spec.node_name and state is not PodState.TERMINATING:
            self.scheduled += sign

    def remove(self, pod: PodView) -> None:
        self.add(pod, -1)

    def merge(self, other: PodTally) -> None:
        """Count the pods of another tally too."""
        self._counts.update(other._counts)
        self.scheduled += other.scheduled

    def __getitem__(self, state: PodState) -> int:
        return self._counts[state]

    @property
    def total(self) -> int:
        """All pods, terminating ones included."""
        return self._counts.total()

    def all_running(self, desired: int, margin: int = 0) -> bool:
        """`desired` pods run and are ready, and every other one is inactive (wait_for_pods.go: WaitForPods).

        With a `margin` so many fewer will do, as long as no more than that are inactive and there are no others.
        """
        running, inactive = self._counts[PodState.RUNNING], self._counts[PodState.INACTIVE]
        if running == desired and self.total == running + inactive:
            return True
        enough = desired - margin <= running and self.total - inactive <= desired
        return margin > 0 and enough and inactive <= margin

    def text(self, desired: int) -> str:
        """Upstream's line: ``Pods: 5 created, 5 desired, 3 running ...``."""
        created = self.total - self._counts[PodState.TERMINATING]
        order = (
            PodState.RUNNING,
            PodState.PENDING_SCHEDULED,
            PodState.PENDING,
            PodState.INACTIVE,
            PodState.TERMINATING,
            PodState.UNKNOWN,
            PodState.RUNNING_NOT_READY,
        )
        counts = ", ".join(f"{self._counts[state]} {state.value}" for state in order)
        return f"Pods: {created} created, {desired} desired, {counts}"
