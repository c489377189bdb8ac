"""Secrets and configmaps that a kubelet's pods use: one reflector for each, counted by reference.

kk/pkg/kubelet/util/manager/watch_based_manager.go. The watch starts when the first pod that refers to the object is
registered and ends with the last one. Reading waits for the reflector's first sync, up to 1 s. A watch is also stopped
at the 60 s recycle tick if nothing read the object for long (the next read starts it again, from the last
resourceVersion), and for good once an object that was read turns out to be immutable.
"""

from __future__ import annotations

from enum import Enum
from typing import cast

import msgspec

from harness.client.machine import Answered, Arm, Disarm, Event
from harness.client.reflector import Output, Reflector
from harness.client.requests import CONFIGMAPS, SECRETS
from harness.client.store import Changed, Decode, ObjectView
from harness.fleet.context import Context, Out
from harness.fleet.firstreads import refusal
from harness.fleet.pods import Ref
from harness.fleet.sharing import shared_decode

PART = "objects"
_RESOURCES = {"secrets": SECRETS, "configmaps": CONFIGMAPS}


class _ObjectView(ObjectView):
    immutable: bool = False


_decode: Decode = shared_decode(_ObjectView)


class Read(Enum):
    """What reading an object gives."""

    FOUND = "found"
    MISSING = "not found"
    UNSYNCED = "not synced yet"


class _Item(msgspec.Struct, gc=False, eq=False):
    """`readers`: uids of pods that wait for the first sync; `answered_by`: the member that gave the last list, or
    refused, and `refused_at` when it last did so by 403 before the first sync."""

    reflector: Reflector
    count: int = 1
    last_read: float = -1e9  # never: an object that nobody read is stopped at the first recycle tick
    stopped: bool = False
    immutable: bool = False
    refused_at: float = -1.0
    answered_by: str = ""
    readers: list[str] | None = None


class ObjectCache:
    """Keys of its reflectors begin with the `Ref`; its own timer is ("objects", "recycle")."""

    __slots__ = ("_context", "_items", "_ticking")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._items: dict[Ref, _Item] = {}
        self._ticking = False

    def __len__(self) -> int:
        return len(self._items)

    @property
    def open_watches(self) -> int:
        """Objects whose reflector runs."""
        return sum(not item.stopped for item in self._items.values())

    @property
    def references(self) -> dict[Ref, int]:
        """How many pods refer to each object."""
        return {ref: item.count for ref, item in self._items.items()}

    def add(self, ref: Ref, now: float, out: Out) -> None:
        """One more pod refers to `ref`."""
        item = self._items.get(ref)
        if item is not None:
            item.count += 1
            return
        resource, namespace, name = ref
        reflector = Reflector(
            ref,
            _RESOURCES[resource],
            namespace,
            "",
            "",
            self._context.rng,
            timeout_range_s=self._context.options.object_watch_timeout_s,
            decode=_decode,
            watch_list=self._context.options.watch_list,
            follow_one_of=self._context.options.follow_one_of,
            name=name,
        )
        self._items[ref] = item = _Item(reflector)
        _pass_on(reflector.start(now), out)
        if not self._ticking:
            self._tick(now, out)

    def release(self, ref: Ref, now: float, out: Out) -> None:
        """One pod fewer refers to `ref`; the last one ends the watch."""
        item = self._items[ref]
        item.count -= 1
        if item.count == 0:
            del self._items[ref]
            self._stop(item, now, out)

    def read(self, ref: Ref, now: float, out: Out) -> Read:
        """As a pod's volume or environment does; needs a reference."""
        item = self._items[ref]
        item.last_read = now
        if item.stopped and not item.immutable:
            item.stopped = False
            _pass_on(item.reflector.start(now), out)
        if not (item.reflector.synced or item.immutable):
            return Read.UNSYNCED
        _, namespace, name = ref
        found = item.reflector.store.get(f"{namespace}/{name}")
        if found is None:
            return Read.MISSING
        if found.immutable and not item.immutable:
            item.immutable = True
            self._stop(item, now, out)
        return Read.FOUND

    def source_of(self, ref: Ref) -> tuple[str, float]:
        """The member that the object comes from, and when it was last refused by 403 before its first sync; -1 for
        never."""
        item = self._items[ref]
        return item.reflector.member or item.answered_by, item.refused_at

    def synced(self, ref: Ref) -> bool:
        """Whether reading it would not have to wait."""
        item = self._items[ref]
        return item.reflector.synced or item.immutable

    def wait(self, ref: Ref, uid: str) -> None:
        """Have `uid` among those that `handle` returns once `ref` is synced."""
        item = self._items[ref]
        if uid not in (item.readers or ()):
            item.readers = [*(item.readers or ()), uid]

    def handle(self, event: Event, now: float, out: Out) -> list[str]:
        """Take an event of a reflector; returns the pods whose waiting ended."""
        ref = event.key[0]
        if ref == PART:
            self._recycle(now, out)
            return []
        item = self._items.get(cast(Ref, ref))
        if item is None:
            return []
        if isinstance(event, Answered):
            item.answered_by = event.response.member
            if event.response.status == 403 and not item.reflector.synced:
                item.refused_at = now
                out.append(refusal(item.reflector.spec.resource.resource, item.answered_by))
        _pass_on(item.reflector.handle(event, now), out)
        if item.readers is None or not item.reflector.synced:
            return []
        readers: list[str] = item.readers
        item.readers = None
        return readers

    def stop(self, now: float, out: Out) -> None:
        """End every watch."""
        for item in self._items.values():
            self._stop(item, now, out)
        self._items.clear()
        self._halt(out)

    # ---- inner -------------------------------------------------------------------------------------------------------
    def _stop(self, item: _Item, now: float, out: Out) -> None:
        if item.stopped:
            return
        item.stopped = True
        _pass_on(item.reflector.stop(now), out)

    def _tick(self, now: float, out: Out) -> None:
        self._ticking = True
        out.append(Arm((PART, "recycle"), self._context.next_tick(self._context.options.recycle_s, now)))

    def _halt(self, out: Out) -> None:
        if self._ticking:
            self._ticking = False
            out.append(Disarm((PART, "recycle")))

    def _recycle(self, now: float, out: Out) -> None:
        """Stop what is synced and was not read for long; an unsynced reflector would lose its work."""
        self._ticking = False
        idle_s = self._context.options.idle_s
        for item in self._items.values():
            if item.reflector.synced and not item.stopped and now - item.last_read > idle_s:
                self._stop(item, now, out)
        if self._items:
            self._tick(now, out)


def _pass_on(actions: list[Output], out: Out) -> None:
    """All but the changes of the store: what is in it is looked up when it is read."""
    for action in actions:
        if not isinstance(action, Changed):
            out.append(action)


def sync_timeout(ref: Ref) -> str:
    """The error of a read that waited in vain."""
    return f"failed to sync {ref[0][:-1]} cache: timed out waiting for the condition"


def not_found(ref: Ref) -> str:
    """The error of reading an object that is not there."""
    return f'{ref[0][:-1]} "{ref[2]}" not found'
