"""Faults that a run gives to its pool, at a time after its load began."""

from __future__ import annotations

from functools import partial

from harness.apiserver.faults.spec import FaultSpec
from harness.load.plan import Target, TargetMember
from harness.pool.faults import order
from harness.pool.http import call
from harness.transport.tls import client_context


def inject(target: Target, spec: FaultSpec) -> dict[str, str]:
    """Begin a fault; for each member that refused it, why. (The pool itself tells of faults that have begun.)"""
    members = {member.name: member for member in target.members}
    context = client_context(
        target.ca.encode() or None, insecure=target.insecure, http="http/1.1", source="the pool's CA"
    )

    def to(name: str, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        member: TargetMember = members[name]
        return call(member.host, member.port, context, target.token, method, path, body)

    answers = order(partial(to), spec, list(members))
    return {member: answer for member, answer in answers.items() if isinstance(answer, str)}
