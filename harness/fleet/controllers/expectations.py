"""Creations and deletions that a controller asked for and its informer has not shown yet. kk/pkg/controller/
controller_utils.go, UIDTrackingControllerExpectations."""

from __future__ import annotations

from collections.abc import Iterable

_TIMEOUT_S = 300.0  # ExpectationsTimeout


class _Expected:
    __slots__ = ("at", "creations", "deletions")

    def __init__(self, creations: int, deletions: set[str], at: float) -> None:
        self.creations = creations
        self.deletions = deletions
        self.at = at


class Expectations:
    """By the key of the owner; what an owner expects is set anew each time."""

    __slots__ = ("_expected",)

    def __init__(self) -> None:
        self._expected: dict[str, _Expected] = {}

    def expect(self, key: str, now: float, creations: int = 0, deletions: Iterable[str] = ()) -> None:
        self._expected[key] = _Expected(creations, set(deletions), now)

    def satisfied(self, key: str, now: float) -> bool:
        """Nothing is outstanding, or it has been for too long."""
        expected = self._expected.get(key)
        if expected is None or (expected.creations <= 0 and not expected.deletions):
            return True
        return now - expected.at > _TIMEOUT_S

    def created(self, key: str, count: int = 1) -> None:
        expected = self._expected.get(key)
        if expected is not None:
            expected.creations -= count

    def deleted(self, key: str, uid: str) -> None:
        expected = self._expected.get(key)
        if expected is not None:
            expected.deletions.discard(uid)

    def forget(self, key: str) -> None:
        self._expected.pop(key, None)
