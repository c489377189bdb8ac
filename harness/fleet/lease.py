"""The node's Lease: its heartbeat. component-helpers/apimachinery/lease/controller.go.

In steady state one PUT every 10 s x U[1, 1.04), built on the resourceVersion of the last answer, with no GET. Failing
that: GET; 404 leads to GET node (the owner reference) and POST, and without a node to nothing until the next tick.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from harness.client.machine import Answered, Arm, CloseConnections, Event, Failed, Fired, Send
from harness.client.requests import LEASES, NODES, create_, get_, update_
from harness.fleet.context import Context, Out, parsed

PART = "lease"
NAMESPACE = "kube-node-lease"
_UPDATES = 5  # maxUpdateRetries
_ENSURE_BACKOFF_S = 0.2  # 100 ms, doubled before the first wait
_ENSURE_CAP_S = 7.0  # maxBackoff


class LeaseState(Enum):
    """What the controller waits for."""

    IDLE = "the next tick"
    READING = "GET lease"
    OWNER = "GET node, for the owner reference"
    CREATING = "POST lease"
    UPDATING = "PUT lease"
    BACKOFF = "another try to make sure that the lease exists"


class _Owner(msgspec.Struct, frozen=True, gc=False):
    uid: str


class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    owner_references: tuple[_Owner, ...] = ()


class _View(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata


_DECODER = msgspec.json.Decoder(_View)


class LeaseController:
    """Renews one node's lease; `start` at once, then by itself."""

    __slots__ = (
        "_backoff_s",
        "_context",
        "_ensured",
        "_owner",
        "_timeout_s",
        "_uid",
        "_updates",
        "_version",
        "state",
    )

    def __init__(self, context: Context) -> None:
        self._context = context
        self._timeout_s = context.options.heartbeat_timeout_s
        self._version = ""  # resourceVersion of the last answer; "" where none is known
        self._uid = ""
        self._owner = ""  # uid of the node that owns the lease
        self._updates = 0
        self._ensured = False  # whether this sync has fallen back to reading the lease
        self._backoff_s = _ENSURE_BACKOFF_S
        self.state = LeaseState.IDLE

    def start(self, now: float, out: Out) -> None:
        self._sync(now, out)

    def handle(self, event: Event, now: float, out: Out) -> None:
        if isinstance(event, Fired):
            if self.state is LeaseState.BACKOFF:
                self._read(out)
            elif self.state is LeaseState.IDLE:
                self._sync(now, out)
        elif isinstance(event, Answered):
            self._answered(event, now, out)
        elif isinstance(event, Failed):
            self._no_success(0, now, out)

    # ---- steps -------------------------------------------------------------------------------------------------------
    def _sync(self, now: float, out: Out) -> None:
        self._updates = 0
        self._backoff_s = _ENSURE_BACKOFF_S
        self._ensured = not self._version
        if self._version:
            self._update(now, out)
        else:
            self._read(out)

    def _idle(self, now: float, out: Out) -> None:
        """Sliding: the period counts from the end of the work (JitterUntil)."""
        self.state = LeaseState.IDLE
        out.append(Arm((PART, "tick"), now + self._context.jittered(self._context.options.lease_renew_s)))

    def _read(self, out: Out) -> None:
        self.state = LeaseState.READING
        request = get_(LEASES, NAMESPACE, self._context.name, timeout_s=self._timeout_s, client="heartbeat")
        out.append(Send((PART, "get"), request))

    def _update(self, now: float, out: Out) -> None:
        self.state = LeaseState.UPDATING
        self._updates += 1
        name, body = self._context.name, self._body(now)
        request = update_(LEASES, NAMESPACE, name, body, timeout_s=self._timeout_s, client="heartbeat")
        out.append(Send((PART, "update"), request))

    def _answered(self, event: Answered, now: float, out: Out) -> None:
        view = parsed(_DECODER, event.response)
        if view is None:
            self._no_success(event.response.status, now, out)
            return
        metadata = view.metadata
        if self.state is LeaseState.OWNER:
            self._owner = metadata.uid
            self.state = LeaseState.CREATING
            body = self._body(now)
            request = create_(LEASES, NAMESPACE, body, timeout_s=self._timeout_s, client="heartbeat")
            out.append(Send((PART, "create"), request))
            return
        self._version, self._uid = metadata.resource_version, metadata.uid
        self._owner = metadata.owner_references[0].uid if metadata.owner_references else self._owner
        if self.state is LeaseState.READING:
            self._update(now, out)
        else:
            self._idle(now, out)

    def _no_success(self, status: int, now: float, out: Out) -> None:
        """`status` is 0 where no answer came."""
        if self.state is LeaseState.READING and status == 404:
            self._version = self._uid = ""
            self.state = LeaseState.OWNER
            request = get_(NODES, None, self._context.name, timeout_s=self._timeout_s, client="heartbeat")
            out.append(Send((PART, "owner"), request))
        elif self.state is LeaseState.OWNER:
            self._idle(now, out)
        elif self.state is LeaseState.UPDATING:
            self._update_failed(status, now, out)
        else:
            self.state = LeaseState.BACKOFF
            out.append(Arm((PART, "tick"), now + self._backoff_s))
            self._backoff_s = min(2 * self._backoff_s, _ENSURE_CAP_S)

    def _update_failed(self, status: int, now: float, out: Out) -> None:
        """A conflict needs a newer lease first; anything else is tried again at once, five times in all. Then the
        lease is read, and five more tries end this sync."""
        if self._updates > 1 and status != 409 and self._context.options.close_on_heartbeat_failure:
            out.append(CloseConnections("heartbeat failed"))
        if self._updates >= _UPDATES and self._ensured:
            self._idle(now, out)
        elif self._updates >= _UPDATES:
            self._ensured, self._updates = True, 0
            self._read(out)
        elif status == 409:
            self._read(out)
        else:
            self._update(now, out)

    # ---- requests ----------------------------------------------------------------------------------------------------
    def _body(self, now: float) -> bytes:
        context = self._context
        version = f'"uid":"{self._uid}","resourceVersion":"{self._version}",' if self._version else ""
        owner = (
            '"ownerReferences":[{"apiVersion":"v1","kind":"Node",'
            f'"name":"{context.name}","uid":"{self._owner}"}}]'
            if self._owner
            else '"ownerReferences":[]'
        )
        return (
            '{"kind":"Lease","apiVersion":"coordination.k8s.io/v1",'
            f'"metadata":{{"name":"{context.name}","namespace":"{NAMESPACE}",{version}{owner}}},'
            f'"spec":{{"holderIdentity":"{context.name}",'
            f'"leaseDurationSeconds":{context.options.lease_duration_s},'
            f'"renewTime":"{context.micro_stamp(now)}"}}}}'
        ).encode()
