"""Compaction as apiservers do it: every five minutes to where the store was five minutes before, once for all of them.

Mirrors etcd3/compact.go: the apiservers agree through a key whose version counts the rounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.apiserver.clock import Promise, Task, Timer, spawn
from harness.apiserver.store.core import StoreError
from harness.apiserver.store.etcd3.messages import Versioned

KEY = "compact_rev_key"
INTERVAL_S = 300.0  # --etcd-compaction-interval


class Etcd(Protocol):
    def compare_and_put(
        self, key: str, version: int, value: bytes
    ) -> Promise[tuple[bool, int, Versioned]]: ...

    def compact(self, revision: int = 0) -> Promise[int]: ...


class Compactor:
    """Runs from `start()` to `stop()`."""

    def __init__(
        self, etcd: Etcd, call_later: Callable[[float, Callable[[], object]], Timer], interval_s: float
    ) -> None:
        self._etcd = etcd
        self._call_later = call_later
        self._interval_s = interval_s
        self._version = 0
        self._revision = 0  # of the store, when this or another apiserver began the last round
        self._timer: Timer | None = None
        self._round: Task[None] | None = None

    def start(self) -> None:
        self._timer = self._call_later(self._interval_s, self._due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._round is not None:
            self._round.cancel()

    def _due(self) -> None:
        self.start()
        self._round = spawn(self.compact())

    async def compact(self) -> None:
        """One round; what fails is tried again with the next."""
        try:
            won, revision, found = await self._etcd.compare_and_put(
                KEY, self._version, str(self._revision).encode()
            )
            before, self._revision = self._revision, revision
            if not won:
                self._version = found.version
                return
            self._version += 1
            if before:
                await self._etcd.compact(before)
        except StoreError:
            return
