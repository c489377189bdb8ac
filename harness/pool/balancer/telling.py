"""What becomes of connections behind a balancer, as events: the only place that knows which member has how many of
them at its own count."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from harness.wire.errors import ConfigError

KIND = "balancer-connections"
EVERY_S = 5.0


class Telling:
    """`ask` gives what the balancer says of each member; it raises ConfigError while it does not answer."""

    def __init__(
        self,
        ask: Callable[[], Mapping[str, Mapping[str, Any]]],
        tell: Callable[[dict[str, Any]], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._tell = tell
        self._now = now
        self._due_s = now()
        self._last: Mapping[str, Mapping[str, Any]] = {}

    def look(self) -> None:
        """Called often; asks every `EVERY_S`, and tells what differs from the last time: of each member its `status`,
        and its `current` and `total` connections."""
        if self._now() < self._due_s:
            return
        self._due_s = self._now() + EVERY_S
        try:
            members = self._ask()
        except ConfigError:
            return  # it is paused or down, which is an event already
        if members != self._last:
            self._last = members
            self._tell({"kind": KIND, "members": members})
