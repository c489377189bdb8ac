"""Figures of each member while a run goes on: of its own metrics, and of what the fleet counted of its answers."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from harness.observe.digest import Digest

FALLBACK_OBJECTS = ("secrets", "configmaps")
REMEMBERED = 720
"""Scrapes for which it is known where the foremost member was: an hour of the usual 5 s."""

Counted = tuple[float, str, str, str, int, str, int, int]
"""A row of `record.REQUESTS`: t, user, verb, name, code, member, bucket, count."""


class MemberFigures(msgspec.Struct):
    """None is what the member does not expose, or what nothing is known of yet. `sent` are the fleet's requests that it
    answered, `denials` the node authorizer's 403s among them, `fallback` the share of LISTs among the LISTs and
    watch-lists of secrets and configmaps, `behind` how far its newest cache is behind the foremost member's."""

    member: str
    up: bool | None = None
    watches: float | None = None
    requests_per_s: float | None = None
    sent: int = 0
    denials: int = 0
    fallback: float | None = None
    rejects: float | None = None
    behind_revisions: float | None = None
    behind_s: float | None = None


class _Member:
    __slots__ = ("denials", "digest", "lists", "rate", "revision", "sent", "t", "up", "watchlists")

    def __init__(self) -> None:
        self.up: bool | None = None
        self.digest = Digest()
        self.t = 0.0
        self.rate: float | None = None
        self.revision: float | None = None
        self.sent = self.denials = self.lists = self.watchlists = 0


class Members:
    """Those that are expected, and others as they are heard of."""

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}
        self._times: deque[float] = deque(maxlen=REMEMBERED)
        self._foremost: deque[float] = deque(maxlen=REMEMBERED)

    def expect(self, names: Iterable[str]) -> None:
        for name in names:
            self._of(name)

    def scraped(self, t: float, digests: Mapping[str, Digest | None]) -> None:
        """One round of the scraper at `t`, in seconds; None of a member that did not answer."""
        for name, digest in digests.items():
            member = self._of(name)
            member.up = digest is not None
            member.revision = None
            if digest is None:
                member.rate = None
                continue
            member.rate = _rate(member, digest, t)
            member.digest, member.t = digest, t
            member.revision = digest.revision or None  # 0: no cache was there yet
        revisions = [member.revision for member in self._members.values() if member.revision is not None]
        if revisions:
            self._times.append(t)
            self._foremost.append(max(revisions[0] if not self._foremost else self._foremost[-1], *revisions))

    def counted(self, rows: Iterable[Counted]) -> None:
        """What a worker counted since its last report. Events aside: their 403s are of namespaces that terminate."""
        for _, user, verb, name, code, to, _, count in rows:
            if not to:
                continue  # nobody answered
            member = self._of(to)
            member.sent += count
            if user != "kubelet":
                continue
            if code == 403 and name != "events":
                member.denials += count
            if name in FALLBACK_OBJECTS:
                if verb == "list":
                    member.lists += count
                elif verb == "watchlist":
                    member.watchlists += count

    def figures(self) -> list[MemberFigures]:
        """Of each, by name; how far one is behind only where there are several."""
        known = [member for member in self._members.values() if member.revision is not None]
        return [self._figures(name, member, len(known) > 1) for name, member in sorted(self._members.items())]

    def whole(self) -> MemberFigures:
        """All together: sums, the highest of how far one is behind."""
        each, members = self.figures(), self._members.values()
        lists, watchlists = (sum(getattr(m, key) for m in members) for key in ("lists", "watchlists"))
        return MemberFigures(
            "all",
            all(m.up for m in members) if all(m.up is not None for m in members) else None,
            _sum(figure.watches for figure in each),
            _sum(figure.requests_per_s for figure in each),
            sum(m.sent for m in members),
            sum(m.denials for m in members),
            _share(lists, watchlists),
            _sum(figure.rejects for figure in each),
            _highest(figure.behind_revisions for figure in each),
            _highest(figure.behind_s for figure in each),
        )

    def _of(self, name: str) -> _Member:
        return self._members.setdefault(name, _Member())

    def _figures(self, name: str, member: _Member, several: bool) -> MemberFigures:
        revision = member.revision if several else None
        return MemberFigures(
            name,
            member.up,
            member.digest.watches,
            member.rate,
            member.sent,
            member.denials,
            _share(member.lists, member.watchlists),
            member.digest.rejects,
            None if revision is None else self._foremost[-1] - revision,
            None if revision is None else self._age(revision),
        )

    def _age(self, revision: float) -> float:
        """How long ago the foremost passed it; between scrapes in proportion, as `compare.rows.staleness` has it."""
        if revision >= self._foremost[-1]:
            return 0.0
        k = bisect_right(self._foremost, revision)
        now = self._times[-1]
        if k == 0:
            return now - self._times[0]
        share = (revision - self._foremost[k - 1]) / (self._foremost[k] - self._foremost[k - 1])
        return now - (self._times[k - 1] + share * (self._times[k] - self._times[k - 1]))


def _rate(member: _Member, digest: Digest, t: float) -> float | None:
    """Requests a second since the scrape before; None of a first one, and where a restart began to count anew."""
    before = member.digest.requests
    if before is None or digest.requests is None or digest.requests < before or t <= member.t:
        return None
    return (digest.requests - before) / (t - member.t)


def _share(lists: int, watchlists: int) -> float | None:
    return lists / (lists + watchlists) if lists + watchlists else None


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
