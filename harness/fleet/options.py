"""What a kubelet can be told, with unit, meaning and the reason for each default."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal

from harness.client.content import ContentType, check_content_type
from harness.wire.draws import Draws
from harness.wire.errors import ConfigError

SHORTEST_CERTIFICATE_S = 600  # kk/pkg/apis/certificates/validation, spec.expirationSeconds
START_JITTERS = ("none", "uniform", "exponential")
Range = tuple[float, float]
"""Two ends of a uniform distribution, in the unit that ends the field's name; equal ends make a constant."""


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """Defaults are those of kubelet v1.36 unless said; `kk/` is k8s.io/kubernetes."""

    version: str = "v1.36.2"
    """kubeletVersion in the node's status; no unit."""

    # ---- clients (kk/cmd/kubelet/app/server.go:721-745) ----
    qps: float = 50.0
    """Requests a second of the main client; kubeAPIQPS. A hollow node is often run with 10."""
    burst: int = 100
    """Tokens that the main client's bucket holds; kubeAPIBurst."""
    event_qps: float = 50.0
    """Requests a second of the events client; eventRecordQPS."""
    event_burst: int = 100
    """Tokens that the events client's bucket holds; eventBurst."""
    heartbeat_timeout_s: float = 10.0
    """Bound on a heartbeat request; min(nodeStatusUpdateFrequency, lease duration 40 s) as server.go does."""

    content_type: ContentType = "auto"
    """Encoding of bodies and answers (`harness.client.content`). A kubelet has ``protobuf`` (contentType); auto asks
    for protobuf and writes JSON, which any server takes."""
    watch_list: bool = True
    """Feature gate WatchListClient, true since v1.35: reflectors begin with a watch-list; False is a client older than
    that, which LISTs."""
    close_on_heartbeat_failure: bool = False
    """Whether all connections are closed when a heartbeat fails twice in a row. A kubelet does so where DISABLE_HTTP2
    was set in its environment; else it closes idle ones, of which there is none while it watches."""
    rotate_certificates: bool = True
    """rotateCertificates: a new client certificate at 70 to 90 % of the old one's life. Takes part where the node has a
    certificate."""
    certificate_life_s: int = 0
    """How long each client certificate is asked to live, the first too; s. At least 600, as the API wants it; 0: as
    long as the signer gives, which a kubelet leaves to the cluster (--cluster-signing-duration, a year). The signer
    puts its beginning 5 min into the past, so one of 600 s is renewed 330 to 510 s after it was made."""
    kube_proxy: bool = False
    """Whether a kube-proxy runs beside the kubelet, on a connection of its own. A node has one; off, since its watches
    of all services and endpoint slices are a load of their own kind that a run should ask for."""
    kube_proxy_one_of: int = 1
    """One node in so many has that kube-proxy, drawn for each. Every node has one; but each change of an endpoint slice
    is an event to each, most of what 5,000 nodes bring about, and each is sent and read in earnest on this machine."""
    start_jitter_s: float = 0.0
    """How much later than its spawn a kubelet starts, drawn from `start_jitter`; s. 0: at once, the spawn rate alone
    spreads them."""
    start_jitter: Literal["none", "uniform", "exponential"] = "uniform"
    """Distribution of that delay: uniform up to `start_jitter_s`, exponential of that mean, or none."""

    # ---- heartbeats ----
    lease_duration_s: int = 40
    """nodeLeaseDurationSeconds."""
    lease_renew_s: float = 10.0
    """A quarter of the lease's duration (kk/pkg/kubelet/kubelet.go, nodeLeaseRenewIntervalFraction)."""
    status_update_s: float = 10.0
    """nodeStatusUpdateFrequency: how often the node's status is computed."""
    status_report_s: float = 300.0
    """nodeStatusReportFrequency: how often an unchanged status is sent."""
    jitter: float = 0.04
    """Both heartbeats wait period x U[1, 1+jitter): wait.JitterUntil with 0.04."""

    # ---- the node ----
    pods: int = 110
    """Pod capacity; maxPods."""
    cpu: int = 8
    """Cores that the node says it has. A common size; the scheduler here counts pods, not cores."""
    memory_gib: int = 32
    """Memory that the node says it has, GiB."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels beside kubernetes.io/hostname, os and arch, of its signing requests too; () for none."""

    # ---- pods ----
    sync_delay_s: Range = (0.001, 0.002)
    """From hearing of a pod to its first requests: 1 to 2 ms, measured on hollow nodes."""
    wait_for_attach: bool = True
    """Whether volumes of CSI drivers that attach wait for the attach-detach controller; False where there is none."""
    volume_loop_s: float = 0.1
    """Period of the volume manager's populator and of its reconciler, each 100 ms
    (kk/pkg/kubelet/volumemanager/volume_manager.go:58-70). A pod's mount therefore begins 100 to 300 ms after the pod
    is known: next populator tick, next reconciler tick (marks it attached), the one after."""
    mount_poll_s: float = 0.3
    """How often a pod worker asks whether all is mounted; podAttachAndMountRetryInterval."""
    mount_backoff_s: float = 0.5
    """First wait after a failed mount, then doubling (exponentialbackoff.go: 500 ms, factor 2)."""
    mount_backoff_cap_s: float = 122.0
    """Largest wait after a failed mount: 2 min 2 s."""
    object_wait_s: float = 1.0
    """How long reading a secret or configmap waits for its reflector to sync (watch_based_manager.go:301)."""
    start_delay_s: Range = (0.3, 1.0)
    """From mounted to running: sandbox, image already there, container, and the PLEG's relist of up to 1 s. containerd
    needs about 0.3 s for the first three on an idle node; a loaded one needs seconds, so set it to what is studied."""
    relist_s: float = 1.0
    """Period of the PLEG's relist: how long the end of a container goes unseen at most (kubelet.go,
    genericPlegRelistPeriod)."""
    run_s: Range = (1.0, 5.0)
    """How long a container runs that ends at some time, where neither its command (``sleep 5``) nor the pod's
    annotation (``swarmlet.io/run-seconds``) says: those of Jobs, and init containers. Ours: short programs."""
    stop_delay_s: Range = (0.05, 0.3)
    """From SIGTERM to the last container's end, never more than the grace period: a process that heeds the signal. The
    recorded hollow node reports stopped containers 45 to 300 ms after it heard of the deletion."""
    cleanup_delay_s: Range = (0.1, 0.3)
    """From containers stopped to volumes unmounted: one to three volume loops."""
    worker_retry_s: Range = (10.0, 15.0)
    """Wait before a pod's failed sync is tried again: backOffPeriod 10 s x U[1, 1.5) (pod_workers.go)."""
    status_reconcile_s: float = 10.0
    """Period of the status manager's full pass, which retries what failed (status_manager.go, syncPeriod)."""
    sync_frequency_s: float = 60.0
    """syncFrequency: how often volumes are touched and tokens looked at. A secret or configmap untouched for
    max(1 min, 5 x this) loses its watch."""
    recycle_s: float = 60.0
    """Period of the tick that looks for such idle objects (watch_based_manager.go, startRecycleIdleWatch)."""
    object_watch_timeout_s: Range = (1800.0, 3600.0)
    """timeoutSeconds of secret and configmap watches: U[30 min, 60 min)."""
    follow_one_of: int = 0
    """One write and one pod in so many are followed from the writer to here (`harness.client.delivery`); 0: none."""
    events: bool = True
    """Whether events are posted. A hollow node posts none (it has a fake recorder), a real kubelet does."""

    def __post_init__(self) -> None:
        check_content_type(self.content_type)
        if self.start_jitter not in START_JITTERS or self.start_jitter_s < 0:
            raise ConfigError(
                f"kubelet option start_jitter={self.start_jitter!r} of {self.start_jitter_s:g} s: "
                f"one of {', '.join(START_JITTERS)}, of 0 s or more"
            )
        if self.certificate_life_s and self.certificate_life_s < SHORTEST_CERTIFICATE_S:
            raise ConfigError(
                f"kubelet option certificate_life_s={self.certificate_life_s}: at least {SHORTEST_CERTIFICATE_S}, or 0"
            )
        if self.kube_proxy_one_of < 1:
            raise ConfigError(f"kubelet option kube_proxy_one_of={self.kube_proxy_one_of}: at least 1")
        for name in ("qps", "event_qps", "lease_renew_s", "status_update_s", "volume_loop_s", "mount_poll_s"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"kubelet option {name}={getattr(self, name)!r} must be above 0")
        for name in ("sync_delay_s", "start_delay_s", "stop_delay_s", "cleanup_delay_s", "worker_retry_s"):
            low, high = getattr(self, name)
            if not 0 <= low <= high:
                raise ConfigError(
                    f"kubelet option {name}=({low}, {high}) must be two seconds, 0 <= low <= high"
                )

    def draw_start_s(self, rng: Draws) -> float:
        """How much later than it is told to a kubelet starts."""
        if not self.start_jitter_s or self.start_jitter == "none":
            return 0.0
        if self.start_jitter == "uniform":
            return self.start_jitter_s * rng.random()
        return -self.start_jitter_s * log(1.0 - rng.random())

    def draw_kube_proxy(self, rng: Draws) -> bool:
        """Whether the node has one, where the fleet has any."""
        return rng.random() * self.kube_proxy_one_of < 1.0

    @property
    def idle_s(self) -> float:
        """After how long an untouched object's watch is stopped (watch_based_manager.go, minIdleTime)."""
        return max(60.0, 5 * self.sync_frequency_s)
