"""What the informers and listers of one process count, beside what is measured in samples."""

from __future__ import annotations

_SINCE_TAKEN = ("bytes", "events", "expired", "objects", "restarts", "resynced", "syncs")


class Tally:
    """Since `take`; `objects_ever` and `bytes_ever` since the process began. `objects` are those of whole states, by
    watch-list or list; `bytes` are of bodies as they come out of the transport; `expired` counts what was refused or
    ended because a revision is gone (410)."""

    __slots__ = (*_SINCE_TAKEN, "_bytes_before", "_objects_before")

    def __init__(self) -> None:
        self.bytes = self.events = self.expired = self.objects = 0
        self.restarts = self.resynced = self.syncs = 0
        self._bytes_before = self._objects_before = 0

    @property
    def bytes_ever(self) -> int:
        return self._bytes_before + self.bytes

    @property
    def objects_ever(self) -> int:
        return self._objects_before + self.objects

    def take(self) -> dict[str, int]:
        """What is not 0; counted anew from here."""
        self._bytes_before, self._objects_before = self.bytes_ever, self.objects_ever
        found = {name: getattr(self, name) for name in _SINCE_TAKEN if getattr(self, name)}
        for name in found:
            setattr(self, name, 0)
        return found
