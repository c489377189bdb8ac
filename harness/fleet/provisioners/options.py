"""What a provisioner can be told. The two presets differ in every field here; each difference can be tried alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.fleet.provisioners.distribution import parse_distribution
from harness.wire.errors import ConfigError

Election = Literal["per-claim", "per-provisioner", "none"]
Watching = Literal["direct", "informers"]
Events = Literal["in-order", "broadcast", "none"]


@dataclass(frozen=True, slots=True)
class ProvisionerOptions:
    """Defaults are those of external-provisioner today; `LEGACY` holds what differs in external-storage v4.0.0."""

    driver: str = "csi.swarmlet.io"
    """Name of the CSI driver: the provisioner of its storage class and, in today's way, the name of its Lease."""
    namespace: str = "kube-system"
    """Where that Lease is."""
    labels: tuple[tuple[str, str], ...] = ()
    """On that Lease and on volumes, so that they can be found again; none in what is imitated."""

    # ---- who works ----
    election: Election = "per-provisioner"
    """Who takes on a claim: per-claim, whoever locks an annotation of the claim (15, 10 and 2 s, for 30 s at most);
    per-provisioner, the holder of one Lease (15, 10 and 5 s); none, every replica."""
    workers: int = 100
    """Claims, and volumes to delete, worked on at once; worker-threads."""

    # ---- its client ----
    qps: float = 5.0
    """Requests a second; kube-api-qps. The Lease has a client of its own with the same limits."""
    burst: int = 10
    """Tokens of its bucket; kube-api-burst."""
    watch_list: bool = True
    """Whether informers begin with a watch-list (WatchListClient, on since client-go v0.35) or with a LIST."""

    # ---- how it knows ----
    watching: Watching = "informers"
    """How it learns of a claim's fate: from its informers; or direct, by a watch of the claim and by a LIST and a watch
    of its warning and of its success events for each claim, and a GET of the volume before it makes it."""
    topology: bool = False
    """Whether it has informers of nodes and CSINodes too."""
    publish: bool = False
    """Whether it has an informer of VolumeAttachments too: drivers that attach."""
    second_classes: bool = True
    """Whether storage classes are watched twice, by the sidecar's own factory and by the library's."""

    resync_s: float = 900.0
    """How often every claim and volume of the informers is looked at again; DefaultResyncPeriod, 15 min. No request
    comes of it but for those that still need work."""

    # ---- what it tells ----
    events: Events = "in-order"
    """in-order: a worker waits for each of its events to be written, three writes a claim one after the other.
    broadcast: events are handed to the one goroutine of client-go's recorder (tools/record/event.go), which writes one
    at a time; with many workers they come long after the volumes. none: no events."""

    # ---- when something fails ----
    retry_s: float = 1.0
    """Wait after a claim's first failure, doubled with each; retry-interval-start. 0: at once."""
    retry_cap_s: float = 300.0
    """Largest such wait; retry-interval-max."""
    retry_bucket: bool = False
    """Whether retries of all claims share a bucket of 10 a second and 100 at once."""
    most_failures: int = 0
    """How often a claim is tried before it is dropped; 0: for ever."""
    save_tries: int = 0
    """How often a worker tries to save a volume, save_interval_s apart, before it deletes it again; 0: what failed goes
    to a queue that tries for ever, 5 ms later and doubled each time."""
    save_interval_s: float = 10.0
    """Wait between these tries; s."""
    restart_s: float = 1.0
    """How much later a container that has lost its Lease, and therefore exits, is there again; s."""

    # ---- the storage ----
    create: str = "lognormal:4:0.5"
    """How long CreateVolume takes: constant:S, uniform:LOW:HIGH, exponential:MEAN or lognormal:MEDIAN:SIGMA, in s.
    Ours: a disk of a cloud, 2 to 10 s; one call in 30 outlasts the timeout."""
    delete: str = "lognormal:1:0.5"
    """How long DeleteVolume takes."""
    failures: float = 0.0
    """Share of CreateVolume calls that fail, 0 to 1."""
    csi_timeout_s: float = 10.0
    """How long a call is waited for; timeout. The storage goes on, and the next call for the same volume joins it."""
    finalizer: bool = True
    """Whether volumes carry the provisioner's finalizer, which is taken off once the storage is deleted."""

    def __post_init__(self) -> None:
        for name in ("qps", "csi_timeout_s", "resync_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"provisioner option {name}={getattr(self, name):g} must be above 0")
        for name in ("burst", "workers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"provisioner option {name}={getattr(self, name)} must be at least 1")
        for name in ("retry_s", "retry_cap_s", "most_failures", "save_tries", "save_interval_s", "restart_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"provisioner option {name}={getattr(self, name):g} must be 0 or more")
        if not 0 <= self.failures <= 1:
            raise ConfigError(f"provisioner option failures={self.failures:g} must be a share, 0 to 1")
        for name in ("create", "delete"):
            parse_distribution(getattr(self, name), f"provisioner option {name}")


LEGACY: Mapping[str, Any] = {
    "election": "per-claim",
    "workers": 4,  # DefaultThreadiness
    "watch_list": False,
    "watching": "direct",
    "second_classes": False,
    "retry_s": 0.0,  # exponentialBackOffOnError is never set
    "retry_cap_s": 0.0,
    "retry_bucket": True,
    "most_failures": 15,  # DefaultFailedProvisionThreshold
    "save_tries": 5,  # DefaultCreateProvisionedPVRetryCount
    "finalizer": False,
}
PRESETS: Mapping[str, Mapping[str, Any]] = {"modern": {}, "legacy": LEGACY}
