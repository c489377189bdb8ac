"""The storage behind a CSI driver: calls that take a drawn time, may fail, and are idempotent by the volume's name."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from harness.fleet.provisioners.distribution import parse_distribution
from harness.fleet.provisioners.options import ProvisionerOptions


class Call(NamedTuple):
    """What a call comes to: after `seconds`, with `error`, "" for none."""

    seconds: float
    error: str = ""


class Backend:
    """One replica's driver."""

    __slots__ = ("_create", "_delete", "_failures", "_ready_at", "_rng", "_timeout_s")

    def __init__(self, options: ProvisionerOptions, rng: Random) -> None:
        self._create = parse_distribution(options.create, "create")
        self._delete = parse_distribution(options.delete, "delete")
        self._failures = options.failures
        self._timeout_s = options.csi_timeout_s
        self._rng = rng
        self._ready_at: dict[str, float] = {}  # of volumes that are being made

    def create(self, volume: str, now: float) -> Call:
        """CreateVolume. A call that is given up leaves the volume in the making, and the next one waits for what is
        left of that; one that fails begins anew."""
        ready_at = self._ready_at.get(volume)
        if ready_at is None:
            seconds = self._create.draw(self._rng)
            if self._failures and self._rng.random() < self._failures:
                return Call(
                    min(seconds, self._timeout_s), "rpc error: code = Internal desc = no volume was made"
                )
            ready_at = self._ready_at[volume] = now + seconds
        left_s = max(0.0, ready_at - now)
        if left_s > self._timeout_s:
            return Call(
                self._timeout_s, "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
            )
        del self._ready_at[volume]
        return Call(left_s)

    def delete(self) -> Call:
        """DeleteVolume."""
        seconds = self._delete.draw(self._rng)
        if seconds > self._timeout_s:
            return Call(
                self._timeout_s, "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
            )
        return Call(seconds)
