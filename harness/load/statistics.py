"""What the clients of one process saw: request histograms for the record, and Locust's own statistics.

Both are fed once for each answered request. Names are bounded: verb, resource, status code, member; never a node's or
an object's name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from harness.client.machine import Sample
from harness.load.delivery import Deliveries
from harness.observe.histogram import bucket_of
from harness.wire.request import Request

NO_ANSWER = 0
"""The status code under which exchanges that got no answer are kept."""


def verb_of(request: Request) -> str:
    """The verb for statistics: a watch that asks for initial events is a "watchlist", as apiserver metrics call it."""
    if request.verb == "watch" and "sendInitialEvents=true" in request.path:
        return "watchlist"
    return request.verb


class Statistics:
    """`fire` is Locust's request event; `deliveries` takes what is followed from its writer to its watchers; `wall` is
    the clock of the rows."""

    def __init__(
        self,
        fire: Callable[..., Any],
        deliveries: Deliveries | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._fire = fire
        self._wall = wall
        self.deliveries = deliveries or Deliveries(0, time.monotonic)
        self._counts: dict[tuple[str, str, str, int, str], dict[int, int]] = {}
        self._samples: dict[tuple[str, str, str], dict[int, int]] = {}

    def request(
        self,
        user: str,
        request: Request,
        code: int,
        member: str,
        seconds: float,
        length: int,
        error: str = "",
    ) -> None:
        """One exchange: `seconds` from its being handed to the transport to its answer (a watch: to its opening);
        `error` says why there was none."""
        verb = verb_of(request)
        key = (user, verb, request.name, code, member)
        buckets = self._counts.get(key)
        if buckets is None:
            buckets = self._counts[key] = {}
        bucket = bucket_of(seconds * 1e6)
        buckets[bucket] = buckets.get(bucket, 0) + 1
        self._fire(
            request_type=verb.upper(),
            name=request.name,
            response_time=seconds * 1e3,
            response_length=length,
            exception=_Refused(error or f"HTTP {code}") if error or code >= 400 else None,
            context={},
        )

    def sample(self, user: str, sample: Sample) -> None:
        """A machine's own measurement, in milliseconds."""
        labels = ",".join(f"{key}={value}" for key, value in sample.labels)
        buckets = self._samples.setdefault((user, sample.name, labels), {})
        bucket = bucket_of(sample.value * 1e3)
        buckets[bucket] = buckets.get(bucket, 0) + 1

    def take_samples(self) -> list[tuple[float, str, str, str, int, int]]:
        """Rows as `record.SAMPLES` has them."""
        now = self._wall()
        rows = [
            (now, user, name, labels, bucket, count)
            for (user, name, labels), buckets in self._samples.items()
            for bucket, count in buckets.items()
        ]
        self._samples.clear()
        return rows

    def take(self) -> list[tuple[float, str, str, str, int, str, int, int]]:
        """Rows since the last call, as `record.REQUESTS` has them."""
        now = self._wall()
        rows = [
            (now, user, verb, name, code, member, bucket, count)
            for (user, verb, name, code, member), buckets in self._counts.items()
            for bucket, count in buckets.items()
        ]
        self._counts.clear()
        return rows


class _Refused(Exception):
    """What Locust's failure table shows; no stack, it is made for every failed request."""
