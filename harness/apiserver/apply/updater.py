"""Who owns what after an update or an apply, and the object that an apply makes (smd/merge/update.go)."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.apiserver.apply.conflicts import Conflict, Conflicts
from harness.apiserver.apply.fieldset import FieldSet
from harness.apiserver.apply.managers import Manager, Managers, Owned
from harness.apiserver.apply.merging import merge
from harness.apiserver.apply.structure import ABSENT, with_structs
from harness.apiserver.apply.walks import Comparison, compare, fields_of, remove
from harness.apiserver.schema import Schema

Object = dict[str, Any]


class Updater:
    """Of one kind in one version. `ignored` are fields that an endpoint resets, so that writing them owns nothing."""

    def __init__(self, schema: Schema | None, api_version: str, ignored: FieldSet) -> None:
        self._schema = schema
        self._api_version = api_version
        self._ignored = ignored

    def update(self, live: Object, new: Object, managers: Managers) -> tuple[Managers, FieldSet]:
        """(managers without what has changed or gone, what has changed and now is the writer's). (:142)"""
        comparison = compare(live, new, self._schema).without(self._ignored)
        left = self._taken(comparison, managers, None, force=True)
        return left, comparison.modified | comparison.added

    def apply(
        self, live: Object, applied: Object, managers: Managers, manager: Manager, force: bool
    ) -> tuple[Object, Managers]:
        """(the new object, managers): `manager` owns what it applies and no more; what it alone owned before and
        does not apply any longer goes. Raises Conflicts. (:184)"""
        merged = merge(live, applied, self._schema)
        merged = {} if merged is ABSENT else merged
        last = managers.get(manager)
        owned = dict(managers)
        fields = fields_of(applied, self._schema).without(self._ignored)
        owned[manager] = Owned(fields, self._api_version, last.time if last is not None else "")
        if last is not None and last.fields - fields:  # else all that was applied still is
            merged = self._pruned(merged, owned, last.fields) or {}
        comparison = compare(live, merged, self._schema).without(self._ignored)
        return merged, self._taken(comparison, owned, manager, force)

    def _taken(self, comparison: Comparison, managers: Managers, by: Manager | None, force: bool) -> Managers:
        """`managers` without what `by` takes from the others, and without those who own nothing. Raises Conflicts
        where that is not forced. (:75)"""
        changed = comparison.modified | comparison.added
        left: Managers = {}
        found: list[Conflict] = []
        for manager in sorted(managers):
            owned = managers[manager]
            fields = owned.fields
            if manager != by:
                lost = fields & changed
                if lost and not force:
                    found += [Conflict(manager, path) for path in lost]
                fields = fields - lost - comparison.removed
            if fields:
                left[manager] = msgspec.structs.replace(owned, fields=fields)
        if found:
            raise Conflicts(found)
        return left

    def _pruned(self, merged: Object, managers: Managers, last: FieldSet) -> Object:
        """`merged` without what was applied before and nobody owns now (:236)."""
        schema = self._schema
        gone = with_structs(last, schema)
        everything = with_structs(fields_of(merged, schema), schema)
        pruned = remove(merged, gone, schema)
        kept = self._fields(pruned)
        owned = FieldSet()
        for entry in managers.values():
            owned |= entry.fields
        pruned = remove(merged, everything - (kept | with_structs(owned, schema)), schema)
        dangling = (everything - self._fields(pruned)) & gone
        result: Object = remove(merged, dangling, schema)
        return result

    def _fields(self, value: Any) -> FieldSet:
        return with_structs(fields_of(value, self._schema), self._schema)
