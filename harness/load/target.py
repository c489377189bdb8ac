"""The target of a run: an emulated pool started for it, or a control plane that is already there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import msgspec

from harness.load.plan import Target, TargetMember
from harness.transport.credentials import Rotation
from harness.transport.incluster import IN_CLUSTER, load_in_cluster
from harness.transport.kubeconfig import ClusterAccess, load_kubeconfig
from harness.wire.errors import ConfigError


class Existing(NamedTuple):
    """`rotation` is where fresh credentials come from, None where the target's stay good. `may_have_members`: one
    address stands for the whole cluster, and nobody said which members are behind it. `members_found` says what was
    found out about them."""

    target: Target
    rotation: Rotation | None = None
    may_have_members: bool = False
    members_found: str = ""


def of_pool(ready: dict[str, Any]) -> Target:
    """The target that a pool's supervisor announced."""
    access = load_kubeconfig(Path(ready["kubeconfig"]))
    target = _target(access, [TargetMember(m["name"], m["host"], int(m["port"])) for m in ready["members"]])
    return msgspec.structs.replace(
        target,
        has_scheduler=ready["has_scheduler"],
        has_controllers=ready["has_controllers"],
        front=msgspec.convert(ready["front"], tuple[TargetMember, ...]),
    )


def existing_target(host: str, kubeconfig: str, endpoints: Sequence[str], context: str = "") -> Existing:
    """A control plane that is there: `host` is one URL (-H), `endpoints` its members as host:port, `kubeconfig` the
    credentials: a path, or "in-cluster" for a pod's own. Without it those are KUBECONFIG's, ~/.kube/config's, or, where
    neither is there, a pod's; for an http:// host none. Raises ConfigError."""
    url = _url(host) if host else None
    if url is not None and url.scheme == "http" and not kubeconfig:
        return Existing(Target((TargetMember("apiserver", url.hostname or "", url.port or 80),), tls=False))
    access = _access(host, kubeconfig, context)
    if endpoints:
        members = [_member(f"member-{index}", text) for index, text in enumerate(endpoints)]
        return Existing(_target(access, members), access.rotation)
    if url is not None:
        if url.scheme != "https":
            raise ConfigError(f"-H {host}: a kubeconfig's credentials go to https:// only")
        members = [TargetMember("apiserver", url.hostname or "", url.port or 443)]
        return Existing(_target(access, members), access.rotation)
    return Existing(
        _target(access, [TargetMember("apiserver", access.host, access.port)]), access.rotation, access.tls
    )


def _access(host: str, kubeconfig: str, context: str) -> ClusterAccess:
    if kubeconfig == IN_CLUSTER or (not kubeconfig and _only_in_cluster()):
        return load_in_cluster(os.environ)
    try:
        return load_kubeconfig(Path(kubeconfig) if kubeconfig else None, context or None)
    except ConfigError as error:
        if not host or kubeconfig:
            raise
        raise ConfigError(
            f"-H {host}: its credentials come from --kubeconfig, KUBECONFIG or ~/.kube/config: {error}"
        ) from None


def _only_in_cluster() -> bool:
    """As client-go (tools/clientcmd/client_config.go): a pod's own credentials where there is no kubeconfig."""
    return (
        bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
        and not os.environ.get("KUBECONFIG")
        and not (Path.home() / ".kube" / "config").exists()
    )


def _url(host: str) -> SplitResult:
    try:
        url = urlsplit(host)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # a port that is no number, or none that there is
        usable = False
    if not usable:
        raise ConfigError(
            f"-H {host}: expected https://HOST[:PORT], or http://HOST[:PORT] without credentials"
        )
    return url


def _member(name: str, text: str) -> TargetMember:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"--endpoints {text!r}: expected HOST:PORT, separated by commas")
    return TargetMember(name, host.strip("[]"), int(port))


def _target(access: ClusterAccess, members: Sequence[TargetMember]) -> Target:
    target = Target(
        members=tuple(members),
        tls=access.tls,
        ca=(access.ca or b"").decode(),
        insecure=access.insecure,
        server_name=access.server_name,
        token=access.token,
        cert=(access.certificate or b"").decode(),
        key=(access.key or b"").decode(),
        path_prefix=access.path_prefix,
        headers=dict(access.impersonate),
        proxy=access.proxy_for(members[0].host, members[0].port),
        rotates=access.rotation is not None,
        context=access.context,
    )
    access.ssl_context()  # refuses what OpenSSL does not take, before a fleet is started
    return target
