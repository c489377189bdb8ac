"""How one member is set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.apiserver.auth.nodeauthorizer import NodeAuthorizerOptions
from harness.apiserver.featuregates import FeatureGates

SIGNING_DURATION_S = 365 * 24 * 3600.0  # --cluster-signing-duration of kube-controller-manager


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """`cores`: modelled cores of the member's host, None for no model. `costs` overrides fields of `Costs`.
    `admin_token` is the bearer token of a member of system:masters, `token_key` signs service-account tokens and is
    the same in all members of a pool. `server_address` is what discovery says, as host:port."""

    name: str = "member-0"
    admin_token: str = ""
    token_key: bytes = b"swarmlet-token-key"
    cores: float | None = None
    costs: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    server_address: str = "127.0.0.1:6443"
    server_concurrency: int = 600  # --max-requests-inflight 400 and --max-mutating-requests-inflight 200
    priority_and_fairness: bool = (
        True  # --enable-priority-and-fairness; without it two thirds may be reads at once
    )
    request_timeout_s: float = 60.0  # --request-timeout
    service_cidr: str = "10.0.0.0/16"  # as kube-up has it: room for the services of 5,000 nodes
    service_cluster_ip: str = "10.0.0.1"  # of the service default/kubernetes
    default_storage_class: bool = False  # whether there is one from the start, as kube-up's addon has it
    event_ttl_s: float = 3600.0  # --event-ttl
    feature_gates: FeatureGates = field(default_factory=FeatureGates)  # --feature-gates
    signing_ca: tuple[bytes, bytes] | None = (
        None  # certificate and key, as PEM, that sign client certificates
    )
    client_ca: bytes = b""  # --client-ca-file's content, as PEM, for whoever serves clients beside us
    signing_duration_s: float = SIGNING_DURATION_S
    protobuf_answers: bool = False  # to clients that prefer them; JSON costs us less
    node_authorizer: NodeAuthorizerOptions = field(default_factory=NodeAuthorizerOptions)
