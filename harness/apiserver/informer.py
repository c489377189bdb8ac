"""What a member's own controllers and authorizers follow a resource with: an informer that begins again by itself.

Mirrors client-go's shared informers on the loopback client: after the watch's end it lists anew and tells its handlers
of everything that is there, and of what has gone meanwhile. Here nothing is stored: whoever follows keeps what it
needs, and is told after such a list which keys there were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.watchers import Callback, Informer
from harness.apiserver.clock import Clock, Timer
from harness.apiserver.resources import Resource


class Followed(Protocol):
    """What it needs of a watch cache; `Cacher` is one."""

    resource: Resource

    def subscribe(
        self,
        callback: Callback,
        on_synced: Callable[[], object] | None = None,
        on_ended: Callable[[], object] | None = None,
    ) -> Informer: ...
    def unsubscribe(self, informer: Informer) -> None: ...
    def told(self, informer: Informer) -> int: ...
    def changed_after(self, revision: int) -> float | None: ...


class Following:
    """Follows one resource until `stop()`. `on_event(kind, object)` hears of ADDED, MODIFIED and DELETED, where ADDED
    may be of an object that is known already; `on_listed(keys)` of the keys there are, whenever all of them have been
    told: what is not among them has gone."""

    def __init__(
        self,
        clock: Clock,
        cacher: Followed,
        on_event: Callable[[str, CachedObject], object],
        on_listed: Callable[[set[str]], object],
    ) -> None:
        self.synced = False
        self._clock = clock
        self._cacher = cacher
        self._on_event = on_event
        self._on_listed = on_listed
        self._listed: set[str] | None = None  # keys while the initial events are told
        self._informer: Informer | None = None
        self._broken_at = 0  # the position at which the watch broke
        self._reconnect: Timer | None = None
        self._stopped = False

    def start(self) -> None:
        self._listed = set()
        self._informer = self._cacher.subscribe(self._heard, self._synced, self._ended)

    def stop(self) -> None:
        self._stopped = True
        if self._reconnect is not None:
            self._reconnect.cancel()
        self._let_go()

    def break_off(self, seconds: float) -> None:
        """The watch breaks now and is begun anew, with a list, after so long. 0 begins a broken one at once."""
        if self._stopped:
            return
        self._broken_at = self.position
        self._let_go()
        if self._reconnect is not None:
            self._reconnect.cancel()
        self._reconnect = self._clock.call_at(self._clock.now() + seconds, self._begin_anew)

    @property
    def broken(self) -> bool:
        return self._informer is None

    @property
    def position(self) -> int:
        """The revision up to which its handlers have been told everything."""
        if self._informer is None:
            return self._broken_at
        return self._cacher.told(self._informer)

    def changed_after(self, revision: int) -> float | None:
        """When the cache got its first change after a revision; None for none."""
        return self._cacher.changed_after(revision)

    def _heard(self, kind: str, obj: CachedObject, _: CachedObject | None) -> None:
        if self._listed is not None:
            self._listed.add(obj.key)
        self._on_event(kind, obj)

    def _synced(self) -> None:
        keys, self._listed = self._listed, None
        self.synced = True
        if keys is not None:
            self._on_listed(keys)

    def _ended(self) -> None:
        self._let_go()
        if not self._stopped:
            self.start()

    def _begin_anew(self) -> None:
        self._reconnect = None
        self.start()

    def _let_go(self) -> None:
        informer, self._informer = self._informer, None
        if informer is not None:
            self._cacher.unsubscribe(informer)
