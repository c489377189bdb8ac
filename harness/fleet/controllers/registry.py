"""Which controllers there are, by the name of their service account."""

from __future__ import annotations

from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.daemonset import DaemonSetController
from harness.fleet.controllers.deployment import DeploymentController
from harness.fleet.controllers.disruption import DisruptionController
from harness.fleet.controllers.endpoints import EndpointsController
from harness.fleet.controllers.endpointslices import EndpointSliceController
from harness.fleet.controllers.garbage import GarbageCollector
from harness.fleet.controllers.job import JobController
from harness.fleet.controllers.podgc import PodGarbageCollector
from harness.fleet.controllers.protection import ClaimProtection, VolumeProtection
from harness.fleet.controllers.replicaset import ReplicaSetController, ReplicationManager
from harness.fleet.controllers.statefulset import StatefulSetController
from harness.fleet.controllers.ttl import TtlAfterFinished
from harness.fleet.controllers.volumes import VolumeBinder

_ALL: tuple[type[Controller], ...] = (
    DeploymentController,
    ReplicaSetController,
    ReplicationManager,
    StatefulSetController,
    DaemonSetController,
    JobController,
    EndpointsController,
    EndpointSliceController,
    GarbageCollector,
    VolumeBinder,
    ClaimProtection,
    VolumeProtection,
    PodGarbageCollector,
    TtlAfterFinished,
    DisruptionController,
)
CONTROLLERS: dict[str, type[Controller]] = {each.name: each for each in _ALL}
