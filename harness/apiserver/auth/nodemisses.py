"""What a member does where its graph does not know a node to be concerned with what it asks for.

Kubernetes refuses, and the kubelet tries again later. Two mitigations have been discussed among its maintainers, for
both of which the member reads the store's revision: to wait until the graph has reached it and decide again, or to tell
the client to try again when the graph has not. They are here so that their worth and their price can be measured.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from harness.apiserver.auth.nodeinformer import Behind, GraphInformer
from harness.apiserver.clock import Clock, Promise, timeout
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.resources import Resource
from harness.apiserver.store.core import StoreError
from harness.wire.status import Details, Status, StatusError

if TYPE_CHECKING:
    from harness.apiserver.auth.nodeauthorizer import Denial

RETRY_AFTER_S = 1
_BEHIND = Status(
    429,
    "TooManyRequests",
    "the node authorizer has not heard of the newest changes yet, please try again later",
    Details(retry_after_s=RETRY_AFTER_S),
)


class OnMiss(Enum):
    """`DENY` as Kubernetes does. `WAIT`: read the store's revision, wait for the graph to reach it, decide again.
    `RETRY`: read it, decide again, and where the graph is behind it answer 429 with Retry-After."""

    DENY = "deny"
    WAIT = "wait"
    RETRY = "retry"


class Outcome(Enum):
    """What became of a miss."""

    DENIED = "denied"
    DENIED_BEHIND = "denied-behind"  # the graph did not reach the revision in time
    DENIED_BLIND = "denied-blind"  # the store did not tell its revision
    ALLOWED = "allowed"
    RETRY = "retry"


class RevisionSource(Protocol):
    """What is asked of the store; `Storage` is one. `revision` is what the member's own replica has applied."""

    revision: int

    def current_revision(self, resource: Resource, cost_us: float | None = None) -> Promise[int]: ...
    def until_delivered(self, revision: int) -> Promise[None]: ...


class Misses:
    """Settles misses by `mode`, and counts them."""

    def __init__(
        self,
        clock: Clock,
        host: Host,
        metrics: Metrics,
        informer: GraphInformer,
        store: RevisionSource | None,
        mode: OnMiss,
        wait_s: float,
    ) -> None:
        self.mode = mode
        self.resource: Resource | None = None  # that the reads of the store are for, in its metrics
        self._wait_s = wait_s
        self._clock = clock
        self._host = host
        self._informer = informer
        self._store = store
        counter = metrics.swarmlet_node_authorizer_misses_total
        self._counts = {outcome: counter.labels(mode.value, outcome.value) for outcome in _POSSIBLE[mode]}
        self._revisions = metrics.swarmlet_node_authorizer_miss_staleness_revisions.labels()
        self._seconds = metrics.swarmlet_node_authorizer_miss_staleness_seconds.labels()
        self._waits = metrics.swarmlet_node_authorizer_miss_wait_seconds.labels()
        revisions = metrics.swarmlet_node_authorizer_staleness_revisions.labels()
        seconds = metrics.swarmlet_node_authorizer_staleness_seconds.labels()

        def fill() -> None:
            behind = self.behind()
            revisions.set(behind.revisions)
            seconds.set(behind.seconds)

        metrics.on_render(fill)

    @property
    def asks_again(self) -> bool:
        """Whether a miss is not refused at once."""
        return self.mode is not OnMiss.DENY and self._store is not None and self.resource is not None

    def behind(self) -> Behind:
        """How far the graph is behind the member's own replica of the store."""
        return self._informer.behind(0 if self._store is None else self._store.revision)

    def note(self) -> None:
        """A miss: how far behind it found the graph."""
        behind = self.behind()
        self._revisions.observe(behind.revisions)
        self._seconds.observe(behind.seconds)
        if self.mode is OnMiss.DENY:
            self._counts[Outcome.DENIED].inc()

    async def decide_again(self, decide: Callable[[], Denial | None]) -> Denial | None:
        """None for allowed after all. Raises StatusError 429 where the client is to try again."""
        began = self._clock.now()
        assert self._store is not None and self.resource is not None, "nobody to ask"  # noqa: PT018
        try:
            await self._host.work(self._host.costs.list_consistent_extra_us)
            revision = await self._store.current_revision(self.resource)
        except StoreError:
            return self._settled(decide(), Outcome.DENIED_BLIND)
        if self.mode is OnMiss.RETRY:
            denial = self._settled(decide(), self._refused(revision, Outcome.RETRY))
            if denial is not None and self._informer.position < revision:
                raise StatusError(_BEHIND)
            return denial
        await timeout(self._clock, self._until(revision), began + self._wait_s - self._clock.now(), None)
        self._waits.observe(self._clock.now() - began)
        return self._settled(decide(), self._refused(revision, Outcome.DENIED_BEHIND))

    def _until(self, revision: int) -> Promise[None]:
        """Settles once the graph has reached a revision: when it has been handed to the member's watches, then to the
        graph."""
        reached: Promise[None] = Promise()

        def delivered(_: Promise[None]) -> None:
            self._informer.reached(revision).then(lambda _: reached.resolve(None))

        assert self._store is not None
        self._store.until_delivered(revision).then(delivered)
        return reached

    def _refused(self, revision: int, when_behind: Outcome) -> Outcome:
        return when_behind if self._informer.position < revision else Outcome.DENIED

    def _settled(self, denial: Denial | None, refused: Outcome) -> Denial | None:
        self._counts[Outcome.ALLOWED if denial is None else refused].inc()
        return denial


_POSSIBLE = {
    OnMiss.DENY: (Outcome.DENIED,),
    OnMiss.WAIT: (Outcome.ALLOWED, Outcome.DENIED, Outcome.DENIED_BEHIND, Outcome.DENIED_BLIND),
    OnMiss.RETRY: (Outcome.ALLOWED, Outcome.DENIED, Outcome.RETRY, Outcome.DENIED_BLIND),
}
