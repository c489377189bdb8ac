"""The members of an existing control plane, from the ``kubernetes`` EndpointSlices in ``default``.

A kubeconfig usually names one address, a load balancer's. Behind it each apiserver enters its own address in these
slices (kk/pkg/controlplane/reconcilers); with them each member is scraped, and each request is attributed to the one
that answered.
"""

from __future__ import annotations

from typing import NamedTuple

import gevent
import msgspec

from harness.client.requests import ResourceRef, list_
from harness.load.cluster.errands import Errands, problem_of
from harness.load.connect import Connector
from harness.load.plan import Target, TargetMember
from harness.transport.dialing import dial
from harness.transport.endpoints import Endpoint
from harness.transport.options import TransportOptions
from harness.transport.proxies import parse_proxy
from harness.transport.timers import Timers
from harness.wire.request import Response, TransportError

SLICES = ResourceRef("discovery.k8s.io", "v1", "endpointslices")
NAMESPACE = "default"
SELECTOR = "kubernetes.io/service-name=kubernetes"
REACHED_WITHIN_S = 3.0
"""For the connection, and again for its TLS handshake: further away is no member to measure from here."""


class _Port(msgspec.Struct):
    name: str | None = None
    port: int | None = None


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None


class _Endpoint(msgspec.Struct):
    addresses: list[str]
    conditions: _Conditions = _Conditions()


class _Slice(msgspec.Struct):
    endpoints: list[_Endpoint] | None = None
    ports: list[_Port] | None = None


class _Slices(msgspec.Struct):
    items: list[_Slice] | None = None


class Found(NamedTuple):
    """`target` with the members, or as it was; `text` says in one line what was found."""

    target: Target
    text: str


def discover(errands: Errands) -> Found:
    """Ask for the members and try each. Never fails: what cannot be used leaves the target as it is."""
    target = errands.target
    addresses, problem = _listed(errands)
    if problem:
        return Found(target, f"members not known: {problem}; all requests go to {_place(target.members[0])}")
    own = target.members[0]
    if [(host, port) for host, port in addresses] == [(own.host, own.port)]:
        return Found(target, f"1 member: {_place(own)}")
    members = tuple(TargetMember(f"member-{n}", host, port) for n, (host, port) in enumerate(addresses))
    name = target.server_name or own.host
    tried = [gevent.spawn(unreachable, target, member, name) for member in members]
    gevent.joinall(tried)
    bad = [
        f"{_place(m)} ({greenlet.value})"
        for m, greenlet in zip(members, tried, strict=True)
        if greenlet.value
    ]
    if bad:
        good = [_place(m) for m, greenlet in zip(members, tried, strict=True) if not greenlet.value]
        text = f"members reachable from here: {', '.join(good) or 'none'}; unreachable: {', '.join(bad)}"
        # With some of them only, the fleet would load those and spare the others.
        return Found(target, f"{text}; all requests go to {_place(own)} and are not told apart by member")
    found = msgspec.structs.replace(target, members=members, server_name=name)
    return Found(found, f"{len(members)} members, all reachable: {', '.join(map(_place, members))}")


def _listed(errands: Errands) -> tuple[list[tuple[str, int]], str]:
    """Addresses of the members that are ready, sorted; or what is wrong."""
    answer = errands.ask(list_(SLICES, NAMESPACE, label_selector=SELECTOR))
    problem = problem_of(answer)
    if problem:
        return [], f"the EndpointSlices of the service kubernetes cannot be listed: {problem}"
    assert isinstance(answer, Response)
    try:
        slices = msgspec.json.decode(answer.body, type=_Slices).items or []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return [], f"the EndpointSlices of the service kubernetes are no list: {error}"
    found = {
        (address, port.port)
        for each in slices
        for port in each.ports or ()
        if port.port and port.name in ("https", "", None)
        for endpoint in each.endpoints or ()
        if endpoint.conditions.ready is not False
        for address in endpoint.addresses
    }
    return sorted(found), "" if found else "there are no EndpointSlices of the service kubernetes"


def unreachable(target: Target, member: TargetMember, name: str, within_s: float = REACHED_WITHIN_S) -> str:
    """Why a member cannot be used from here, "" where it can: TCP, and TLS with a certificate for `name`."""
    timers = Timers()
    try:
        tls = Connector(target, timers).anonymous_tls()
        proxy = parse_proxy(target.proxy, "the target's proxy") if target.proxy else None
        options = TransportOptions(connect_timeout_s=within_s, tls_handshake_timeout_s=within_s)
        dialled = dial(Endpoint(member.host, member.port, member.name), tls, name, options, proxy)
    except TransportError as error:
        return error.detail
    finally:
        timers.close()
    dialled.sock.close()
    return ""


def _place(member: TargetMember) -> str:
    return f"{member.host}:{member.port}"
