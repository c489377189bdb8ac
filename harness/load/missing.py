"""How long a client was without some of the watches that it had: from the first loss until all are open again.

A watch is open when it was answered 2xx. What lies between may be a dial, refusals, a backoff, a list. A reflector that
is stopped meanwhile wants its watch no more; it cancels what it has under way, or disarms its backoff, and both carry
its prefix.
"""

from __future__ import annotations

from harness.client.machine import Key, Sample

MISSING = "watches_missing_ms"
LEFT = "watches_left_missing"


class MissingWatches:
    """From the first loss on; `lost` follows at once. It is over when one of the others says True."""

    __slots__ = ("_broken", "_keys", "_since")

    def __init__(self, now: float) -> None:
        self._since = now
        self._broken = False
        self._keys: set[Key] = set()

    def lost(self, key: Key, broken: bool) -> None:
        """`broken`: by its connection, not by an end that the server sent."""
        self._keys.add(key)
        self._broken = self._broken or broken

    def opened(self, key: Key) -> bool:
        """Whether none is missing now."""
        self._keys.discard(key)
        return not self._keys

    def given_up(self, key: Key) -> bool:
        """Something of the same owner was cancelled or disarmed; whether none is missing now."""
        prefix = key[0]
        self._keys = {missing for missing in self._keys if missing[0] != prefix}
        return not self._keys

    def sample(self, now: float) -> Sample:
        return Sample(MISSING, (now - self._since) * 1e3, self._labels)

    def left(self) -> Sample:
        """The client is stopped without having got all back."""
        return Sample(LEFT, 1.0, self._labels)

    @property
    def _labels(self) -> tuple[tuple[str, str], ...]:
        return (("why", "lost" if self._broken else "ended"),)
