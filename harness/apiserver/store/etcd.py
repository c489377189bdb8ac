"""How long etcd takes: a model of its members, each on the host of one apiserver.

Raft as etcd runs it (etcd server/etcdserver/raft.go, v3_server.go; raft thesis 6.4 for reads): a write goes to the
leader, which appends it to its log and sends it to the followers at once; it is committed when a majority has it on
disk, and each member applies it when it hears so. A linearizable read asks the leader, who asks a majority. Members
sync their logs in batches: entries that come during one sync share the next. Times are drawn from named distributions;
what is not drawn comes from the hosts, whose backlog of modelled CPU time delays their etcd members.

Pure arithmetic on times: `replicated.ReplicatedStore` does what is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from random import Random

from harness.apiserver.model.figures import parse_figures
from harness.wire.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    """Medians in seconds of lognormal distributions, and their shapes (sigma of the logarithm: p99 is the median times
    e to the 2.33 sigma).

    Estimates from public guidance rather than measured: etcd's documentation wants a p99 of log syncs under 10 ms and
    of backend commits under 25 ms; cloud SSDs sync in one to two milliseconds, zones of one region are half a
    millisecond to one apart.
    """

    fsync_s: float = 0.0012  # p99 4.9 ms
    fsync_sigma: float = 0.6
    rtt_s: float = 0.0005  # between two members, there and back; p99 1.1 ms
    rtt_sigma: float = 0.35
    election_least_s: float = 1.0  # etcd's --election-timeout of 1 s, drawn up to twice
    election_most_s: float = 2.0
    request_timeout_s: float = 7.0  # etcd server config ReqTimeout: 5 s and two election timeouts
    compaction_s: float = 300.0  # apiserver's --etcd-compaction-interval; 0 for never

    @classmethod
    def parse(cls, mapping: Mapping[str, float]) -> EtcdOptions:
        """Defaults with the given fields replaced; raises ConfigError on an unknown key or a value below 0."""
        return parse_figures(cls, "etcd", mapping, 1e6)


class _Batches:
    """A device that serves all that waits at once, one batch after another: a log's fsync, a round of heartbeats."""

    __slots__ = ("end", "start")

    def __init__(self) -> None:
        self.start = self.end = float("-inf")  # of the newest batch

    def join(self, at: float, duration_s: float) -> float:
        """When the batch is done that takes in what arrives at `at`; `duration_s` is used if that is a new one."""
        if at >= self.end:
            self.start, self.end = at, at + duration_s
        elif at > self.start:  # the newest batch has begun without it
            self.start, self.end = self.end, self.end + duration_s
        return self.end


class _Member:
    __slots__ = ("alive", "backlog_s", "log", "rounds", "visible")

    def __init__(self) -> None:
        self.alive = True
        self.backlog_s = 0.0
        self.log = _Batches()
        self.rounds = _Batches()
        self.visible = float("-inf")  # when it applies the newest entry that it has been sent


class Commit:
    """A write's times: when the leader may apply it, and when each member that is alive hears so."""

    __slots__ = ("at", "visible")

    def __init__(self, at: float, visible: dict[str, float]) -> None:
        self.at = at
        self.visible = visible


class EtcdModel:
    """The members by name; the first leads until it is lost. Times given must not decrease."""

    def __init__(self, members: Sequence[str], rng: Random, options: EtcdOptions | None = None) -> None:
        if not members or len(set(members)) != len(members):
            raise ConfigError(f"etcd: members must be different names, at least one; not {list(members)!r}")
        self.options = options or EtcdOptions()
        self.leader: str | None = members[0]
        self.quorum = len(members) // 2 + 1
        self._members = {name: _Member() for name in members}
        self._rng = rng
        self._committed = float("-inf")
        self._write_delay_s = self._read_delay_s = 0.0
        self._fsync_mu = log(self.options.fsync_s) if self.options.fsync_s else None
        self._rtt_mu = log(self.options.rtt_s) if self.options.rtt_s else None

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self._members)

    def report(self, member: str, backlog_s: float) -> None:
        """CPU time that this member's etcd is behind with."""
        self._members[member].backlog_s = backlog_s

    def set_delay(self, write_s: float, read_s: float) -> None:
        """A slow store, until it is set again: each commit and each linearizable read takes so much longer."""
        self._write_delay_s, self._read_delay_s = write_s, read_s

    def alive(self, member: str) -> bool:
        return self._members[member].alive

    # ---- membership
    def lose(self, member: str) -> float | None:
        """A member is gone. The pause until there is a leader if it led or a quorum of them had been missing; None
        if nothing changes for the others, or while there is no quorum."""
        self._members[member].alive = False
        if self._alive() < self.quorum:
            self.leader = None
            return None
        return self._election_s() if self.leader in (member, None) else None

    def restore(self, member: str) -> float | None:
        """A member is back; the pause until there is a leader where there is none and now can be."""
        self._members[member].alive = True
        if self.leader is None and self._alive() >= self.quorum:
            return self._election_s()
        return None

    def elect(self) -> str | None:
        """The pause is over: the first member that is alive leads, if they are a quorum."""
        if self._alive() >= self.quorum:
            self.leader = next(name for name, member in self._members.items() if member.alive)
        return self.leader

    # ---- requests
    def write(self, proposer: str, now: float) -> Commit:
        """Times of a write that `proposer` makes now. There must be a leader; commits never overtake one another."""
        assert self.leader is not None
        leader = self._members[self.leader]
        arrival = now + leader.backlog_s
        if proposer != self.leader:
            arrival += self._members[proposer].backlog_s + self._rtt() / 2
        stored = [leader.log.join(arrival, self._fsync())]
        for name, member in self._members.items():
            if name != self.leader and member.alive:
                there, back = self._rtt() / 2, self._rtt() / 2
                stored.append(member.log.join(arrival + there + member.backlog_s, self._fsync()) + back)
        stored.sort()
        self._committed = max(self._committed, stored[self.quorum - 1] + self._write_delay_s)
        return Commit(
            self._committed, {name: self._hears(name) for name in self._members if self.alive(name)}
        )

    def read(self, reader: str, now: float) -> float:
        """When a read that `reader` begins now has learned how far it must have applied. There must be a leader."""
        assert self.leader is not None
        member = self._members[reader]
        return member.rounds.join(now, self._read_round(reader)) + self._read_delay_s

    # ---- helpers
    def _read_round(self, reader: str) -> float:
        """To the leader, from there to a majority and back, and back."""
        assert self.leader is not None
        duration_s = self._members[self.leader].backlog_s
        if reader != self.leader:
            duration_s += self._members[reader].backlog_s + self._rtt()
        if self.quorum > 1:
            rounds = sorted(
                self._rtt() + member.backlog_s
                for name, member in self._members.items()
                if name != self.leader and member.alive
            )
            duration_s += rounds[self.quorum - 2]
        return duration_s

    def _hears(self, name: str) -> float:
        member = self._members[name]
        delay_s = 0.0 if name == self.leader else self._rtt() / 2
        member.visible = max(member.visible, self._committed + delay_s)
        return member.visible

    def _alive(self) -> int:
        return sum(member.alive for member in self._members.values())

    def _election_s(self) -> float:
        self.leader = None
        return self._rng.uniform(self.options.election_least_s, self.options.election_most_s)

    def _fsync(self) -> float:
        if self._fsync_mu is None:
            return 0.0
        return self._rng.lognormvariate(self._fsync_mu, self.options.fsync_sigma)

    def _rtt(self) -> float:
        if self._rtt_mu is None:
            return 0.0
        return self._rng.lognormvariate(self._rtt_mu, self.options.rtt_sigma)
