"""Asks a control plane that is already there whether it is well and lets us in, before a fleet is sent to it."""

from __future__ import annotations

import http.client
import socket

import gevent
import msgspec

from harness.load.plan import Target, TargetMember
from harness.transport.tls import client_context
from harness.wire import rfc3339
from harness.wire.errors import ConfigError

WITHIN_S = 5.0  # for each step of an exchange: connect, handshake, answer
SHOWN = 200  # characters of an answer that an error quotes
READ = 20_000  # bytes of an answer: a Lease with its managedFields has two thousand
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/"
LEADS_S = 60.0  # since a lease's last renewal; components renew every 2 s, 60 s allows for clocks that differ


def probe(target: Target, within_s: float = WITHIN_S) -> None:
    """Ask every member at once. Raises ConfigError for the first that refuses, is silent, or is not ready."""
    asked = [gevent.spawn(probe_member, target, member, within_s) for member in target.members]
    gevent.joinall(asked)
    for one in asked:
        if one.value:
            raise ConfigError(one.value)


def with_components(target: Target, now: float, within_s: float = WITHIN_S) -> Target:
    """The target, saying whether a scheduler and a controller manager are at work there: those whose leader-election
    lease was renewed lately. `now` is seconds since 1970. Two schedulers would fight over every pod."""
    scheduler, controllers = (
        any(_leads(target, member, name, now, within_s) for member in target.members[:1])
        for name in ("kube-scheduler", "kube-controller-manager")
    )
    return msgspec.structs.replace(target, has_scheduler=scheduler, has_controllers=controllers)


def _leads(target: Target, member: TargetMember, name: str, now: float, within_s: float) -> bool:
    try:
        status, text = _get(target, member, LEASES + name, within_s)
        renewed = (
            rfc3339.parse(msgspec.json.decode(text, type=_Lease).spec.renew_time) if status == 200 else 0.0
        )
    except (OSError, http.client.HTTPException, ConfigError, msgspec.MsgspecError, ValueError):
        return False
    return now - renewed < LEADS_S


class _LeaseSpec(msgspec.Struct, rename="camel"):
    renew_time: str = ""


class _Lease(msgspec.Struct):
    spec: _LeaseSpec


def probe_member(target: Target, member: TargetMember, within_s: float) -> str:
    """Why a member cannot be used; "" where it can.

    /readyz decides; /version where that is not served or not allowed (a proxy, a stripped-down apiserver).
    """
    where = f"target {'https' if target.tls else 'http'}://{member.host}:{member.port}"
    try:
        status, text = _get(target, member, "/readyz", within_s)
        if status in (403, 404):
            status, text = _get(target, member, "/version", within_s)
    except TimeoutError:
        return f"{where}: no answer within {within_s:g} s; is it an apiserver, and reachable from here?"
    except (OSError, http.client.HTTPException, ConfigError) as error:
        return (
            f"{where}: cannot be reached: {getattr(error, 'strerror', None) or error or type(error).__name__}"
        )
    if status == 200:
        return ""
    if status == 401:
        return f"{where}: refuses our credentials (401); they come from the kubeconfig"
    return f"{where}: not ready: HTTP {status}: {' '.join(text.split())[:SHOWN]}"


def _get(target: Target, member: TargetMember, path: str, within_s: float) -> tuple[int, str]:
    connection = http.client.HTTPConnection(member.host, member.port, timeout=within_s)
    try:
        connection.sock = _connected(target, member, within_s)
        headers = {"User-Agent": "swarmlet", "Accept": "*/*"}
        if target.token:
            headers["Authorization"] = f"Bearer {target.token}"
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read(READ).decode("utf-8", "replace")
    finally:
        connection.close()


def _connected(target: Target, member: TargetMember, within_s: float) -> socket.socket:
    plain = socket.create_connection((member.host, member.port), timeout=within_s)
    if not target.tls:
        return plain
    try:
        context = client_context(
            target.ca.encode() or None,
            target.cert.encode() or None,
            target.key.encode() or None,
            insecure=target.insecure,
            http="http/1.1",  # http.client speaks nothing else
            source="the target's TLS files",
        )
        return context.wrap_socket(plain, server_hostname=target.server_name or member.host)
    except BaseException:
        plain.close()
        raise
