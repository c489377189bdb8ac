"""The target of a run: an emulated pool started for it, or a control plane that is already there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from harness.load.plan import Target, TargetMember
from harness.transport.kubeconfig import ClusterAccess, load_kubeconfig
from harness.wire.errors import ConfigError


def of_pool(ready: dict[str, Any]) -> Target:
    """The target that a pool's supervisor announced."""
    access = load_kubeconfig(Path(ready["kubeconfig"]))
    return _target(access, [TargetMember(m["name"], m["host"], int(m["port"])) for m in ready["members"]])


def existing_target(host: str, kubeconfig: str, endpoints: Sequence[str]) -> Target:
    """A control plane that is there: `host` is one URL (-H), `endpoints` its members as host:port, `kubeconfig` the
    credentials (else KUBECONFIG or ~/.kube/config; for an http:// host none). Raises ConfigError."""
    url = _url(host) if host else None
    if url is not None and url.scheme == "http" and not kubeconfig:
        return Target((TargetMember("apiserver", url.hostname or "", url.port or 80),), tls=False)
    access = _access(host, kubeconfig)
    if endpoints:
        return _target(access, [_member(f"member-{index}", text) for index, text in enumerate(endpoints)])
    if url is not None:
        if url.scheme != "https":
            raise ConfigError(f"-H {host}: a kubeconfig's credentials go to https:// only")
        return _target(access, [TargetMember("apiserver", url.hostname or "", url.port or 443)])
    return _target(access, [TargetMember("apiserver", access.host, access.port)])


def _access(host: str, kubeconfig: str) -> ClusterAccess:
    try:
        return load_kubeconfig(Path(kubeconfig) if kubeconfig else None)
    except ConfigError as error:
        if not host or kubeconfig:
            raise
        raise ConfigError(
            f"-H {host}: its credentials come from --kubeconfig, KUBECONFIG or ~/.kube/config: {error}"
        ) from None


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
    )
    access.ssl_context()  # refuses what OpenSSL does not take, before a fleet is started
    return target
