"""Every kind of fault that is done to a pool from outside its members: to processes, and to the network between them.

The pool's supervisor does these (`harness.pool.disturbances`): a member that is killed could not, nor could one that is
no emulated one. Parts have names: ``member-0``, ``etcd-0`` of an etcd that the pool has started, ``store`` where it has
none, ``balancer``, and ``clients`` for all who come from outside.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from harness.apiserver.faults.base import MAX_DELAY_S, FaultBase, within

MAX_RATE_BIT_S = 1e12


class StopPart(FaultBase, frozen=True, tag="stop"):
    """As a kubelet ends a static pod: SIGTERM, and SIGKILL 30 s later. It is started again at its address `for` after
    SIGTERM, or when it has ended; without `for` not at all."""

    summary: ClassVar[str] = "SIGTERM; the process is started again after for="


class KillPart(FaultBase, frozen=True, tag="kill"):
    """`for` is how long there is no such process; without it there never will be again."""

    summary: ClassVar[str] = "SIGKILL; the process is started again after for="


class PausePart(FaultBase, frozen=True, tag="pause"):
    """Its sockets stay open, and the kernel takes what comes."""

    summary: ClassVar[str] = "SIGSTOP, and SIGCONT after for="


class RestartParts(FaultBase, frozen=True, tag="restart"):
    """As an upgrade does it. Each gets SIGTERM, is away for `down` or as long as it takes to end, and is started again
    at its address; it is the next one's turn `settle` after it was ready. A member that does not get ready within
    `ready_within` ends the fault: an upgrade would stop there."""

    instant: ClassVar[bool] = True
    summary: ClassVar[str] = "processes end and are started again, one after another"
    down_s: float = msgspec.field(default=0.0, name="down")
    settle_s: float = msgspec.field(default=5.0, name="settle")
    ready_within_s: float = msgspec.field(default=60.0, name="ready-within")

    def __post_init__(self) -> None:
        within("down", self.down_s, 0.0, MAX_DELAY_S)
        within("settle", self.settle_s, 0.0, MAX_DELAY_S)
        within("ready-within", self.ready_within_s, 0.1, MAX_DELAY_S)


class _NetworkFault(FaultBase, frozen=True):
    """Between two parts, both ways. ``members`` and ``etcd`` stand for all of these."""

    between: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.between) != 2:
            raise ValueError(
                f"between is {','.join(self.between)!r}; expected are two parts, as clients,member-0 or member-0,etcd-1"
            )


class SlowLink(_NetworkFault, frozen=True, tag="link"):
    """Each way bytes are late by `latency` and up to `jitter` more, and all connections of a link share `rate`. `drop`
    is the share of segments that get lost: TCP sends them again after a time-out, and what is behind them waits."""

    summary: ClassVar[str] = "the network between two parts is slow, narrow or loses segments"
    latency_s: float = msgspec.field(default=0.0, name="latency")
    jitter_s: float = msgspec.field(default=0.0, name="jitter")
    rate_bit_s: float = msgspec.field(default=0.0, name="rate")
    drop: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        within("latency", self.latency_s, 0.0, 60.0)
        within("jitter", self.jitter_s, 0.0, 60.0)
        within("rate", self.rate_bit_s, 0.0, MAX_RATE_BIT_S)
        within("drop", self.drop, 0.0, 0.9)
        if not (self.latency_s or self.jitter_s or self.rate_bit_s or self.drop):
            raise ValueError("one of latency, jitter, rate and drop is needed, or the fault cut")


class CutLink(_NetworkFault, frozen=True, tag="cut"):
    """`how`: ``silent`` passes nothing on, as a cable that is pulled: connections stay open, and what was sent comes
    when the cut is over. ``reset`` resets connections (TCP RST), those that come too."""

    summary: ClassVar[str] = "the network between two parts is cut"
    how: Literal["silent", "reset"] = "silent"


PoolFault: TypeAlias = StopPart | KillPart | PausePart | RestartParts | SlowLink | CutLink
NetworkFault: TypeAlias = SlowLink | CutLink

SILENCING = frozenset(("stop", "kill", "pause"))
"""Kinds whose part does not answer while they are active."""

POOL_KINDS: dict[str, type[PoolFault]] = {
    str(type_.__struct_config__.tag): type_
    for type_ in (StopPart, KillPart, PausePart, RestartParts, SlowLink, CutLink)
}
