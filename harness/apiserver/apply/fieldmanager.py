"""Upstream's chain of field managers as one class (am/util/managedfields/internal/fieldmanager.go:44): what apply and
every other write make of an object's managedFields.

An object that nobody has applied has none: tracking costs each write tens of microseconds and each object as many bytes
again, so here, unlike upstream's default of 1, no create is tracked unless it brings managedFields along
(`NewProbabilisticSkipNonAppliedManager` with a probability of 0). Whatever is there at the first apply then belongs to
``before-first-apply``, as for upstream's own untracked objects.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.apiserver.apierrors import bad_request, unclassified
from harness.apiserver.apply import lastapplied
from harness.apiserver.apply.conflicts import Conflicts
from harness.apiserver.apply.encoding import FieldsError
from harness.apiserver.apply.fieldset import FieldSet
from harness.apiserver.apply.managers import (
    APPLY,
    UPDATE,
    Manager,
    Managers,
    Owned,
    decode,
    encode,
    is_reset,
    manager_for,
    seconds_of,
)
from harness.apiserver.apply.structure import ShapeError
from harness.apiserver.apply.updater import Updater
from harness.apiserver.apply.walks import check
from harness.apiserver.apply.zero import zero_object
from harness.apiserver.schema import Schema
from harness.wire.status import StatusError

Object = dict[str, Any]
MAX_UPDATERS = 10  # fieldmanager.go: DefaultMaxUpdateManagers
_ANCIENT = "ancient-changes"
_BEFORE = "before-first-apply"
# Never part of managedFields (stripmeta.go:38).
_STRIPPED = FieldSet.of(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", "f:" + name)
        for name in (
            *("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName"),
            *("generation", "managedFields", "resourceVersion"),
        )
    ),
)


class FieldManager:
    """Of one endpoint: a kind in a version, and a subresource or "". `ignored` are the fields that it resets.

    Objects are JSON values; they are not changed, but for metadata where a method says so. `now` is RFC 3339.
    """

    def __init__(
        self, api_version: str, kind: str, schema: Schema | None, subresource: str, ignored: FieldSet
    ) -> None:
        self._api_version = api_version
        self._group = api_version.rpartition("/")[0]
        self._kind = kind
        self._schema = schema
        self._subresource = subresource
        self._updater = Updater(schema, api_version, ignored)

    # ---- update ----------------------------------------------------------------------------------------------------
    def update(self, live: Object | None, new: Object, name: str, now: str) -> None:
        """Set metadata.managedFields of `new`, which `name` writes over `live` (None: nothing); never fails."""
        metadata = new["metadata"]
        if live is not None:  # whose it may be
            metadata = new["metadata"] = dict(metadata)
        sent = metadata.pop("managedFields", None)
        kept = live["metadata"].get("managedFields") if live is not None else None
        try:
            managers = self._managers(kept, sent)
            if managers:  # else: reset, or never applied
                before = zero_object(self._schema) if live is None else _bare(live)
                manager = manager_for(name, UPDATE, self._api_version, self._subresource)
                managers = _capped(self._updated(before, _bare(new), managers, manager, now))
        except ShapeError:  # UpdateNoErrors (:131): what was there stays
            if kept:
                metadata["managedFields"] = kept
            return
        if managers:
            metadata["managedFields"] = encode(managers)

    def _managers(self, kept: Any, sent: Any) -> Managers:
        """Those that the client sent, where these are any and can be read; a subresource cannot change them (:80)."""
        if not self._subresource:
            if is_reset(sent):
                return {}
            try:
                found = decode(sent)
            except FieldsError:
                found = {}
            if found:
                return self._known(found)
        try:
            return self._known(decode(kept))
        except FieldsError:
            return {}

    def _known(self, managers: Managers) -> Managers:
        """Those of this kind's group: of other versions nobody can tell the fields (update.go:97)."""
        return {
            manager: owned
            for manager, owned in managers.items()
            if owned.api_version.rpartition("/")[0] == self._group
        }

    def _updated(self, live: Object, new: Object, managers: Managers, manager: Manager, now: str) -> Managers:
        left, changed = self._updater.update(live, new, managers)
        changed = changed - _STRIPPED
        if changed:
            before = left.get(manager)
            fields = changed if before is None else before.fields | changed
            left[manager] = Owned(fields, self._api_version, now)
        return left

    # ---- apply -----------------------------------------------------------------------------------------------------
    def apply(self, live: Object | None, applied: Object, name: str, force: bool, now: str) -> Object:
        """The object that applying makes of `live`, managedFields included. Raises StatusError."""
        self._check(applied)
        before: Object = {} if live is None else _bare(live)
        managers = self._managers_of(live)
        try:
            if not managers and live is not None:
                first = manager_for(_BEFORE, UPDATE, self._api_version, self._subresource)
                managers = self._updated(zero_object(self._schema), before, {}, first, now)
            new, managers = self._applied(before, applied, managers, name, force, now)
        except Conflicts as conflicts:
            raise StatusError(conflicts.status()) from None
        except ShapeError as error:
            raise unclassified(f"failed to create typed live object: {error}") from None
        metadata = dict(new.get("metadata") or {})
        if name == lastapplied.KUBECTL:
            lastapplied.synchronize(metadata, applied)
        if managers:
            metadata["managedFields"] = encode(managers)
        return {**new, "metadata": metadata}

    def _check(self, applied: Object) -> None:
        """Raises StatusError for an object of another kind, or one that does not fit its schema."""
        version, kind = (_text(applied.get(key)) for key in ("apiVersion", "kind"))
        if (version, kind) != (self._api_version, self._kind):
            shown = version if "/" in version else f"/{version}"
            raise bad_request(f"invalid object type: {shown}, Kind={kind}")
        metadata = applied.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        try:
            check(applied, self._schema)
        except ShapeError as error:
            metadata = metadata if isinstance(metadata, dict) else {}
            about = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {version}, Kind={kind}"
            raise unclassified(f"failed to create typed patch object ({about}): {error}") from None

    def _managers_of(self, live: Object | None) -> Managers:
        kept = None if live is None else live["metadata"].get("managedFields")
        try:
            return self._known(decode(kept))
        except FieldsError as error:
            raise unclassified(f"failed to decode managed fields: {error}") from None

    def _applied(
        self, live: Object, applied: Object, managers: Managers, name: str, force: bool, now: str
    ) -> tuple[Object, Managers]:
        manager = manager_for(name, APPLY, self._api_version, self._subresource)
        try:
            new, managers = self._updater.apply(live, applied, managers, manager, force)
        except Conflicts as conflicts:
            if name != lastapplied.KUBECTL:
                raise
            left = lastapplied.conflicts_left(conflicts, live, self._schema, self._api_version)
            if left is not None:
                raise left from None
            new, managers = self._updater.apply(live, applied, managers, manager, True)
        owned = managers.get(manager)
        if owned is not None:
            fields = owned.fields - _STRIPPED
            if fields:
                time = owned.time if new == live else now
                managers[manager] = msgspec.structs.replace(owned, fields=fields, time=time)
            else:
                del managers[manager]
        return new, managers


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def settle_times(new: Object, old: Object) -> None:
    """Put back the times of managedFields in `new` where nothing but these differs from `old`, so that a write which
    changes nothing stays none (as/endpoints/handlers/fieldmanager/equality.go:109)."""
    entries, before = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not entries or not before or len(entries) != len(before) or entries == before:
        return
    if list(map(_timeless, entries)) == list(map(_timeless, before)) and _bare(new) == _bare(old):
        new["metadata"]["managedFields"] = before


def _timeless(entry: Object) -> Object:
    return {key: value for key, value in entry.items() if key != "time"}


def _bare(obj: Object) -> Object:
    """The object without managedFields and resourceVersion."""
    metadata = obj["metadata"]
    kept = {key: value for key, value in metadata.items() if key not in ("managedFields", "resourceVersion")}
    return {**obj, "metadata": kept}


def _capped(managers: Managers) -> Managers:
    """The oldest updaters of a version as one, where there are more than `MAX_UPDATERS` (capmanagers.go:69)."""
    updaters = [manager for manager in managers if manager.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managers
    updaters.sort(key=lambda manager: (seconds_of(managers[manager].time), manager))
    left = dict(managers)
    firsts: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            break
        owned = managers[manager]
        version = owned.api_version
        first = firsts.setdefault(version, manager)
        if first is manager:
            continue
        bucket = Manager(_ANCIENT, UPDATE, version)
        if bucket not in left:
            left[bucket] = left.pop(first)
        left[bucket] = msgspec.structs.replace(owned, fields=owned.fields | left[bucket].fields)
        if manager != bucket:
            del left[manager]
        excess -= 1
    return left
