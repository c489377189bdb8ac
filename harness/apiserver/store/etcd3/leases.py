"""Leases for keys with a time to live, shared by keys that are written soon after one another."""

from __future__ import annotations

from collections.abc import Callable

from harness.apiserver.clock import Promise

REUSE_S = 60  # lease_manager.go: defaultLeaseReuseDurationSeconds
REUSE_SHARE = 0.05  # leaseReuseDurationPercent: of a short time to live
MAX_KEYS = 1000  # defaultLeaseMaxObjectCount


class LeaseManager:
    """As upstream's (etcd3/lease_manager.go): a lease lives a little longer than was asked for, so that others may
    share it; a key may thus outlive its time by a minute."""

    def __init__(self, grant: Callable[[int], Promise[int]], now: Callable[[], float]) -> None:
        self._grant = grant
        self._now = now
        self._current: Promise[int] | None = None
        self._ends_s = 0.0
        self._keys = 0

    def lease(self, ttl_s: float) -> Promise[int]:
        """A lease of at least `ttl_s`; fails as the grant does."""
        ttl = max(1, round(ttl_s))
        reuse = min(REUSE_S, int(ttl * REUSE_SHARE))
        now = self._now()
        self._keys += 1
        fits = now + ttl < self._ends_s <= now + ttl + reuse
        if self._current is not None and fits and self._keys <= MAX_KEYS and not self._failed():
            return self._current
        self._ends_s = now + ttl + reuse
        self._keys = 1
        self._current = self._grant(ttl + reuse)
        return self._current

    def _failed(self) -> bool:
        assert self._current is not None
        if not self._current.done:
            return False
        try:
            self._current.result()
        except Exception:
            return True
        return False
