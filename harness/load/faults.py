"""Faults that a run asks for, at a time after its load began."""

from __future__ import annotations

import http.client
import re
import ssl

import msgspec

from harness.load.plan import Target
from harness.wire.errors import ConfigError

KINDS = ("stall-informer",)
_SPEC = re.compile(r"(?P<kind>[\w-]+):(?P<member>[\w.-]+):(?P<seconds>\d+(?:\.\d+)?)@(?P<at>\d+(?:\.\d+)?)")


class Fault(msgspec.Struct, frozen=True):
    """`kind` on `member` for `seconds`, `at_s` after the load phase began."""

    kind: str
    member: str
    seconds: float
    at_s: float


def parse_fault(spec: str) -> Fault:
    """``stall-informer:member-1:20@5``. Raises ConfigError."""
    found = _SPEC.fullmatch(spec)
    if found is None or found["kind"] not in KINDS:
        raise ConfigError(
            f"--fault {spec!r}: expected KIND:MEMBER:SECONDS@SECONDS with KIND one of {', '.join(KINDS)}"
        )
    return Fault(found["kind"], found["member"], float(found["seconds"]), float(found["at"]))


def inject(target: Target, fault: Fault) -> str:
    """Ask a member of an emulated pool for a fault; "" on success, else why not."""
    member = next((m for m in target.members if m.name == fault.member), None)
    if member is None:
        return f"no member {fault.member}"
    context = ssl.create_default_context(cadata=target.ca or None)
    connection = http.client.HTTPSConnection(member.host, member.port, timeout=10, context=context)
    try:
        connection.request(
            "POST",
            "/swarmlet/faults",
            body=msgspec.json.encode({"kind": fault.kind, "seconds": fault.seconds}),
            headers={"Authorization": f"Bearer {target.token}", "Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        return "" if answer.status < 300 else f"HTTP {answer.status}: {text[:200]}"
    except OSError as error:
        return str(error)
    finally:
        connection.close()
