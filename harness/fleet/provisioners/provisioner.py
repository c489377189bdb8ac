"""One replica of a provisioner, as a machine.

Theory of operation: informers fill two queues, of claims to provision and of volumes to delete; so many workers each
take keys from them, and a worker is busy until its routine (`work`) has ended. Who may work is the election's matter.
With one Lease the informers run on its holder alone, and losing it ends the process, which comes back as another. With
an election for each claim every replica takes every claim on: a worker watches the claim's fate (`watching`), contends
for the lock on it, and while it holds the lock a routine beside it provisions; it is free when the fate is known.

Keys: (("informer", name), part), ("thread", number), ("stream", number), ("lease", part), (("claim", uid), part),
("main", "record"), ("queue", name), ("resync",), ("restart",).
"""

from __future__ import annotations

from functools import partial
from random import Random

from harness.client.electionlocks import AnnotationLock, LeaseLock
from harness.client.leaderelection import PER_CLAIM, SIDECAR, Elector, Leadership, Turn
from harness.client.leaderelection import Output as ElectorOutput
from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Arm, Disarm, Event
from harness.client.requests import PERSISTENTVOLUMECLAIMS
from harness.client.store import Change
from harness.fleet.claimnotes import waits_for_node
from harness.fleet.context import Out
from harness.fleet.controllers.views import Object, View
from harness.fleet.controllers.workqueue import WorkQueue
from harness.fleet.provisioners.backend import Backend
from harness.fleet.provisioners.caches import CLAIMS, VOLUMES, Caches
from harness.fleet.provisioners.options import ProvisionerOptions
from harness.fleet.provisioners.rules import asks, to_delete
from harness.fleet.provisioners.telling import Teller
from harness.fleet.provisioners.threads import Routine, Signal, Threads
from harness.fleet.provisioners.watching import ClaimWatch
from harness.fleet.provisioners.work import Work
from harness.wire import rfc3339
from harness.wire.errors import SwarmletError

MAIN, LEASE = "main", "lease"


def provisioner_limiters(options: ProvisionerOptions) -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around a `Provisioner`; the Lease's client is one of its own
    (ep/cmd/csi-provisioner/csi-provisioner.go)."""
    return {name: TokenBucket(options.qps, options.burst) for name in (MAIN, LEASE)}


class _Contention:
    """One claim that this replica wants to lead. `error` is what its own provisioning came to."""

    def __init__(self, claim: Object, elector: Elector) -> None:
        self.claim = claim
        self.elector = elector
        self.over = Signal()
        self.error: SwarmletError | None = None


class _Pool:
    """A queue and its workers."""

    def __init__(self, name: str, options: ProvisionerOptions) -> None:
        self.name = name
        self.queue = WorkQueue(options.retry_s, options.retry_cap_s, bucket=options.retry_bucket)
        self.idle = options.workers
        self.armed_at: float | None = None


class Provisioner:
    """A machine. `name` is the replica's; `epoch_s` the wall-clock time of ``now == 0``."""

    def __init__(self, name: str, options: ProvisionerOptions, rng: Random, epoch_s: float) -> None:
        self.name = name
        self.rng = rng
        self.epoch_s = epoch_s
        self.now = 0.0
        self.out: Out = []
        self._options = options
        self._started = 0
        self._begin_process()

    def __repr__(self) -> str:
        return f"Provisioner({self.name!r}, claims={len(self._claims.queue)}, contending={len(self._contentions)})"

    @property
    def leading(self) -> bool:
        """Whether it holds the Lease."""
        return self._lease is not None and self._lease.leading

    def stamp(self) -> str:
        """metav1.Time of now."""
        return rfc3339.seconds(self.epoch_s + self.now)

    def wall_s(self) -> float:
        return self.epoch_s + self.now

    # ---- the process -------------------------------------------------------------------------------------------------
    def _begin_process(self) -> None:
        """Everything that a container has from its start."""
        options = self._options
        self._started += 1
        self.identity = f"{self.name}-{self.rng.getrandbits(64):016x}"
        self._threads = Threads()
        listeners = {CLAIMS: self._claim_changed, VOLUMES: self._volume_changed}
        self._caches = Caches(options, self.rng, listeners)
        self._teller = Teller(options.events, f"{options.driver}_{self.identity}", self)
        backend = Backend(options, self.rng)
        self._work = Work(options, self, self._caches, backend, self._teller, self._beside)
        self._claims, self._volumes = _Pool("claims", options), _Pool("volumes", options)
        self._contentions: dict[str, _Contention] = {}
        self._running = False
        self._lease: Elector | None = None
        if options.election == "per-provisioner":
            name = options.driver.replace("/", "-")
            lock = LeaseLock(options.namespace, name, LEASE, dict(options.labels))
            self._lease = Elector("lease", lock, self.identity, SIDECAR, self.rng, self.epoch_s)

    def start(self, now: float) -> list[Action]:
        self._enter(now)
        if self._lease is not None:
            self._elected(self._lease.start(now))
        else:
            self._run()
        return self._left()

    def stop(self, now: float) -> list[Action]:
        self._enter(now)
        self._halt()
        self.out.append(Disarm(("restart",)))
        return self._left()

    def handle(self, event: Event, now: float) -> list[Action]:
        self._enter(now)
        part = event.key[0]
        if part in ("thread", "stream"):
            self._threads.handle(event)
        elif part == "lease" and self._lease is not None:
            self._elected(self._lease.handle(event, now))
        elif part == MAIN:
            self._teller.handle(event)
        elif part == "queue":
            self._queue_due(str(event.key[1]))
        elif part == "resync":
            self._caches.resync()
            self.out.append(Arm(("resync",), now + self._options.resync_s))
        elif part == "restart":
            self._begin_process()
            return self.start(now)
        elif isinstance(part, tuple) and part[0] == "claim":
            self._contended(str(part[1]), event)
        elif isinstance(part, tuple):
            self._caches.handle(event, now, self.out)
        self._pump()
        return self._left()

    def _enter(self, now: float) -> None:
        self.now = now
        self._threads.now, self._threads.out = now, self.out

    def _left(self) -> list[Action]:
        out, self.out = self.out, []
        self._threads.out = self.out
        return out

    def _run(self) -> None:
        """The informers, and with them all work."""
        self._running = True
        self._caches.start(self.now, self.out)
        self.out.append(Arm(("resync",), self.now + self._options.resync_s))

    def _halt(self) -> None:
        """The process ends."""
        if self._lease is not None:
            self._actions(self._lease.stop(self.now))
        for contention in self._contentions.values():
            self._actions(contention.elector.stop(self.now))
        self._contentions.clear()
        self._threads.stop()
        if self._running:
            self._caches.stop(self.now, self.out)
        self.out += [Disarm(("queue", pool.name)) for pool in (self._claims, self._volumes)]
        self.out.append(Disarm(("resync",)))
        self._running = False

    # ---- one Lease ---------------------------------------------------------------------------------------------------
    def _elected(self, outputs: list[ElectorOutput]) -> None:
        for turn in self._actions(outputs):
            if turn is Turn.BEGAN:
                self._run()
            else:
                self._halt()
                self.out.append(Arm(("restart",), self.now + self._options.restart_s))

    def _actions(self, outputs: list[ElectorOutput]) -> list[Turn]:
        """Carry an elector's actions out; what it says beside them."""
        self.out += [output for output in outputs if not isinstance(output, Leadership)]
        return [output.turn for output in outputs if isinstance(output, Leadership)]

    # ---- what informers say ------------------------------------------------------------------------------------------
    def _claim_changed(self, change: Change, view: View) -> None:
        queue = self._claims.queue
        if change is Change.DELETED:
            queue.forget(view.key)
        elif queue.requeues(view.key) == 0:  # one that is being retried is in the queue, or comes back to it
            queue.add(view.key)
        contention = self._contentions.get(view.uid)
        if contention is not None and self._options.watching == "informers":
            claim = None if change is Change.DELETED else self._caches.claim(view.key)
            if claim is None or not asks(claim, self._options.driver):
                contention.elector.report(True)

    def _volume_changed(self, change: Change, view: View) -> None:
        queue = self._volumes.queue
        if change is Change.DELETED:
            queue.forget(view.key)
        elif queue.requeues(view.key) == 0:
            queue.add(view.key)

    # ---- workers -----------------------------------------------------------------------------------------------------
    def _pump(self) -> None:
        if not self._running or not self._caches.synced:
            return
        for pool in (self._claims, self._volumes):
            sync = self._sync_claim if pool is self._claims else self._sync_volume
            while self._running and pool.idle and len(pool.queue):
                key = pool.queue.get()
                pool.idle -= 1
                self._threads.spawn(sync(key), partial(self._synced, pool, key))
            if self._running and len(pool.queue):
                self.out.append(pool.queue.depth(pool.name))
            due = pool.queue.next_at
            if due is not None and (pool.armed_at is None or due < pool.armed_at):
                pool.armed_at = due
                self.out.append(Arm(("queue", pool.name), due))

    def _synced(self, pool: _Pool, key: str, error: SwarmletError | None) -> None:
        most = self._options.most_failures
        pool.idle += 1
        if error is None:
            pool.queue.forget(key)
        elif not most or pool.queue.requeues(key) < most:
            pool.queue.add_rate_limited(key, self.now)
        pool.queue.done(key)

    def _queue_due(self, name: str) -> None:
        pool = self._claims if name == self._claims.name else self._volumes
        pool.armed_at = None
        pool.queue.wake(self.now)

    def _beside(self, routine: Routine[None]) -> None:
        self._threads.spawn(routine, lambda error: None)

    # ---- syncs -------------------------------------------------------------------------------------------------------
    def _sync_claim(self, key: str) -> Routine[None]:
        claim = self._caches.claim(key)
        if claim is None or not self._should_provision(claim):
            return
        if self._options.election == "per-claim":
            yield from self._contend(claim)
        elif self._options.watching == "direct":
            yield from self._provision_watching(claim)
        else:
            yield from self._work.provision(claim)

    def _should_provision(self, claim: Object) -> bool:
        if not asks(claim, self._options.driver):
            return False
        found = self._caches.storage_class(claim["spec"].get("storageClassName") or "")
        return found is None or not waits_for_node(claim, found)

    def _sync_volume(self, name: str) -> Routine[None]:
        volume = self._caches.volume(name)
        if volume is not None and to_delete(volume, self._options.driver):
            yield from self._work.delete(volume)

    def _provision_watching(self, claim: Object) -> Routine[None]:
        """The claim's fate is watched, although nobody else provisions; the worker waits until it is known."""
        fate = Signal()
        watch = ClaimWatch(self._threads, claim, self._options.driver, fate.give)
        yield from watch.open()
        try:
            yield from self._work.provision(claim)
            yield fate
        finally:
            watch.close()

    # ---- an election for each claim ----------------------------------------------------------------------------------
    def _contend(self, claim: Object) -> Routine[None]:
        """lockProvisionClaimOperation. Raises what our own provisioning came to by the time that it is over."""
        metadata, options = claim["metadata"], self._options
        uid = metadata["uid"]
        lock = AnnotationLock(PERSISTENTVOLUMECLAIMS, metadata["namespace"], metadata["name"], MAIN)
        elector = Elector(("claim", uid), lock, self.identity, PER_CLAIM, self.rng, self.epoch_s)
        contention = self._contentions[uid] = _Contention(claim, elector)
        watch = ClaimWatch(self._threads, claim, options.driver, elector.report)
        try:
            if options.watching == "direct":
                yield from watch.open()
            self._contest(contention, elector.start(self.now))
            yield contention.over
        finally:
            watch.close()
            if self._contentions.get(uid) is contention:
                del self._contentions[uid]
        if contention.error is not None:
            raise contention.error

    def _contended(self, uid: str, event: Event) -> None:
        contention = self._contentions.get(uid)
        if contention is not None:
            self._contest(contention, contention.elector.handle(event, self.now))

    def _contest(self, contention: _Contention, outputs: list[ElectorOutput]) -> None:
        for turn in self._actions(outputs):
            if turn is Turn.BEGAN:
                routine = self._work.provision(contention.claim)
                self._threads.spawn(routine, partial(self._provisioned, contention))
            else:
                contention.over.give(turn)

    def _provisioned(self, contention: _Contention, error: SwarmletError | None) -> None:
        """Our own provisioning has ended; without events nobody else tells us that it failed."""
        contention.error = error
        if error is not None and self._options.watching == "informers":
            contention.elector.report(False)
