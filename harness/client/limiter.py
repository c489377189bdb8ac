"""The token bucket in front of a client's requests: client-go's flowcontrol over golang.org/x/time/rate.

Reservations, not tries: a request takes its token at once, the count may fall below zero, and it waits until the debt
before it is paid. So waiting requests are served in the order in which they came.
"""

from __future__ import annotations


class TokenBucket:
    """`qps` tokens a second up to `burst`, full at first. Both must be positive: a client without a limit (QPS -1)
    has no bucket."""

    __slots__ = ("_last", "_last_event", "_tokens", "burst", "qps")

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"token bucket needs qps > 0 and burst >= 1, got {qps} and {burst}")
        self.qps = qps
        self.burst = burst
        self._tokens = float(burst)
        self._last: float | None = None
        self._last_event = 0.0  # when the latest reservation acts

    def reserve(self, now: float) -> float:
        """Take a token; seconds to wait before acting on it, 0.0 where it is there (rate.go:reserveN)."""
        self._refill(now)
        self._tokens -= 1.0
        delay_s = -self._tokens / self.qps if self._tokens < 0 else 0.0
        self._last_event = now + delay_s
        return delay_s

    def cancel(self, acts_at: float, now: float) -> None:
        """Give back a reservation that acts at `acts_at`, as far as later ones do not rest on it (rate.go:CancelAt)."""
        if acts_at <= now:
            return
        restored = 1.0 - (self._last_event - acts_at) * self.qps
        if restored <= 0:
            return
        self._refill(now)
        self._tokens = min(self._tokens + restored, float(self.burst))
        if acts_at == self._last_event:
            previous = acts_at - 1.0 / self.qps
            if previous >= now:
                self._last_event = previous

    def set_limit(self, qps: float, burst: int, now: float) -> None:
        """Another rate and burst from now on; what is reserved already acts when it was told (rate.go:SetLimitAt)."""
        if qps <= 0 or burst < 1:
            raise ValueError(f"token bucket needs qps > 0 and burst >= 1, got {qps} and {burst}")
        self._refill(now)
        self.qps, self.burst = qps, burst
        self._tokens = min(self._tokens, float(burst))

    def tokens(self, now: float) -> float:
        """How many there are, negative while requests wait."""
        self._refill(now)
        return self._tokens

    def _refill(self, now: float) -> None:
        if self._last is None:
            self._last = now
        elif now > self._last:
            self._tokens = min(self._tokens + (now - self._last) * self.qps, float(self.burst))
            self._last = now
