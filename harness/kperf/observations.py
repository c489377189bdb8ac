"""What became of each request, on its way to the report.

Every latency is kept, as percentiles are kperf's, of the values themselves and not of buckets. A process sends what it
has seen every few seconds: columns of doubles, by what requests have in common.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.kperf.failures import RequestFailure


class Key(NamedTuple):
    """What requests have in common: spec (from 0), method and url of `building.Call`, the member that answered (""
    where none did), and the failure's key, "" for success."""

    spec: int
    method: str
    url: str
    member: str
    failure: str = ""

    @property
    def name(self) -> str:
        """As percentileLatenciesByURL has it."""
        return f"{self.method} {self.url}"


class Column:
    """Requests that share a `Key`, in the order in which they ended: seconds from due to end, from due to sent, and for
    failures the wall-clock time of the end. `received_bytes` is their sum."""

    __slots__ = ("ended", "latencies", "lateness", "received_bytes")

    def __init__(self) -> None:
        self.latencies: array[float] = array("d")
        self.lateness: array[float] = array("d")
        self.ended: array[float] = array("d")
        self.received_bytes = 0

    def __len__(self) -> int:
        return len(self.latencies)

    def extend(self, other: Column) -> None:
        self.latencies.extend(other.latencies)
        self.lateness.extend(other.lateness)
        self.ended.extend(other.ended)
        self.received_bytes += other.received_bytes

    @property
    def service(self) -> Iterator[float]:
        """Seconds from sent to end: what kperf calls latency."""
        return (whole - late for whole, late in zip(self.latencies, self.lateness, strict=True))


class Observations:
    """All that was seen so far, or since the last `take`."""

    def __init__(self) -> None:
        self.columns: dict[Key, Column] = {}

    def __len__(self) -> int:
        return sum(map(len, self.columns.values()))

    def add(
        self,
        spec: int,
        method: str,
        url: str,
        member: str,
        failure: RequestFailure | None,
        latency_s: float,
        lateness_s: float,
        ended: float,
        received_bytes: int = 0,
    ) -> None:
        """One request that ended; `ended` is the wall-clock time."""
        key = Key(spec, method, url, member, failure.key if failure else "")
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = Column()
        column.latencies.append(latency_s)
        column.lateness.append(lateness_s)
        column.received_bytes += received_bytes
        if failure is not None:
            column.ended.append(ended)

    def take(self) -> list[dict[str, Any]]:
        """Everything since the last call, in plain values that a message can carry."""
        columns, self.columns = self.columns, {}
        return [
            {
                "key": list(key),
                "latencies": column.latencies.tobytes(),
                "lateness": column.lateness.tobytes(),
                "ended": column.ended.tobytes(),
                "bytes": column.received_bytes,
            }
            for key, column in columns.items()
        ]

    def put(self, taken: list[Mapping[str, Any]]) -> None:
        """Add what somebody took elsewhere, on a machine of the same byte order."""
        for item in taken:
            column = self.columns.setdefault(Key(*item["key"]), Column())
            column.latencies.frombytes(item["latencies"])
            column.lateness.frombytes(item["lateness"])
            column.ended.frombytes(item["ended"])
            column.received_bytes += item["bytes"]

    def of_spec(self, spec: int) -> dict[Key, Column]:
        return {key: column for key, column in self.columns.items() if key.spec == spec}
