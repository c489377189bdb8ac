"""The contract of every pure machine of a client: events and the time go in, actions come out.

A machine owns no socket, clock or random source. A shell (gevent under Locust, a virtual clock in tests) carries out
the actions and feeds back the events. Every action and event has a `key`, chosen by the machine: a tuple whose first
item says which part of the machine it belongs to, so that a machine made of parts routes by ``event.key[0]``.

`now` is monotonic seconds since the shell's start; a machine that writes wall-clock stamps is given `epoch_s`, the
wall-clock time of ``now == 0``.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol, TypeAlias

import msgspec

from harness.wire.request import Request, Response, TransportError

Key: TypeAlias = tuple[Hashable, ...]


# ---- actions -------------------------------------------------------------------------------------------------------
class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a request. A unary one ends in one `Answered` or `Failed`; a watch in `Opened`, `Received`..., `Closed`,
    or, where it was not answered by 2xx, in one `Answered`, or in `Failed`."""

    key: Key
    request: Request


class Cancel(msgspec.Struct, frozen=True, gc=False):
    """Give up the request of this key; no further event comes for it."""

    key: Key


class Arm(msgspec.Struct, frozen=True, gc=False):
    """Send `Fired(key)` at time `at`; an earlier timer of the same key is replaced."""

    key: Key
    at: float


class Disarm(msgspec.Struct, frozen=True, gc=False):
    key: Key


class Sample(msgspec.Struct, frozen=True):
    """A measurement: `value` in the unit that ends the name (``pod_startup_ms``), with bounded labels."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


class Seen(msgspec.Struct, frozen=True, gc=False):
    """This client now knows of a write that is followed under the key `write` (`harness.client.delivery`); the time
    since then becomes a sample called `name`."""

    write: str
    name: str
    labels: tuple[tuple[str, str], ...] = ()


class Note(msgspec.Struct, frozen=True):
    """Something a run record keeps as an event: a phase, a barrier, a warning."""

    kind: str
    fields: dict[str, object]


class CloseConnections(msgspec.Struct, frozen=True):
    """Close every connection of this client; what they carry ends as broken, and new ones are opened when needed. `why`
    is a bounded label."""

    why: str


class UseCertificate(msgspec.Struct, frozen=True):
    """Connections from the next one on show this certificate (PEM), signed for the request that the shell made."""

    certificate: bytes


class Tell(msgspec.Struct, frozen=True):
    """Tell another part of this run, on whichever worker it is; `message` is a struct that both know."""

    to: str
    message: Any


class Finished(msgspec.Struct, frozen=True):
    """The machine has nothing more to do. `failures`: what could not be done; `violations`: what was done and
    measured, and missed a threshold."""

    failures: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()


# ---- events --------------------------------------------------------------------------------------------------------
class Answered(msgspec.Struct, frozen=True, gc=False):
    key: Key
    response: Response


class Failed(msgspec.Struct, frozen=True):
    """No answer came."""

    key: Key
    error: TransportError


class Opened(msgspec.Struct, frozen=True, gc=False):
    """A watch was answered 200; `member` is the endpoint that serves it, `content_type` the answer's ("" is JSON)."""

    key: Key
    member: str
    content_type: str = ""


class Received(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a watch, in any split."""

    key: Key
    data: bytes


class Closed(msgspec.Struct, frozen=True):
    """A watch ended: cleanly (`error` None), or broken."""

    key: Key
    error: TransportError | None


class Fired(msgspec.Struct, frozen=True, gc=False):
    key: Key


class Told(msgspec.Struct, frozen=True):
    """Another part of this run says something (`Tell`)."""

    key: Key
    by: str
    message: Any


Action: TypeAlias = (
    Send | Cancel | Arm | Disarm | Sample | Seen | Note | CloseConnections | UseCertificate | Tell | Finished
)
Event: TypeAlias = Answered | Failed | Opened | Received | Closed | Fired | Told


class Machine(Protocol):
    """Anything a shell can run."""

    def start(self, now: float) -> list[Action]:
        """First actions. Called once."""
        ...

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take one event; never blocks, never raises for what a peer did."""
        ...

    def stop(self, now: float) -> list[Action]:
        """Last actions (Cancel, Disarm); the shell closes what is left."""
        ...
