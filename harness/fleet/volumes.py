"""Mounting a pod's volumes: when it starts, what it waits for, how it is tried again. kk/pkg/kubelet/volumemanager.

The populator and the reconciler each run every 100 ms, so a mount begins two to three ticks after the pod is known. A
volume's sources are read in order: a secret or configmap from the object cache, which waits up to 1 s for the first
sync, a token by a request. What fails is tried again at the first reconciler tick after 500 ms, then twice as long, up
to 2 min 2 s; each failure is an event, the only one about it. The pod worker learns that all is
mounted at its next poll of 300 ms.
"""

from __future__ import annotations

from enum import Enum
from math import ceil
from typing import cast

from harness.client.machine import Answered, Arm, Disarm, Event, Failed, Fired, Key
from harness.fleet.claims import ClaimManager
from harness.fleet.context import Context, Out, describe
from harness.fleet.events import EventRecorder
from harness.fleet.firstreads import TOKENS, FirstReads
from harness.fleet.objectcache import ObjectCache, Read, not_found, sync_timeout
from harness.fleet.pods import Pod, Source
from harness.fleet.tokens import Token, TokenManager
from harness.wire.request import Response

PART = "volumes"
_WORKER_WAIT_S = 123.0  # podAttachAndMountTimeout (volume_manager.go)


class MountState(Enum):
    """What one volume waits for."""

    QUEUED = "its time"
    OBJECT = "the first sync of a secret or configmap"
    GRANT = "the answer to a token request"


class _Mount:
    """One volume on its way."""

    __slots__ = ("due", "errors", "index", "state", "step", "wait_s")

    def __init__(self, index: int, due: float) -> None:
        self.index = index
        self.state = MountState.QUEUED
        self.step = 0  # the source that is next
        self.due = due
        self.wait_s = 0.0  # the last backoff
        self.errors: tuple[str, ...] = ()


class _Mounting:
    """One pod on its way."""

    __slots__ = ("armed", "began", "failures", "mounts", "pod")

    def __init__(self, pod: Pod, now: float, due: float) -> None:
        self.pod = pod
        self.began = now
        self.failures = 0
        self.mounts = [_Mount(index, due) for index in range(len(pod.plan.volumes))]
        self.armed = 0.0


class VolumeManager:
    """Timers are ("volumes", uid), token requests ("volumes", uid, volume, source)."""

    __slots__ = (
        "_cache", "_claims", "_context", "_events", "_first_reads", "_mounting", "_phases", "_refreshing", "_tokens",
    )  # fmt: skip

    def __init__(
        self,
        context: Context,
        cache: ObjectCache,
        tokens: TokenManager,
        events: EventRecorder,
        first_reads: FirstReads,
        claims: ClaimManager,
    ) -> None:
        self._context = context
        self._claims = claims
        self._cache = cache
        self._tokens = tokens
        self._events = events
        self._first_reads = first_reads
        self._mounting: dict[str, _Mounting] = {}
        self._refreshing: set[Key] = set()  # token requests for volumes that are mounted
        loop_s = context.options.volume_loop_s
        self._phases = (loop_s * context.rng.random(), loop_s * context.rng.random())

    @property
    def mounting(self) -> set[str]:
        """Uids of the pods that are not mounted yet."""
        return set(self._mounting)

    def begin(self, pod: Pod, now: float, out: Out) -> bool:
        """Start mounting; True where there is nothing to mount. Its objects are already referenced."""
        if not pod.plan.volumes and not pod.claims:
            return True
        self._claims.begin(pod, now, out)
        loop_s = self._context.options.volume_loop_s
        populated = self._context.next_tick(loop_s, now, self._phases[0])
        attached = self._context.next_tick(loop_s, populated, self._phases[1])
        mounting = self._mounting[pod.uid] = _Mounting(pod, now, attached + loop_s)
        self._schedule(mounting, now, out)
        return False

    def drop(self, pod: Pod, out: Out) -> None:
        """The pod will not run any more."""
        self._tokens.forget(pod)
        if self._mounting.pop(pod.uid, None) is not None:
            out.append(Disarm((PART, pod.uid)))
            self.unmounted(pod, out)

    def unmounted(self, pod: Pod, out: Out) -> None:
        """Nothing of the pod's volumes is in use any more."""
        if pod.claims:
            self._claims.drop(pod.uid, out)

    def resume(self, uid: str, now: float, out: Out) -> None:
        """An object that the pod waits for has synced."""
        mounting = self._mounting.get(uid)
        if mounting is not None:
            for mount in list(mounting.mounts):
                if mount.state is MountState.OBJECT and self._synced(mounting.pod, mount):
                    self._run(mounting, mount, now, out)
            self._schedule(mounting, now, out)

    def claims_ready(self, uid: str, now: float, out: Out) -> None:
        """The pod's persistent volumes can be mounted."""
        mounting = self._mounting.get(uid)
        if mounting is not None:
            self._schedule(mounting, now, out)

    def handle(self, event: Event, pod: Pod | None, now: float, out: Out) -> int | None:
        """`pod` is that of the key's uid, None if it is gone. Returns the number of failed mounts once all is
        mounted, else None."""
        uid = str(event.key[1])
        self._refreshing.discard(event.key)
        if pod is None:
            return None
        if isinstance(event, Fired):
            return self._fired(uid, now, out)
        if isinstance(event, Answered | Failed):
            self._token(event, pod, now, out)
        return None

    def touch(self, pod: Pod, now: float, out: Out) -> None:
        """The periodic remount of a running pod: reads its claims and objects, refreshes its tokens."""
        if pod.claims:
            self._claims.touch(pod.uid, now, out)
        for volume, sources in enumerate(pod.plan.volumes):
            for step, source in enumerate(sources):
                if source.ref is not None:
                    self._cache.read(source.ref, now, out)
                elif self._tokens.look_up(pod.uid, source, now) is not Token.FRESH:
                    key = (PART, pod.uid, volume, step)
                    if (
                        key not in self._refreshing
                    ):  # one operation for each volume, however long it is retried
                        self._refreshing.add(key)
                        out.append(self._tokens.request(pod, source, key))

    # ---- inner -------------------------------------------------------------------------------------------------------
    def _fired(self, uid: str, now: float, out: Out) -> int | None:
        mounting = self._mounting.get(uid)
        if mounting is None:
            return None
        mounting.armed = 0.0
        if not mounting.mounts:
            del self._mounting[uid]
            return mounting.failures + self._claims.failures(uid)
        for mount in list(mounting.mounts):
            if mount.state is MountState.GRANT or mount.due > now:
                continue
            if mount.state is MountState.OBJECT:
                ref = mounting.pod.plan.volumes[mount.index][mount.step].ref
                assert ref is not None
                self._miss(mount, sync_timeout(ref))
            self._run(mounting, mount, now, out)
        self._schedule(mounting, now, out)
        return None

    def _synced(self, pod: Pod, mount: _Mount) -> bool:
        """Whether what the mount waits for is there to be read; where it is not, its wait goes on as it began."""
        ref = pod.plan.volumes[mount.index][mount.step].ref
        assert ref is not None
        return self._cache.synced(ref)

    def _run(self, mounting: _Mounting, mount: _Mount, now: float, out: Out) -> None:
        """Go through the sources that are left, until one has to be waited for."""
        sources = mounting.pod.plan.volumes[mount.index]
        while mount.step < len(sources):
            if not self._take(mounting.pod, mount, sources[mount.step], now, out):
                return
        if mount.errors:
            self._fail(mounting, mount, now, out)
        else:
            mounting.mounts.remove(mount)

    def _take(self, pod: Pod, mount: _Mount, source: Source, now: float, out: Out) -> bool:
        """Read one source; False where it has to be waited for."""
        if source.ref is None:
            if self._tokens.look_up(pod.uid, source, now) is not Token.FRESH:
                mount.state = MountState.GRANT
                out.append(self._tokens.request(pod, source, (PART, pod.uid, mount.index, mount.step)))
                return False
        else:
            read = self._cache.read(source.ref, now, out)
            if read is Read.UNSYNCED:
                mount.state = MountState.OBJECT
                mount.due = now + self._context.options.object_wait_s
                self._cache.wait(source.ref, pod.uid)
                return False
            if read is Read.MISSING and not source.optional:
                self._miss(mount, not_found(source.ref))
                return True
            if read is Read.FOUND:
                member, refused_at = self._cache.source_of(source.ref)
                kind = source.ref[0]
                self._first_reads.read(pod.uid, source.ref, kind, member, refused_at, now, out)
        mount.step += 1
        return True

    def _token(self, event: Answered | Failed, pod: Pod, now: float, out: Out) -> None:
        """A token for a mount, or for the refresh of a mounted one, whose failure leaves the old token in use."""
        volume, step = cast("tuple[int, int]", event.key[2:])
        source = pod.plan.volumes[volume][step]
        stored = isinstance(event, Answered) and self._tokens.store(pod.uid, source, event.response, now)
        mounting = self._mounting.get(pod.uid)
        if mounting is None:
            return
        if isinstance(event, Answered):
            self._token_answered(event.response, stored, pod, source, now, out)
        mount = next((each for each in mounting.mounts if each.index == volume), None)
        if mount is None or mount.state is not MountState.GRANT:
            return
        if stored:
            mount.step += 1
        else:
            asked = f"post serviceaccounts {pod.plan.service_account or 'default'}"
            reason = describe(event.response, asked) if isinstance(event, Answered) else str(event.error)
            self._miss(mount, f"failed to fetch token: {reason}")
        self._run(mounting, mount, now, out)
        self._schedule(mounting, now, out)

    def _token_answered(
        self, response: Response, stored: bool, pod: Pod, source: Source, now: float, out: Out
    ) -> None:
        if stored:
            what = (TOKENS, source.audience, source.expiration_s)
            self._first_reads.read(pod.uid, what, TOKENS, response.member, -1.0, now, out)
        elif response.status == 403:
            self._first_reads.token_refused(pod.uid, response.member, now, out)

    @staticmethod
    def _miss(mount: _Mount, error: str) -> None:
        """One source failed; the others are still tried, as for a projected volume."""
        mount.errors = (*mount.errors, error)
        mount.step += 1

    def _fail(self, mounting: _Mounting, mount: _Mount, now: float, out: Out) -> None:
        options = self._context.options
        doubled_s = min(2 * mount.wait_s, options.mount_backoff_cap_s)
        mount.wait_s = doubled_s or options.mount_backoff_s
        mount.due = self._context.next_tick(options.volume_loop_s, now + mount.wait_s, self._phases[1])
        error = mount.errors[0] if len(mount.errors) == 1 else f"[{', '.join(mount.errors)}]"
        mount.state, mount.step, mount.errors = MountState.QUEUED, 0, ()
        mounting.failures += 1
        name = mounting.pod.volume_names[mount.index]
        text = f'MountVolume.SetUp failed for volume "{name}" : {error}'
        self._events.warning(mounting.pod, "FailedMount", text, now, out)

    def _schedule(self, mounting: _Mounting, now: float, out: Out) -> None:
        """Arm the pod's one timer: the earliest that a volume waits for, or the worker's poll that finds all done."""
        if mounting.mounts:
            times = [each.due for each in mounting.mounts if each.state is not MountState.GRANT]
            due = min(times, default=0.0)
        elif self._claims.ready(mounting.pod.uid):
            due = self._noticed(mounting, now)
        else:
            due = 0.0  # `claims_ready` will say
        if due and due != mounting.armed:
            mounting.armed = due
            out.append(Arm((PART, mounting.pod.uid), due))

    def _noticed(self, mounting: _Mounting, now: float) -> float:
        """When the pod's worker sees that all is mounted. It looks each 300 ms for 2 min 3 s; then its sync has failed,
        without an event (kubelet.go, SyncPod: wait.Interrupted), and it looks again after its backoff."""
        options = self._context.options
        while now > mounting.began + _WORKER_WAIT_S:
            mounting.began += _WORKER_WAIT_S + self._context.draw(options.worker_retry_s)
        polls = max(0, ceil((now - mounting.began) / options.mount_poll_s))
        return mounting.began + polls * options.mount_poll_s
