"""What a DELETE does to an object: remove it, mark it and wait, or nothing more (as/registry/rest/delete.go:74,
as/registry/generic/registry/store.go:1000-1180)."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from harness.apiserver.apierrors import conflict
from harness.apiserver.resources import Resource
from harness.apiserver.strategies import Strategy
from harness.wire.rfc3339 import parse, seconds

Object = dict[str, Any]


class Verdict(Enum):
    """REMOVE at once; MARK as being deleted and wait; MARK_AND_REMOVE: both in a row, when a grace period is 0;
    PENDING: it is being deleted already."""

    REMOVE = 1
    MARK = 2
    MARK_AND_REMOVE = 3
    PENDING = 4


class Deletion(msgspec.Struct, frozen=True, gc=False):
    """What was asked for: `grace_s` None is the object's own; `uid` and `resource_version` are preconditions."""

    grace_s: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: str = ""

    def check(self, resource: Resource, old: Object, revision: int) -> None:
        """Raises StatusError 409 where a precondition does not hold."""
        meta = old["metadata"]
        name = meta["name"]
        if self.uid is not None and self.uid != meta.get("uid"):
            raise conflict(
                resource.group,
                resource.kind,
                name,
                f"the UID in the precondition ({self.uid}) does not match the UID in record ({meta.get('uid')}). "
                "The object might have been deleted and then recreated",
            )
        if self.resource_version is not None and self.resource_version != str(revision):
            raise conflict(
                resource.group,
                resource.kind,
                name,
                f"the ResourceVersion in the precondition ({self.resource_version}) does not match the "
                f"ResourceVersion in record ({revision}). The object might have been modified",
            )

    def decide(
        self, resource: Resource, strategy: Strategy, old: Object, wall_s: float
    ) -> tuple[Verdict, Object | None]:
        """The verdict and the object as it is then to be written (None with REMOVE and PENDING). May change `old`."""
        if resource.kind == "Namespace" and not resource.group:
            return _namespace(old, wall_s)
        if strategy.graceful:
            return self._graceful(strategy, old, wall_s)
        meta = old["metadata"]
        wanted = _FINALIZERS.get(self.propagation)
        if wanted and wanted not in (meta.get("finalizers") or ()):
            meta["finalizers"] = [*(meta.get("finalizers") or ()), wanted]
        if not meta.get("finalizers"):
            return Verdict.REMOVE, None
        if "deletionTimestamp" in meta:
            return Verdict.PENDING, None
        meta["deletionTimestamp"] = seconds(wall_s)
        meta["deletionGracePeriodSeconds"] = 0
        return Verdict.MARK, old

    def _graceful(self, strategy: Strategy, old: Object, wall_s: float) -> tuple[Verdict, Object | None]:
        meta = old["metadata"]
        if "deletionTimestamp" in meta:
            before = meta.get("deletionGracePeriodSeconds")
            if before is None or self.grace_s is None or self.grace_s >= before:
                return Verdict.PENDING, None
            grace = self.grace_s
            meta["deletionTimestamp"] = seconds(parse(meta["deletionTimestamp"]) - before + grace)
        else:
            requested = strategy.grace_s(old, self.grace_s)
            assert requested is not None
            grace = requested
            meta["deletionTimestamp"] = seconds(wall_s + grace)
            if meta.get("generation", 0) > 0:
                meta["generation"] += 1
        meta["deletionGracePeriodSeconds"] = grace
        if grace > 0 or meta.get("finalizers"):
            return Verdict.MARK, old
        return Verdict.MARK_AND_REMOVE, old


# Set by a deletion's propagationPolicy for the garbage collector (store.go deletionFinalizersForGarbageCollection).
_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def _namespace(old: Object, wall_s: float) -> tuple[Verdict, Object | None]:
    """kk/pkg/registry/core/namespace/storage/storage.go Delete: Terminating until spec.finalizers are gone."""
    meta = old["metadata"]
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = seconds(wall_s)
        old.setdefault("status", {})["phase"] = "Terminating"
        return Verdict.MARK, old
    if (old.get("spec") or {}).get("finalizers") or meta.get("finalizers"):
        return Verdict.PENDING, None
    return Verdict.REMOVE, None


def due_during_update(resource: Resource, new: Object) -> bool:
    """Whether an update takes the last finalizer from an object that only waited for it (store.go:620)."""
    meta = new["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if resource.kind == "Namespace" and not resource.group:
        return not (new.get("spec") or {}).get("finalizers")
    return not meta.get("deletionGracePeriodSeconds")
