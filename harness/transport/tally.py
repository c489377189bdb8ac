"""What became of connections, counted by member."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Count(Enum):
    """The value is the name in a run's record."""

    DIALLED = "dialled"
    """Connections that were established."""
    DIAL_FAILED = "dial-failed"
    """Connections that were not."""
    REDIALLED = "redialled"
    """Of those established, the ones in place of a connection that was lost or was told to go away."""
    LOST = "lost"
    """Connections that broke, or that the peer closed, while they carried requests and without a GOAWAY before."""
    GOAWAY = "goaway"
    """Connections on which the peer sent GOAWAY, however often."""
    STREAM_RESET = "stream-reset"
    """Requests that the peer ended by RST_STREAM, or by its GOAWAY would not begin."""
    RETRIED = "retried"
    """Requests that were sent again since the peer had provably not processed them."""
    CLOSED = "closed"
    """Connections that `Transport.close_connections` closed."""


class Tally:
    """Counts of all transports that share it: one object for a worker's thousands of nodes."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Count]] = Counter()

    def add(self, count: Count, member: str) -> None:
        self._counts[member, count] += 1

    def of(self, count: Count) -> dict[str, int]:
        """By member, those without any left out."""
        return {member: number for (member, kind), number in self._counts.items() if kind is count}

    def take(self) -> dict[str, dict[str, int]]:
        """By member and by the count's name, since the last call."""
        found: dict[str, dict[str, int]] = {}
        for (member, count), number in self._counts.items():
            found.setdefault(member, {})[count.value] = number
        self._counts.clear()
        return found


@dataclass(frozen=True, slots=True)
class TransportStatistics:
    """A snapshot. Bytes are those of HTTP before TLS, over all connections ever open. `dialled`, `failed_dials` and
    `retries` are those of the transport's tally, which others may share."""

    dialled: Mapping[str, int]
    """Connections that were established, by member."""
    failed_dials: Mapping[str, int]
    """Connections that were not, by member."""
    open_connections: Mapping[str, int]
    """By member; those that drain included."""
    open_streams: int
    """Requests that a connection carries."""
    waiting: int
    """Requests that wait for a connection."""
    retries: int
    """Requests that were sent again."""
    sent_bytes: int
    received_bytes: int
