"""The store behind all members: what is written (`StoreCore`), when it is (`EtcdModel`), and who hears of it.

Each member reads from its own replica, which is the store as of the last write that it has heard of. Writes are
applied in the order in which they were proposed; each member gets the answer to its own write when its replica has it,
before the event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from harness.apiserver.clock import Clock, Promise, Timer
from harness.apiserver.store.core import (
    Compacted,
    FutureRevision,
    GetResult,
    HistoryResult,
    RangeResult,
    StoreCore,
    StoreError,
    StoreEvent,
    StoreTimeout,
    StoreUnavailable,
    Txn,
    TxnResult,
)
from harness.apiserver.store.etcd import EtcdModel

T = TypeVar("T")

UNAVAILABLE = "rpc error: code = Unavailable desc = etcd member is not running"
TIMED_OUT = "etcdserver: request timed out"
LEADER_LOST = "etcdserver: request timed out, possibly due to previous leader failure"

EXPIRY_PERIOD_S = (
    0.5  # how often expired keys are looked for, and how many at once (lessor.go: leaseRevokeRate)
)
EXPIRED_AT_ONCE = 500

SNAPSHOT_WAIT_S = (
    0.25  # how often a compaction looks whether the snapshot that it must not disturb is written
)

COMPACTED_AT_ONCE = 1000  # writes; then others have their turn (etcd's --compaction-batch-limit and
COMPACTION_PAUSE_S = 0.01  # --compaction-sleep-interval, server/storage/mvcc/kvstore_compaction.go)


class Journal(Protocol):
    """Makes proposals durable (`disk.journal.Journal`)."""

    snapshotting: bool

    def append(self, proposals: Sequence[Txn | int], done: Callable[[StoreError | None], object]) -> None: ...


class ReplicaSink(Protocol):
    """Who follows one member's replica."""

    def on_events(self, events: Sequence[StoreEvent]) -> None: ...


class _Proposal:
    __slots__ = ("at", "member", "promise", "timer", "txn", "visible")

    def __init__(self, member: str, txn: Txn) -> None:
        self.member = member
        self.txn = txn
        self.promise: Promise[TxnResult] = Promise()
        self.timer: Timer | None = None
        self.at = 0.0
        self.visible: dict[str, float] = {}


class _Replica:
    """What one member has been sent and not yet applied, and who waits for it to."""

    __slots__ = ("applied", "armed", "queue", "reads", "sink")

    def __init__(self, applied: int) -> None:
        self.applied = applied
        self.queue: deque[tuple[float, StoreEvent | None, _Proposal, TxnResult]] = deque()
        self.reads: list[
            tuple[int, Callable[[], object]]
        ] = []  # revision that must be applied, what to do then
        self.sink: ReplicaSink | None = None
        self.armed = False


class ReplicatedStore:
    """All members' etcd. Every promise fails with StoreTimeout where there is no quorum for too long."""

    def __init__(
        self,
        core: StoreCore,
        model: EtcdModel,
        clock: Clock,
        slack_s: float = 0.0,
        journal: Journal | None = None,
    ) -> None:
        """`slack_s`: what is due within it is due; for clocks whose timers are that coarse. With a `journal` nothing
        is applied, and so neither answered nor told to anyone, before it is on disk."""
        self._slack_s = slack_s
        self._journal = journal
        self.core = core
        self.model = model
        self._clock = clock
        self._replicas = {name: _Replica(core.revision) for name in model.members}
        self._inflight: deque[_Proposal] = deque()  # proposed to the leader, in order of commit
        self._waiting: list[Callable[[], object]] = []  # for a leader, in order of arrival
        self._commit_armed = False
        self._generation = 0  # of leaders: timers of an earlier one do nothing
        self._compact_next = core.revision
        self._compaction: Timer | None = None
        self._compacting: Timer | None = None  # what has been compacted, and not yet freed
        self._expiry: Timer | None = None
        if model.options.compaction_s:
            self._arm_compaction()
        if core.leases:
            self._arm_expiry()

    def close(self) -> None:
        for timer in (self._compaction, self._compacting, self._expiry):
            if timer is not None:
                timer.cancel()

    # ---- requests
    def propose(self, member: str, txn: Txn) -> Promise[TxnResult]:
        """A write by `member`; settles when its replica has applied it."""
        proposal = _Proposal(member, txn)
        if not self.model.alive(member):
            proposal.promise.fail(StoreUnavailable(UNAVAILABLE))
            return proposal.promise
        self._bounded(proposal.promise)
        self._with_leader(partial(self._send, proposal))
        return proposal.promise

    def get(self, member: str, key: str) -> Promise[GetResult]:
        return self._read(member, lambda applied: self.core.get(key, applied))

    def range(
        self, member: str, prefix: str, start_key: str = "", limit: int = 0, revision: int = 0
    ) -> Promise[RangeResult]:
        def read(applied: int) -> RangeResult:
            return self.core.range(prefix, start_key, limit, revision or applied)

        return self._read(member, read)

    def current_revision(self, member: str) -> Promise[int]:
        return self._read(member, lambda applied: applied)

    def history(self, member: str, prefix: str, after: int) -> Promise[HistoryResult]:
        """From the member's own replica as it stands; waits for nobody."""
        promise: Promise[HistoryResult] = Promise()
        applied = self._replicas[member].applied
        try:
            events = [event for event in self.core.events(after, applied) if event.key.startswith(prefix)]
            promise.resolve(HistoryResult(events, applied))
        except StoreError as error:
            promise.fail(error)
        return promise

    def follow(self, member: str, sink: ReplicaSink | None) -> int:
        """Send what the member's replica applies to `sink` from now on (None: to nobody); up to where it has."""
        replica = self._replicas[member]
        replica.sink = sink
        return replica.applied

    # ---- members
    def member_lost(self, member: str) -> None:
        """Its host is gone, and with it what it proposed and nobody else had."""
        if not self.model.alive(member):
            return
        led = self.model.leader == member
        pause_s = self.model.lose(member)
        replica = self._replicas[member]
        replica.queue.clear()
        replica.reads.clear()
        replica.sink = None
        if led or self.model.leader is None:
            self._withdraw(member)
        self._elect_after(pause_s)

    def member_back(self, member: str) -> None:
        """It has caught up with the others."""
        if self.model.alive(member):
            return
        pause_s = self.model.restore(member)
        self._replicas[member].applied = self.core.revision
        self._elect_after(pause_s)

    def _withdraw(self, lost: str) -> None:
        """Without a leader, what is not committed waits for the next; the lost member's own goes with it."""
        self._generation += 1
        self._commit_armed = False
        proposals, self._inflight = self._inflight, deque()
        for proposal in proposals:
            if proposal.member == lost:
                proposal.promise.fail(StoreTimeout(LEADER_LOST))
            else:
                self._bounded(proposal.promise)
        survivors = [proposal for proposal in proposals if proposal.member != lost]
        self._waiting[:0] = [partial(self._send, proposal) for proposal in survivors]

    def _elect_after(self, pause_s: float | None) -> None:
        if pause_s is not None:
            self._clock.call_at(self._clock.now() + pause_s, self._elect)

    def _elect(self) -> None:
        if self.model.leader is None and self.model.elect() is not None:
            waiting, self._waiting = self._waiting, []
            for request in waiting:
                request()

    def _with_leader(self, request: Callable[[], object]) -> None:
        if self.model.leader is None:
            self._waiting.append(request)
        else:
            request()

    # ---- writes
    def _send(self, proposal: _Proposal) -> None:
        if proposal.promise.done:  # timed out while there was no leader
            return
        commit = self.model.write(proposal.member, self._clock.now())
        proposal.at = commit.at
        proposal.visible = commit.visible
        self._inflight.append(proposal)
        if not self._commit_armed:
            self._commit_armed = True
            self._clock.call_at(commit.at, self._commit, self._generation)

    def _commit(self, generation: int) -> None:
        """Write down what is committed by now, and send it to the replicas."""
        if generation != self._generation:
            return
        now = self._clock.now() + self._slack_s
        due: list[_Proposal] = []
        while self._inflight and self._inflight[0].at <= now:
            due.append(self._inflight.popleft())
        self._commit_armed = bool(self._inflight)
        if self._inflight:
            self._clock.call_at(self._inflight[0].at, self._commit, generation)
        if self._journal is None:
            self._execute(due, now)
        elif due:
            self._journal.append([proposal.txn for proposal in due], partial(self._logged, due))

    def _logged(self, proposals: Sequence[_Proposal], error: StoreError | None) -> None:
        if error is None:
            self._execute(proposals, self._clock.now() + self._slack_s)
            return
        for proposal in proposals:
            proposal.promise.fail(error)

    def _execute(self, proposals: Sequence[_Proposal], now: float) -> None:
        for proposal in proposals:
            result, event = self.core.txn(proposal.txn, now)
            for name, replica in self._replicas.items():
                if self.model.alive(name) and (event is not None or name == proposal.member):
                    at = proposal.visible.get(name, now)  # not there: it was away when this was proposed
                    if replica.queue:
                        at = max(at, replica.queue[-1][0])
                    replica.queue.append((at, event, proposal, result))
                    self._arm(name, replica)
        if self._expiry is None and self.core.leases:
            self._arm_expiry()

    def _arm(self, name: str, replica: _Replica) -> None:
        if not replica.armed:
            replica.armed = True
            self._clock.call_at(replica.queue[0][0], self._apply, name)

    def _apply(self, name: str) -> None:
        """A member's replica has heard of what is due."""
        replica = self._replicas[name]
        replica.armed = False
        now = self._clock.now() + self._slack_s
        events: list[StoreEvent] = []
        answers: list[tuple[_Proposal, TxnResult]] = []
        while replica.queue and replica.queue[0][0] <= now:
            _, event, proposal, result = replica.queue.popleft()
            if event is not None and event.revision > replica.applied:
                replica.applied = event.revision
                events.append(event)
            if proposal.member == name:
                answers.append((proposal, result))
        if replica.queue:
            self._arm(name, replica)
        for proposal, result in answers:
            proposal.promise.resolve(result)
        if events and replica.sink is not None:
            replica.sink.on_events(events)
        if replica.reads:
            self._serve(replica)

    # ---- reads
    def _read(self, member: str, read: Callable[[int], T]) -> Promise[T]:
        """Answer from the member's replica once that has everything which was committed when the read began."""
        promise: Promise[T] = Promise()
        if not self.model.alive(member):
            promise.fail(StoreUnavailable(UNAVAILABLE))
            return promise
        self._bounded(promise)
        self._with_leader(partial(self._confirm, member, read, promise))
        return promise

    def _confirm(self, member: str, read: Callable[[int], T], promise: Promise[T]) -> None:
        replica = self._replicas[member]
        needed = self.core.revision

        def answer() -> None:
            try:
                promise.resolve(read(replica.applied))
            except StoreError as error:
                promise.fail(error)

        def confirmed() -> None:
            if replica.applied >= needed:
                answer()
            elif self.model.alive(member):
                replica.reads.append((needed, answer))

        now = self._clock.now()
        at = self.model.read(member, now)
        if at <= now + self._slack_s:
            confirmed()
        else:
            self._clock.call_at(at, confirmed)

    def _serve(self, replica: _Replica) -> None:
        ready = [answer for needed, answer in replica.reads if needed <= replica.applied]
        replica.reads = [read for read in replica.reads if read[0] > replica.applied]
        for answer in ready:
            answer()

    # ---- helpers
    def _bounded(self, promise: Promise[T]) -> None:
        """Fail the promise after etcd's own request timeout if there is no leader now."""
        if self.model.leader is not None:
            return
        until = self._clock.now() + self.model.options.request_timeout_s
        timer = self._clock.call_at(until, promise.fail, StoreTimeout(TIMED_OUT))
        promise.then(lambda _: timer.cancel())

    # ---- expiry
    def _arm_expiry(self) -> None:
        self._expiry = self._clock.call_at(self._clock.now() + EXPIRY_PERIOD_S, self._expire)

    def _expire(self) -> None:
        """The leader deletes what has expired, like any write; without a leader nothing expires."""
        self._expiry = None
        now = self._clock.now()
        if self.model.leader is not None:
            for key, revision in self.core.leases.due(now, EXPIRED_AT_ONCE):
                proposal = _Proposal(self.model.leader, Txn(key, None, revision))
                proposal.promise.then(partial(self._expired, key, revision))
                self._send(proposal)
        if self.core.leases:
            self._arm_expiry()

    def _expired(self, key: str, revision: int, deletion: Promise[TxnResult]) -> None:
        try:
            deletion.result()
        except StoreError:
            self.core.leases.retry(key, revision, self._clock.now() + EXPIRY_PERIOD_S)

    # ---- compaction
    def compact(self, member: str, revision: int) -> Promise[int]:
        """Forget what is needed only to read before `revision` (0: before now), at once; settles with the revision.
        Fails with FutureRevision, or Compacted where that has been done."""
        promise: Promise[int] = Promise()
        at = revision or self.core.revision
        try:
            if revision and revision <= self.core.compacted:
                raise Compacted(revision, self.core.compacted)
            if at > self.core.revision:
                raise FutureRevision(at, self.core.revision)
            self._forget(at, promise)
        except StoreError as error:
            promise.fail(error)
        return promise

    def _forget(self, revision: int, promise: Promise[int]) -> None:
        if self._journal is None:
            self._forgotten(revision, promise, None)
        elif self._journal.snapshotting:
            self._clock.call_at(self._clock.now() + SNAPSHOT_WAIT_S, self._forget, revision, promise)
        else:
            self._journal.append([revision], partial(self._forgotten, revision, promise))

    def _forgotten(self, revision: int, promise: Promise[int], error: StoreError | None) -> None:
        if error is not None:
            promise.fail(error)
            return
        self.core.begin_compaction(revision)
        if self._compacting is None:
            self._go_on_compacting()
        promise.resolve(revision)

    def _go_on_compacting(self) -> None:
        """In small pieces: 300,000 writes at once are half a second in which nobody is answered."""
        self._compacting = None
        if self._journal is not None and self._journal.snapshotting:
            pause_s = SNAPSHOT_WAIT_S
        elif self.core.go_on_compacting(COMPACTED_AT_ONCE):
            pause_s = COMPACTION_PAUSE_S
        else:
            return
        self._compacting = self._clock.call_at(self._clock.now() + pause_s, self._go_on_compacting)

    def _arm_compaction(self) -> None:
        self._compaction = self._clock.call_at(
            self._clock.now() + self.model.options.compaction_s, self._compact
        )

    def _compact(self) -> None:
        """As apiservers do: each time, to where the store was the time before (etcd3/compact.go)."""
        self._forget(self._compact_next, Promise())
        self._compact_next = self.core.revision
        self._arm_compaction()
