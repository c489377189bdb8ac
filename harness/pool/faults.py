"""Asking for faults: whom a fault is for, and one call to each member that is to do it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from harness.apiserver.faults.active import Order
from harness.apiserver.faults.poolkinds import NetworkFault, PausePart, PoolFault
from harness.apiserver.faults.spec import ALL, FaultSpec
from harness.pool.network.places import ETCD, STORE, Parts
from harness.wire.errors import ConfigError

PATH = "/swarmlet/faults"
_OF_A_REAL_ONE: dict[str, dict[str, Any]] = {"GET": {"faults": []}, "DELETE": {"ended": 0}}
"""What is said for a member that can have no faults of its own: that it has none."""
KEEPS_NOTHING = "keeps nothing, so the pool would be lost; give it a --data-dir"

Call = Callable[[str, str, str, bytes], tuple[int, bytes]]
"""(member, method, path, body) to (status, body). Raises OSError."""


def targets(spec: FaultSpec, members: Sequence[str]) -> Sequence[str]:
    """The members that are asked for a fault; of what they share, the first is asked for all. None is asked for what is
    done from outside."""
    if spec.of_pool:
        return ()
    if spec.member != ALL:
        return [name for name in members if name == spec.member]
    return members[:1] if spec.fault.of_store else members


def processes(spec: FaultSpec, parts: Parts) -> tuple[str, ...]:
    """The processes that a fault from outside is done to. Raises ConfigError where there is none of that name."""
    if spec.member == ALL:
        return parts.members
    if spec.member == ETCD and parts.etcd:
        return parts.etcd
    if spec.member == STORE and not parts.kept and not isinstance(spec.fault, PausePart):
        raise ConfigError(f"fault {spec.fault.kind}: {STORE} {KEEPS_NOTHING}")
    if spec.member not in parts.processes:
        known = ", ".join([*parts.processes, *([ETCD] if parts.etcd else []), ALL])
        raise ConfigError(f"fault {spec.fault.kind}: no member {spec.member!r} (known: {known})")
    return (spec.member,)


def check_parts(specs: Iterable[FaultSpec], parts: Parts) -> None:
    """Raises ConfigError for a fault of a part that a pool has not."""
    for spec in specs:
        if isinstance(spec.fault, NetworkFault):
            parts.find(spec.fault.between)
        elif isinstance(spec.fault, PoolFault):
            processes(spec, parts)
        else:
            check_members([spec], parts.members)


def check_members(specs: Iterable[FaultSpec], members: Sequence[str]) -> None:
    """Raises ConfigError for a fault of a member that there is not."""
    for spec in specs:
        if not targets(spec, members):
            known = ", ".join([*members, ALL])
            raise ConfigError(f"fault {spec.fault.kind}: no member {spec.member!r} (known: {known})")


def order(call: Call, spec: FaultSpec, members: Sequence[str]) -> dict[str, Any]:
    """Begin a fault; what each member that was asked says of it, a text where it refused. Raises ConfigError."""
    check_members([spec], members)
    assert not isinstance(spec.fault, PoolFault), "no member is asked for it"
    body = msgspec.json.encode(Order(spec.fault, spec.for_s))
    return {member: ask(call, member, "POST", PATH, body) for member in targets(spec, members)}


def ask(call: Call, member: str, method: str, path: str, body: bytes = b"") -> Any:
    """A member's answer, decoded; a text where there is none or it refused."""
    try:
        status, answer = call(member, method, path, body)
    except OSError as error:
        return str(error) or type(error).__name__
    if status == 404:
        return _OF_A_REAL_ONE.get(method, f"no emulated apiserver, which alone has {path} (HTTP 404)")
    if status != 200:
        return f"HTTP {status}: {answer.decode('utf-8', 'replace').strip()[:300]}"
    return msgspec.json.decode(answer)
