"""The command lines of kube-apiserver, kube-scheduler and kube-controller-manager, a table each.

A kube-apiserver does not start without --etcd-servers, --service-account-issuer, --service-account-signing-key-file and
--service-account-key-file (kk/pkg/controlplane/apiserver/options/validation.go, validateTokenRequest) nor, since its
default is /var/run/kubernetes, without a --cert-dir that it may write to. ServiceAccount admission stays on, unlike
in controller-runtime's envtest: without it no pod has a token, and asking for those is a good part of what kubelets do.
Default accounts come from kube-controller-manager, or from a run's own controllers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from harness.apiserver.store.etcd3.endpoints import EtcdServers
from harness.pool.certificates import ServingFiles
from harness.wire.errors import ConfigError
from harness.wire.gotext import duration

SERVICE_CIDR = "10.0.0.0/16"  # as kube-up has it; the serving certificate is good for its first address
ISSUER = "https://kubernetes.default.svc"
_NAME = re.compile(r"[a-z][a-z0-9-]*")


class Apiserver(msgspec.Struct, frozen=True):
    """What the flags of one member say. `advertise` is the address at which clients reach it; `reads` and `writes` are
    the requests in flight of each kind; `cert_dir` is a folder of its own."""

    host: str
    port: int
    advertise: str
    cert_dir: str
    files: ServingFiles
    account_key: str
    account_public_key: str
    etcd: EtcdServers
    reads: int
    writes: int
    priority_and_fairness: bool
    event_ttl_s: float
    feature_gates: Mapping[str, bool]
    goaway_chance: float
    shutdown_delay_s: float


class Component(msgspec.Struct, frozen=True):
    """What the flags of a kube-scheduler or kube-controller-manager say."""

    host: str
    port: int
    kubeconfig: str
    files: ServingFiles
    account_key: str
    signing_duration_s: float
    feature_gates: Mapping[str, bool]


T = TypeVar("T", Apiserver, Component)


class Flag(NamedTuple, Generic[T]):
    """`value` gives "" where the flag is left out. One that is `ours` holds the pool together and cannot be given;
    `local`: its value is of one pool, a port or a file, and says nothing in a comparison."""

    name: str
    value: Callable[[T], str]
    ours: bool = False
    local: bool = False


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _gates(given: Apiserver | Component) -> str:
    return ",".join(f"{name}={_boolean(on)}" for name, on in sorted(given.feature_gates.items()))


OF_APISERVER: tuple[Flag[Apiserver], ...] = (
    Flag("etcd-servers", lambda s: ",".join(s.etcd.urls), ours=True, local=True),
    Flag("etcd-cafile", lambda s: s.etcd.ca_file, ours=True, local=True),
    Flag("etcd-certfile", lambda s: s.etcd.cert_file, ours=True, local=True),
    Flag("etcd-keyfile", lambda s: s.etcd.key_file, ours=True, local=True),
    Flag("bind-address", lambda s: s.host, ours=True, local=True),
    Flag("secure-port", lambda s: str(s.port), ours=True, local=True),
    Flag("advertise-address", lambda s: s.advertise, local=True),
    # A loopback address may not stand in Endpoints (kk/pkg/apis/core/validation, ValidateEndpointIP).
    Flag("endpoint-reconciler-type", lambda s: "none"),
    Flag("cert-dir", lambda s: s.cert_dir, ours=True, local=True),
    Flag("tls-cert-file", lambda s: s.files.cert, ours=True, local=True),
    Flag("tls-private-key-file", lambda s: s.files.key, ours=True, local=True),
    Flag("client-ca-file", lambda s: s.files.ca, ours=True, local=True),
    Flag("service-account-issuer", lambda s: ISSUER),
    Flag("service-account-key-file", lambda s: s.account_public_key, ours=True, local=True),
    Flag("service-account-signing-key-file", lambda s: s.account_key, ours=True, local=True),
    Flag("service-cluster-ip-range", lambda s: SERVICE_CIDR),
    Flag("authorization-mode", lambda s: "Node,RBAC"),
    Flag("enable-admission-plugins", lambda s: "NodeRestriction"),
    Flag("allow-privileged", lambda s: "true"),
    Flag("max-requests-inflight", lambda s: str(s.reads)),
    Flag("max-mutating-requests-inflight", lambda s: str(s.writes)),
    Flag("enable-priority-and-fairness", lambda s: _boolean(s.priority_and_fairness)),
    Flag("event-ttl", lambda s: duration(s.event_ttl_s)),
    Flag("goaway-chance", lambda s: f"{s.goaway_chance:g}" if s.goaway_chance else ""),
    Flag("shutdown-delay-duration", lambda s: duration(s.shutdown_delay_s) if s.shutdown_delay_s else ""),
    Flag("feature-gates", _gates),
)

# Leader election stays on, as it is by default: who drives the pool from outside sees by the Leases that it has them.
_OF_COMPONENTS: tuple[Flag[Component], ...] = (
    Flag("bind-address", lambda c: c.host, ours=True, local=True),
    Flag("secure-port", lambda c: str(c.port), ours=True, local=True),
    Flag("tls-cert-file", lambda c: c.files.cert, ours=True, local=True),
    Flag("tls-private-key-file", lambda c: c.files.key, ours=True, local=True),
    Flag("kubeconfig", lambda c: c.kubeconfig, ours=True, local=True),
    Flag("authentication-kubeconfig", lambda c: c.kubeconfig, ours=True, local=True),
    Flag("authorization-kubeconfig", lambda c: c.kubeconfig, ours=True, local=True),
    Flag("feature-gates", _gates),
)

OF_SCHEDULER = _OF_COMPONENTS

OF_CONTROLLER_MANAGER: tuple[Flag[Component], ...] = (
    *_OF_COMPONENTS,
    Flag("use-service-account-credentials", lambda c: "true"),
    Flag("service-account-private-key-file", lambda c: c.account_key, ours=True, local=True),
    Flag("root-ca-file", lambda c: c.files.ca, ours=True, local=True),
    Flag("cluster-signing-cert-file", lambda c: c.files.ca, ours=True, local=True),
    Flag("cluster-signing-key-file", lambda c: c.files.ca_key, ours=True, local=True),
    Flag("cluster-signing-duration", lambda c: duration(c.signing_duration_s)),
)

_TABLES: Mapping[str, Sequence[Flag[Apiserver]] | Sequence[Flag[Component]]] = {
    "--apiserver-flag": OF_APISERVER,
    "--scheduler-flag": OF_SCHEDULER,
    "--controller-manager-flag": OF_CONTROLLER_MANAGER,
}


def check_given(option: str, given: Sequence[str]) -> None:
    """Raises ConfigError for what is no ``name=value``, or the pool's own affair."""
    ours = {flag.name for flag in _TABLES[option] if flag.ours}
    for text in given:
        name, equals, _ = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise ConfigError(f"{option} {text!r}: expected NAME=VALUE, the name without dashes in front")
        if name in ours:
            raise ConfigError(f"{option} {name}: the pool sees to it, it cannot be given")


def command_line(table: Sequence[Flag[T]], told: T, given: Sequence[str]) -> list[str]:
    """The arguments; what is `given` as ``name=value`` stands in the table's place, or behind; ``name=`` leaves one of
    the table out."""
    values = {flag.name: flag.value(told) for flag in table}
    return [f"--{name}={value}" for name, value in {**values, **_pairs(given)}.items() if value]


def settings(table: Sequence[Flag[T]], told: T, given: Sequence[str]) -> dict[str, str]:
    """What the flags say that is no matter of one pool's ports and files: for its record."""
    values = {flag.name: flag.value(told) for flag in table if not flag.local}
    return {name: value for name, value in {**values, **_pairs(given)}.items() if value}


def _pairs(given: Sequence[str]) -> dict[str, str]:
    return {name: value for name, _, value in (text.partition("=") for text in given)}
