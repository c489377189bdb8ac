"""Every kind of fault as a value; a kind's name is its tag, a field's name its option.

Fields that end in ``_s`` are seconds; on a command line they are durations (``50ms``). `chance` is drawn for each
request, `share` once for each connection or watch. The kinds here are done by a member itself; `poolkinds` has those
that are done to it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from harness.apiserver.auth.nodelag import FORMS, Lag
from harness.apiserver.faults.base import MAX_DELAY_S, FaultBase, within
from harness.apiserver.faults.poolkinds import POOL_KINDS, PoolFault
from harness.wire.errors import ConfigError

MAX_SKEW_S = 10 * 365 * 86400.0
STATUSES = (429, 500, 502, 503, 504)


class _RequestFault(FaultBase, frozen=True):
    """For requests of resources alone; empty `verbs` and `resources` are all. A resource is written ``pods``,
    ``deployments.apps`` or ``pods/status``."""

    chance: float = 1.0
    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        within("chance", self.chance, 0.0, 1.0)


class GoAway(_RequestFault, frozen=True, tag="goaway"):
    """HTTP/2 only. Health checks and other paths count too, as upstream."""

    summary: ClassVar[str] = "GOAWAY with the answer: the client has to make a new connection"
    chance: float = 0.01


class ResetStream(_RequestFault, frozen=True, tag="rst-stream"):
    """Over HTTP/1.1 the connection is closed."""

    summary: ClassVar[str] = "RST_STREAM instead of an answer"
    chance: float = 0.01
    code: Literal["internal-error", "refused-stream", "cancel", "enhance-your-calm"] = "internal-error"


class ErrorAnswer(_RequestFault, frozen=True, tag="error"):
    """`retry_after_s` None: 1 for 429 and 503, none for the others."""

    summary: ClassVar[str] = "an error in front of the member: 429, 500, 502, 503 or 504"
    chance: float = 0.01
    status: int = 500
    retry_after_s: int | None = msgspec.field(default=None, name="retry-after")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.status not in STATUSES:
            raise ValueError(f"status is {self.status}; allowed are {', '.join(map(str, STATUSES))}")
        if self.retry_after_s is not None:
            within("retry-after", self.retry_after_s, 0, MAX_DELAY_S)


class SlowAnswer(_RequestFault, frozen=True, tag="slow"):
    """A request waits for a time drawn from a lognormal distribution before the member sees it."""

    summary: ClassVar[str] = "requests wait before they are served"
    median_s: float = msgspec.field(default=0.1, name="median")
    sigma: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        within("median", self.median_s, 1e-6, MAX_DELAY_S)
        within("sigma", self.sigma, 0.0, 5.0)


class CutWatch(_RequestFault, frozen=True, tag="cut-watch"):
    """Each second `chance` is drawn for each open watch. It gets the first half of its next event; then the stream
    ends (`how`)."""

    summary: ClassVar[str] = "watches end in the middle of an event"
    chance: float = 0.1
    how: Literal["end", "reset"] = "end"


class StallConnections(FaultBase, frozen=True, tag="stall"):
    """`what`: ``data`` holds DATA back as if the windows were closed (headers, PING answers and WINDOW_UPDATEs go
    out); ``all`` sends nothing at all. New connections are free of it."""

    summary: ClassVar[str] = "a share of the open connections gets nothing more"
    share: float = 1.0
    what: Literal["data", "all"] = "data"

    def __post_init__(self) -> None:
        within("share", self.share, 0.0, 1.0)


class DropConnections(FaultBase, frozen=True, tag="drop-connections"):
    instant: ClassVar[bool] = True
    summary: ClassVar[str] = "a share of the open connections is reset (TCP RST)"
    share: float = 1.0

    def __post_init__(self) -> None:
        within("share", self.share, 0.0, 1.0)


class RefuseConnections(FaultBase, frozen=True, tag="refuse-connections"):
    summary: ClassVar[str] = "new connections are refused"


class SlowStore(FaultBase, frozen=True, tag="slow-store"):
    summary: ClassVar[str] = "each commit and each linearizable read of etcd takes so much longer"
    of_store: ClassVar[bool] = True
    write_s: float = msgspec.field(default=0.05, name="write")
    read_s: float = msgspec.field(default=0.0, name="read")

    def __post_init__(self) -> None:
        within("write", self.write_s, 0.0, 60.0)
        within("read", self.read_s, 0.0, 60.0)


class Compact(FaultBase, frozen=True, tag="compact"):
    instant: ClassVar[bool] = True
    of_store: ClassVar[bool] = True
    summary: ClassVar[str] = "etcd is compacted to its newest revision"


class ClockSkew(FaultBase, frozen=True, tag="clock-skew"):
    """What the member writes or compares as a time of day: timestamps, tokens' ends, the Date header. Its timers run
    on."""

    summary: ClassVar[str] = "the member's wall clock is ahead, or behind with a minus"
    by_s: float = msgspec.field(default=60.0, name="by")

    def __post_init__(self) -> None:
        within("by", self.by_s, -MAX_SKEW_S, MAX_SKEW_S)


class StallInformer(FaultBase, frozen=True, tag="stall-informer"):
    """With `relist` its watches break, and each begins anew with a list."""

    summary: ClassVar[str] = "the node authorizer's informer delivers nothing, then everything"
    relist: bool = False


_LAG_MEDIAN_S, _LAG_SIGMA = 0.1, 0.5  # of the lognormal lag, which lag= replaces


class LagInformer(FaultBase, frozen=True, tag="lag-informer"):
    """A lag for each event: `lag` as --node-authorizer takes it, or, where that is empty, a lognormal one."""

    summary: ClassVar[str] = f"the node authorizer's informer is late; lag is {FORMS}"
    median_s: float = msgspec.field(default=_LAG_MEDIAN_S, name="median")
    sigma: float = _LAG_SIGMA
    lag: str = ""

    def __post_init__(self) -> None:
        within("median", self.median_s, 0.0, MAX_DELAY_S)
        within("sigma", self.sigma, 0.0, 5.0)
        if self.lag and (self.median_s, self.sigma) != (_LAG_MEDIAN_S, _LAG_SIGMA):
            raise ValueError("lag is the whole distribution, and takes no median or sigma beside it")
        try:
            Lag.parse(self.lag or "none")
        except ConfigError as error:
            raise ValueError(str(error)) from None

    @property
    def drawn(self) -> Lag:
        """What is drawn from."""
        return Lag.parse(self.lag) if self.lag else Lag("lognormal", self.median_s, self.sigma)


class CorruptCache(FaultBase, frozen=True, tag="corrupt-cache"):
    """`how`: an object is missing, has other bytes, or an older resourceVersion. It stays until the cache is filled
    anew or the object changes."""

    instant: ClassVar[bool] = True
    summary: ClassVar[str] = "one object of a watch cache is no longer what the store has"
    resource: str = "pods"
    how: Literal["drop", "alter", "stale"] = "drop"


Fault: TypeAlias = (
    GoAway
    | ResetStream
    | ErrorAnswer
    | SlowAnswer
    | CutWatch
    | StallConnections
    | DropConnections
    | RefuseConnections
    | SlowStore
    | Compact
    | ClockSkew
    | StallInformer
    | LagInformer
    | CorruptCache
)
RequestFault: TypeAlias = GoAway | ResetStream | ErrorAnswer | SlowAnswer | CutWatch

MEMBER_KINDS: dict[str, Any] = {
    str(type_.__struct_config__.tag): type_
    for type_ in (
        GoAway,
        ResetStream,
        ErrorAnswer,
        SlowAnswer,
        CutWatch,
        StallConnections,
        DropConnections,
        RefuseConnections,
        SlowStore,
        Compact,
        ClockSkew,
        StallInformer,
        LagInformer,
        CorruptCache,
    )
}

KINDS: dict[str, Any] = {**MEMBER_KINDS, **POOL_KINDS}
AnyFault: TypeAlias = Fault | PoolFault
