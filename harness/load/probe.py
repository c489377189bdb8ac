"""Asks a control plane that is already there whether it is well and lets us in, before a fleet is sent to it."""

from __future__ import annotations

import gevent
import msgspec

from harness.client.requests import LEASES, get_
from harness.load.cluster.errands import WITHIN_S, Errands, message_of
from harness.load.plan import Target, TargetMember
from harness.transport.sinks import Answer
from harness.wire import rfc3339
from harness.wire.errors import ConfigError
from harness.wire.request import Failure, Request, TransportError

NAMESPACE = "kube-system"
LEADS_S = 60.0  # since a lease's last renewal; components renew every 2 s, 60 s allows for clocks that differ


def probe(target: Target, within_s: float = WITHIN_S) -> None:
    """Ask every member at once. Raises ConfigError for the first that refuses, is silent, or is not ready."""
    asked = [gevent.spawn(probe_member, target, member, within_s) for member in target.members]
    gevent.joinall(asked)
    for one in asked:
        if one.value:
            raise ConfigError(one.value)


def with_components(errands: Errands, now: float) -> Target:
    """The target, saying whether a scheduler and a controller manager are at work there: those whose leader-election
    lease was renewed lately. `now` is seconds since 1970. Two schedulers would fight over every pod."""
    scheduler, controllers = (
        _leads(errands, name, now) for name in ("kube-scheduler", "kube-controller-manager")
    )
    return msgspec.structs.replace(errands.target, has_scheduler=scheduler, has_controllers=controllers)


def _leads(errands: Errands, name: str, now: float) -> bool:
    answer = errands.ask(get_(LEASES, NAMESPACE, name))
    if isinstance(answer, TransportError) or not answer.ok:
        return False
    try:
        renewed = rfc3339.parse(msgspec.json.decode(answer.body, type=_Lease).spec.renew_time)
    except (msgspec.MsgspecError, ValueError):
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
        errands = Errands(msgspec.structs.replace(target, members=(member,)), within_s)
    except ConfigError as error:
        return f"{where}: {error}"
    with errands:
        answer = errands.ask(_plain("/readyz"))
        if not isinstance(answer, TransportError) and answer.status in (403, 404):
            answer = errands.ask(_plain("/version"))
    return _verdict(where, answer, within_s)


def _verdict(where: str, answer: Answer, within_s: float) -> str:
    if isinstance(answer, TransportError):
        if answer.failure is Failure.TIMEOUT:
            return f"{where}: no answer within {within_s:g} s; is it an apiserver, and reachable from here?"
        return f"{where}: cannot be reached: {answer.detail}"
    if answer.status == 200:
        return ""
    if answer.status == 401:
        return f"{where}: refuses our credentials (401); they come from the kubeconfig"
    return f"{where}: not ready: HTTP {answer.status}: {message_of(answer)}"


def _plain(path: str) -> Request:
    return Request("get", "GET", path, "health", accept="*/*")
