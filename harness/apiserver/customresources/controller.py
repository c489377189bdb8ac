"""The controllers of definitions, which every member runs beside its handler: names are accepted, definitions
established, and objects deleted before their definition is (ae/pkg/controller/{status,establish,finalizer}).

Members of a pool may all act on one definition; the store takes what comes first, and who comes second finds nothing
left to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from copy import deepcopy

import msgspec

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.clock import Clock, sleep, spawn
from harness.apiserver.customresources.names import (
    ESTABLISHED,
    FINALIZER,
    NAMES_ACCEPTED,
    TERMINATING,
    Object,
    is_true,
    set_condition,
)
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.store.core import StoreError
from harness.apiserver.systemobjects import loopback_user
from harness.wire.status import StatusError

POLL_S = 5.0
GIVE_UP_POLLS = 12
_decode = msgspec.json.Decoder().decode
DeleteObjects = Callable[[Object], Awaitable[int]]
"""Deletes the objects of a definition; how many are left."""


class DefinitionController:
    """`definitions()` are those that the member's cache has; `delete_objects` deletes the objects of one."""

    def __init__(
        self,
        registry: Registry,
        definitions: Callable[[], Iterable[CachedObject]],
        delete_objects: DeleteObjects,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._definitions = definitions
        self._delete_objects = delete_objects
        self._clock = clock
        self._deleting: set[str] = set()

    def seen(self, definition: Object) -> None:
        """A definition is there, or has changed."""
        meta = definition["metadata"]
        if "deletionTimestamp" in meta and FINALIZER in (meta.get("finalizers") or ()):
            if meta["name"] not in self._deleting:
                self._deleting.add(meta["name"])
                spawn(self._finalize(meta["name"]))
        elif self._named(definition) is not None:
            spawn(self._update(meta["name"], self._named))
        elif self._established(definition) is not None:
            spawn(self._update(meta["name"], self._established))

    def gone(self, definition: Object) -> None:
        """Its names are free: others of its group may be waiting for them."""
        for item in self._definitions():
            other = _decode(item.body)
            if other["spec"].get("group") == definition["spec"].get("group"):
                self.seen(other)

    async def _update(self, name: str, change: Callable[[Object], Object | None]) -> bool:
        """Whether the definition has been changed, or did not need to be."""

        def changed(old: Object, revision: int) -> Object:
            return change(old) or old

        try:
            await self._registry.update(Caller(loopback_user(), name=name, subresource="status"), changed)
        except (StatusError, StoreError):
            return False
        return True

    # ---- names -------------------------------------------------------------------------------------------------
    def _named(self, definition: Object) -> Object | None:
        """The definition with the names that it gets; None where that changes nothing."""
        status = definition.get("status") or {}
        wanted, accepted = definition["spec"]["names"], status.get("acceptedNames") or {}
        if wanted == accepted:
            return None
        resources, kinds = self._taken(definition)
        names, fault = dict(accepted), ("", "")
        for field, taken in (
            ("plural", resources),
            ("singular", resources),
            ("kind", kinds),
            ("listKind", kinds),
        ):
            name = wanted.get(field, "")
            if name != accepted.get(field, "") and name in taken:
                fault = f"{field[0].upper()}{field[1:]}Conflict", f'"{name}" is already in use'
            elif name:
                names[field] = name
        used = [
            f'"{name}" is already in use'
            for name in wanted.get("shortNames") or ()
            if name in resources and name not in (accepted.get("shortNames") or ())
        ]
        if used:
            fault = "ShortNamesConflict", used[0] if len(used) == 1 else f"[{', '.join(used)}]"
        elif wanted.get("shortNames"):
            names["shortNames"] = wanted["shortNames"]
        else:
            names.pop("shortNames", None)
        names.pop("categories", None)
        if wanted.get("categories"):
            names["categories"] = wanted["categories"]
        return self._with_names(definition, names, fault)

    def _with_names(self, definition: Object, names: Object, fault: tuple[str, str]) -> Object | None:
        new, now = deepcopy(definition), self._registry.context().now
        status = new["status"] = new.get("status") or {}
        status["conditions"] = status.get("conditions") or []
        status["acceptedNames"] = names
        reason, message = fault if fault[0] else ("NoConflicts", "no conflicts found")
        set_condition(new, now, NAMES_ACCEPTED, "False" if fault[0] else "True", reason, message)
        if not is_true(new, ESTABLISHED):
            why = ("NotAccepted", "not all names are accepted")
            if not fault[0]:
                why = ("Installing", "the initial names have been accepted")
            set_condition(new, now, ESTABLISHED, "False", *why)
        return None if new == definition else new

    def _taken(self, definition: Object) -> tuple[set[str], set[str]]:
        """(names of resources, kinds) that others of the group have."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for item in self._definitions():
            other = _decode(item.body)
            if other["spec"].get("group") != definition["spec"].get("group"):
                continue
            if other["metadata"]["name"] == definition["metadata"]["name"]:
                continue
            names = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {
                names.get("plural", ""),
                names.get("singular", ""),
                *(names.get("shortNames") or ()),
            }
            kinds |= {names.get("kind", ""), names.get("listKind", "")}
        return resources - {""}, kinds - {""}

    def _established(self, definition: Object) -> Object | None:
        if not is_true(definition, NAMES_ACCEPTED) or is_true(definition, ESTABLISHED):
            return None
        new = deepcopy(definition)
        why = ("InitialNamesAccepted", "the initial names have been accepted")
        set_condition(new, self._registry.context().now, ESTABLISHED, "True", *why)
        return new

    # ---- deletion ----------------------------------------------------------------------------------------------
    async def _finalize(self, name: str) -> None:
        """Delete the objects, wait until they are gone, take the finalizer away; from the start where that fails."""
        try:
            while not await self._finalized(name):
                await sleep(self._clock, POLL_S)
        finally:
            self._deleting.discard(name)

    async def _finalized(self, name: str) -> bool:
        definition = next((_decode(item.body) for item in self._definitions() if item.name == name), None)
        if definition is None:
            return True
        if not is_true(definition, ESTABLISHED):
            outcome = ("NeverEstablished", "resource was never established")
            return await self._update(name, lambda old: self._released(old, *outcome))
        progress = ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        await self._update(name, lambda old: self._terminating(old, *progress))
        try:
            for _ in range(GIVE_UP_POLLS):
                if not await self._delete_objects(definition):
                    break
                await sleep(self._clock, POLL_S)
            else:
                return False
        except (StatusError, StoreError):
            return False
        outcome = ("InstanceDeletionCompleted", "removed all instances")
        return await self._update(name, lambda old: self._released(old, *outcome))

    def _terminating(self, old: Object, status: str, reason: str, message: str) -> Object:
        new = deepcopy(old)
        set_condition(new, self._registry.context().now, TERMINATING, status, reason, message)
        return new

    def _released(self, old: Object, reason: str, message: str) -> Object:
        new = self._terminating(old, "False", reason, message)
        finalizers = [item for item in new["metadata"].get("finalizers") or () if item != FINALIZER]
        new["metadata"]["finalizers"] = finalizers
        return new
