"""Keeping a run's own credentials good: a token file that is replaced, a plugin's answer that expires.

The master alone reads and runs; what is new it sends to the workers, which may be on machines that have neither the
file nor the plugin.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from harness.transport.credentials import Credentials, Rotation
from harness.wire.errors import ConfigError

logger = logging.getLogger("swarmlet")

REFUSED_AGAIN_S = 10.0
"""A server that refuses what was just fetched will refuse the next as well."""

AFTER_FAILURE_S = 10.0


class Refresher:
    """`share` gets what is new; `failed` hears, once for each spell, that nothing could be had."""

    def __init__(
        self,
        rotation: Rotation,
        first: Credentials,
        share: Callable[[Credentials], None],
        failed: Callable[[str], None],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._rotation = rotation
        self._known = first
        self._share = share
        self._failed = failed
        self._wall = wall
        self._not_before = 0.0
        self._failing = False

    def look(self) -> None:
        """Called now and then: fetch where it is due. May wait for a plugin."""
        now = self._wall()
        if now >= self._not_before and self._rotation.due(now):
            self._fetch(now)

    def refused(self) -> None:
        """A server answered 401: fetch now, unless that was just done."""
        now = self._wall()
        if now >= self._not_before:
            self._fetch(now)
            self._not_before = max(self._not_before, now + REFUSED_AGAIN_S)

    def _fetch(self, now: float) -> None:
        try:
            found = self._rotation.fetch()
        except ConfigError as error:
            self._not_before = now + AFTER_FAILURE_S
            if not self._failing:
                self._failing = True
                self._failed(str(error))
            return
        self._failing = False
        shown = (found.token, found.certificate, found.key)
        if shown != (self._known.token, self._known.certificate, self._known.key):
            self._known = found
            logger.info("fresh credentials")
            self._share(found)
