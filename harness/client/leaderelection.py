"""Leader election: one of several processes holds a lock and renews it, the others wait until it is left.

Two generations of the same algorithm. client-go's (cg/tools/leaderelection/leaderelection.go, v0.36) locks a Lease and,
while it leads, writes it without reading it first. The one that provisioners had for each claim (external-storage
v4.0.0, lib/leaderelection) locks an annotation of the claim, reads before every write, gives up when its *task* is
done, and after a term. `Policy` says which, `Lock` where the record is.

Theory of operation: *acquiring*, a candidate tries, and where that fails waits retry_s x U[1, 2.2) and tries again. A
*try* reads the record (GET), and where it is free, one's own, or has not changed for the duration of a lease, writes it
(PUT; POST where there is no lock yet). *Leading*, rounds of tries follow one another; a round in which no try succeeds
within renew_s loses the lock. Whether another holder's lease has run out is measured from when this candidate saw the
record change, by its own clock: nobody's stamps are trusted.

The owner routes events by ``event.key[0]``, the key prefix, and consumes the `Leadership` items among the actions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from enum import Enum
from random import Random
from typing import TypeAlias

import msgspec

from harness.client.electionlocks import Lock, Record
from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Disarm,
    Event,
    Failed,
    Fired,
    Key,
    Sample,
    Send,
)
from harness.wire.request import Request

JITTER_FACTOR = 1.2


class Policy(msgspec.Struct, frozen=True):
    """Times in seconds. `term_s`: how long one may lead at most, None for ever. `reads_first`: a leader reads its
    record before it writes it. `waits_first`: a round of renewals begins with a wait (wait.Poll), not with a try."""

    lease_s: float
    renew_s: float
    retry_s: float
    term_s: float | None = None
    reads_first: bool = False
    waits_first: bool = False


SIDECAR = Policy(lease_s=15.0, renew_s=10.0, retry_s=5.0)
"""A CSI sidecar's (csi-lib-utils/leaderelection/leader_election.go)."""
PER_CLAIM = Policy(lease_s=15.0, renew_s=10.0, retry_s=2.0, term_s=30.0, reads_first=True, waits_first=True)
"""external-storage v4.0.0, lib/controller/controller.go, DefaultLeaseDuration and after."""


class Turn(Enum):
    """What becomes of a leadership, or of the wish for one."""

    BEGAN = "became leader"
    LOST = "could not renew"
    TERM = "term limit reached"
    TASK = "the task has ended"


class Leadership(msgspec.Struct, frozen=True):
    """`key` is the elector's prefix; everything but BEGAN is its end."""

    key: Hashable
    turn: Turn


Output: TypeAlias = Action | Leadership


class State(Enum):
    IDLE = "not started, or over"
    READING = "GET"
    CREATING = "POST"
    WRITING = "PUT"
    WAITING = "until the next try"


class Elector:
    """One candidate. `identity` is what the record calls it; requests carry `client` as the lock made them."""

    __slots__ = (
        "_deadline",
        "_epoch_s",
        "_has_read",
        "_in_round",
        "_key",
        "_last_try",
        "_lock",
        "_observed",
        "_observed_at",
        "_policy",
        "_previous",
        "_proposed",
        "_results",
        "_rng",
        "_round_began",
        "_term_ends",
        "identity",
        "leading",
        "state",
    )

    def __init__(
        self, key_prefix: Hashable, lock: Lock, identity: str, policy: Policy, rng: Random, epoch_s: float
    ) -> None:
        self._key = key_prefix
        self._lock = lock
        self._policy = policy
        self._rng = rng
        self._epoch_s = epoch_s
        self.identity = identity
        self.state = State.IDLE
        self.leading = False
        self._observed = Record()
        self._observed_at = float("-inf")
        self._proposed = Record()
        self._previous = ""
        self._results: deque[bool] = deque()
        self._round_began = self._deadline = 0.0
        self._last_try = self._in_round = self._has_read = False
        self._term_ends = float("inf")

    def __repr__(self) -> str:
        return f"Elector({self._key!r}, {self.state.name.lower()}, leading={self.leading})"

    @property
    def holder(self) -> str:
        """Who holds the lock, as far as this candidate knows."""
        return self._observed.holder

    def report(self, succeeded: bool) -> None:
        """The task that the lock is for has ended, whoever did it. Looked at before the next try or round: a success
        ends the wish for the lock, a failure only the leadership of whoever has it."""
        self._results.append(succeeded)

    # ---- the machine -------------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Output]:
        out: list[Output] = []
        self._acquire(now, out)
        return out

    def handle(self, event: Event, now: float) -> list[Output]:
        out: list[Output] = []
        if isinstance(event, Fired):
            if event.key[1] == "deadline":
                self._out_of_time(out)
            elif self.state is State.WAITING:
                self._due(now, out)
        elif isinstance(event, Answered | Failed) and self.state is not State.IDLE:
            self._answered(event, now, out)
        return out

    def stop(self, now: float) -> list[Output]:
        """End; the record stays as it is, so that others wait for its lease (ReleaseOnCancel is off)."""
        out: list[Output] = []
        self._end(out)
        return out

    # ---- rounds ------------------------------------------------------------------------------------------------------
    def _due(self, now: float, out: list[Output]) -> None:
        if not self.leading:
            self._acquire(now, out)
        elif self._in_round:
            self._try(now, out)
        else:
            self._round(now, out)

    def _acquire(self, now: float, out: list[Output]) -> None:
        if self._results and self._results.popleft():
            self._over(Turn.TASK, out)
        else:
            self._try(now, out)

    def _round(self, now: float, out: list[Output]) -> None:
        """Begin to renew."""
        policy = self._policy
        if self._results:
            self._results.clear()
            self._over(Turn.TASK, out)
            return
        if now >= self._term_ends:
            self._over(Turn.TERM, out)
            return
        self._round_began, self._in_round, self._last_try = now, True, False
        self._deadline = now + policy.renew_s
        if policy.waits_first:
            self._wait(now + policy.retry_s, out)
        else:
            out.append(Arm(self._at("deadline"), self._deadline))
            self._try(now, out)

    def _tried(self, succeeded: bool, now: float, out: list[Output]) -> None:
        policy = self._policy
        if not self.leading and succeeded:
            self.leading = True
            if policy.term_s is not None:
                self._term_ends = now + policy.term_s
            self._count_change(out)
            out.append(Leadership(self._key, Turn.BEGAN))
            self._round(now, out)
        elif not self.leading:
            self._wait(now + policy.retry_s * (1.0 + JITTER_FACTOR * self._rng.random()), out)
        elif succeeded and policy.waits_first:
            self._round(now, out)
        elif succeeded:
            self._in_round = False
            out.append(Disarm(self._at("deadline")))
            self._wait(now + policy.retry_s, out)
        elif self._last_try:
            self._over(Turn.LOST, out)
        else:
            self._try_later(now, out)

    def _count_change(self, out: list[Output]) -> None:
        """A lock that somebody held before has a new leader."""
        if self._previous not in ("", self.identity):
            out.append(Sample("leader_changes", 1.0))

    def _try_later(self, now: float, out: list[Output]) -> None:
        """At the next tick of the round; the last one is at its deadline (poller, am/util/wait/wait.go)."""
        ticks = int((now - self._round_began) / self._policy.retry_s + 1e-9) + 1
        due = self._round_began + ticks * self._policy.retry_s
        if self._policy.waits_first and due >= self._deadline:
            self._last_try = True
            due = max(now, self._deadline)
        self._wait(due, out)

    def _out_of_time(self, out: list[Output]) -> None:
        """The round's context has ended, and with it a request that is under way."""
        if self.leading:
            self._over(Turn.LOST, out)

    # ---- one try (tryAcquireOrRenew) ---------------------------------------------------------------------------------
    def _try(self, now: float, out: list[Output]) -> None:
        self._has_read = False
        if self.leading and not self._policy.reads_first and self._valid(now):
            self._write(self._observed, now, out)
        else:
            self._read(out)

    def _answered(self, event: Answered | Failed, now: float, out: list[Output]) -> None:
        was, self.state = self.state, State.WAITING
        status = event.response.status if isinstance(event, Answered) else 0
        taken = isinstance(event, Answered) and event.response.ok and self._takes(event.response.body)
        if was is State.READING and status == 404:
            self._create(now, out)
        elif was is State.READING and taken:
            self._found(self._lock.record, now, out)
        elif was is not State.READING and taken:
            self._observe(self._proposed, now)
            self._tried(True, now, out)
        elif was is State.WRITING and not self._has_read:
            self._read(out)  # somebody else has written: the slow path
        else:
            self._tried(False, now, out)

    def _takes(self, body: bytes) -> bool:
        try:
            self._lock.take(body)
        except msgspec.MsgspecError:
            return False
        return True

    def _found(self, record: Record, now: float, out: list[Output]) -> None:
        if record != self._observed:
            self._observe(record, now)
        if record.holder and record.holder != self.identity and self._valid(now):
            self._tried(False, now, out)
        else:
            self._write(record, now, out)

    def _read(self, out: list[Output]) -> None:
        self._has_read = True
        self._send(State.READING, self._lock.get(), out)

    def _create(self, now: float, out: list[Output]) -> None:
        self._proposed = self._proposal(now, None)
        request = self._lock.create(self._proposed)
        if request is None:
            self._tried(False, now, out)
        else:
            self._send(State.CREATING, request, out)

    def _write(self, before: Record, now: float, out: list[Output]) -> None:
        self._previous = before.holder
        self._proposed = self._proposal(now, before)
        self._send(State.WRITING, self._lock.update(self._proposed), out)

    def _proposal(self, now: float, before: Record | None) -> Record:
        """The record with us as its holder; `before` None where there is none yet."""
        stamp = self._lock.stamp(self._epoch_s + now)
        duration_s = int(self._policy.lease_s)
        if before is None:
            return Record(self.identity, duration_s, stamp, stamp, 0)
        if before.holder == self.identity:
            return Record(self.identity, duration_s, before.acquire_time, stamp, before.leader_transitions)
        return Record(self.identity, duration_s, stamp, stamp, before.leader_transitions + 1)

    def _valid(self, now: float) -> bool:
        return self._observed_at + self._policy.lease_s > now

    def _observe(self, record: Record, now: float) -> None:
        self._observed, self._observed_at = record, now

    # ---- actions -----------------------------------------------------------------------------------------------------
    def _at(self, part: str) -> Key:
        return (self._key, part)

    def _send(self, state: State, request: Request, out: list[Output]) -> None:
        self.state = state
        out.append(Send(self._at("lock"), request))

    def _wait(self, due: float, out: list[Output]) -> None:
        self.state = State.WAITING
        out.append(Arm(self._at("retry"), due))

    def _over(self, turn: Turn, out: list[Output]) -> None:
        self._end(out)
        out.append(Leadership(self._key, turn))

    def _end(self, out: list[Output]) -> None:
        if self.state is State.WAITING:
            out.append(Disarm(self._at("retry")))
        elif self.state is not State.IDLE:
            out.append(Cancel(self._at("lock")))
        if self._in_round and not self._policy.waits_first:
            out.append(Disarm(self._at("deadline")))
        self.state = State.IDLE
        self.leading = self._in_round = False
