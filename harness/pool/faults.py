"""Asking members for faults: which members a fault is for, and one call to each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from harness.apiserver.faults.active import Order
from harness.apiserver.faults.spec import ALL, FaultSpec
from harness.wire.errors import ConfigError

PATH = "/swarmlet/faults"

Call = Callable[[str, str, str, bytes], tuple[int, bytes]]
"""(member, method, path, body) to (status, body). Raises OSError."""


def targets(spec: FaultSpec, members: Sequence[str]) -> Sequence[str]:
    """The members that are asked for a fault; of what they share, the first is asked for all."""
    if spec.member != ALL:
        return [name for name in members if name == spec.member]
    return members[:1] if spec.fault.of_store else members


def check_members(specs: Iterable[FaultSpec], members: Sequence[str]) -> None:
    """Raises ConfigError for a fault of a member that there is not."""
    for spec in specs:
        if not targets(spec, members):
            known = ", ".join([*members, ALL])
            raise ConfigError(f"fault {spec.fault.kind}: no member {spec.member!r} (known: {known})")


def order(call: Call, spec: FaultSpec, members: Sequence[str]) -> dict[str, Any]:
    """Begin a fault; what each member that was asked says of it, a text where it refused. Raises ConfigError."""
    check_members([spec], members)
    body = msgspec.json.encode(Order(spec.fault, spec.for_s))
    return {member: ask(call, member, "POST", PATH, body) for member in targets(spec, members)}


def ask(call: Call, member: str, method: str, path: str, body: bytes = b"") -> Any:
    """A member's answer, decoded; a text where there is none or it refused."""
    try:
        status, answer = call(member, method, path, body)
    except OSError as error:
        return str(error) or type(error).__name__
    if status != 200:
        return f"HTTP {status}: {answer.decode('utf-8', 'replace').strip()[:300]}"
    return msgspec.json.decode(answer)
