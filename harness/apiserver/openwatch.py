"""An open watch: what is left of a request once its stream has begun.

Thousands of them are open at a time and at rest nearly always, so that neither the request's coroutines nor what it was
parsed into are kept: an `OpenWatch` is what the source writes to, and what is told when the client goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from harness.apiserver.cache.watchers import Watcher, WatchOptions, WatchSink
from harness.apiserver.clock import Clock
from harness.apiserver.exchange import Exchange
from harness.apiserver.flowcontrol.watches import WatchKey, WatchTracker
from harness.apiserver.metrics.requestmetrics import WatchSeries
from harness.wire.paths import RequestInfo


class Seats(Protocol):
    """What flow control has given for the initial events."""

    def cancel(self) -> None:
        """Give them back; no effect the second time."""
        ...


class Source(Protocol):
    """Whatever serves watches of a resource: its cacher, or the store's own watches."""

    def watch(self, options: WatchOptions, sink: WatchSink) -> Watcher: ...


class OpenWatches:
    """Those of one member."""

    def __init__(self, clock: Clock, tracker: WatchTracker) -> None:
        self.clock = clock
        self.tracker = tracker
        self.count = 0


class OpenWatch:
    """The sink of one watch, and what it gives back when it ends, by whichever side."""

    __slots__ = (
        "_exchange",
        "_headers",
        "_key",
        "_over",
        "_owner",
        "_seats",
        "_series",
        "_started_at",
        "_waited_s",
        "_watcher",
    )

    def __init__(
        self,
        owner: OpenWatches,
        exchange: Exchange,
        headers: Mapping[str, str],
        series: WatchSeries,
        seats: Seats | None,
        started_at: float,
        waited_s: float,
    ) -> None:
        self._owner = owner
        self._exchange = exchange
        exchange.path = (
            series.path
        )  # shared; with its selectors it is as long as all that is kept of some watches
        self._headers: Mapping[str, str] | None = headers
        self._series = series
        self._seats = seats
        self._started_at = started_at
        self._waited_s = waited_s
        self._over = False
        self._key: WatchKey | None = None
        self._watcher: Watcher | None = None

    def begin(
        self,
        source: Source,
        options: WatchOptions,
        info: RequestInfo,
        required: Callable[[str], str | None],
    ) -> None:
        """Open it; `required` as for `WatchTracker.count`. The source must be ready, and does not raise then."""
        owner = self._owner
        self._key = owner.tracker.count(info, required)
        owner.count += 1
        self._series.opened()
        watcher = source.watch(options, self)
        if not self._over:  # it may have ended already, with an error
            self._watcher = watcher

    def gone(self) -> None:
        """The client has left."""
        if self._watcher is not None:
            self._watcher.stop()
            self._ended()

    # ---- what the source calls
    def opened(self) -> None:
        assert self._headers is not None, "the head is sent once"
        self._exchange.start(200, self._headers)
        self._headers = None

    def initialized(self) -> None:
        """The initial events are queued: the seats are free again, and the watch goes on without any."""
        self._give_back()
        self._series.initialized(self._owner.clock.now() - self._started_at)

    def write(self, data: bytes) -> None:
        self._exchange.write(data)

    def finish(self) -> None:
        self._exchange.finish()
        self._ended()

    @property
    def buffered(self) -> int:
        return self._exchange.buffered

    def on_drain(self, callback: Callable[[], None]) -> None:
        self._exchange.on_drain(callback)

    # ---- the end
    def _give_back(self) -> None:
        if self._seats is not None:
            seats, self._seats = self._seats, None
            seats.cancel()

    def _ended(self) -> None:
        owner = self._owner
        self._over = True
        self._watcher = None
        self._give_back()
        owner.tracker.forget(self._key)
        owner.count -= 1
        self._series.ended(owner.clock.now() - self._started_at, self._waited_s)
