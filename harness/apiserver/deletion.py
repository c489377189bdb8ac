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
            return self._namespace(strategy, old, wall_s)
        if strategy.graceful:
            return self._graceful(strategy, old, wall_s)
        return self._at_once(strategy, old, wall_s)

    def _at_once(self, strategy: Strategy, old: Object, wall_s: float) -> tuple[Verdict, Object | None]:
        """Without a grace period: finalizers alone can hold the object."""
        meta = old["metadata"]
        changed = self._set_finalizers(meta, strategy)
        if "deletionTimestamp" not in meta and strategy.begin_deletion(old, seconds(wall_s)):
            _mark(meta, wall_s)
            return Verdict.MARK, old
        if not meta.get("finalizers"):
            return Verdict.REMOVE, None
        if "deletionTimestamp" in meta and parse(meta["deletionTimestamp"]) <= wall_s and not changed:
            return Verdict.PENDING, None
        _mark(meta, wall_s)
        return Verdict.MARK, old

    def _graceful(self, strategy: Strategy, old: Object, wall_s: float) -> tuple[Verdict, Object | None]:
        meta = old["metadata"]
        wanted = self.grace_s if self.grace_s is None or self.grace_s >= 0 else 1
        if "deletionTimestamp" in meta:
            before = meta.get("deletionGracePeriodSeconds")
            if not before:
                return self._at_once(strategy, old, wall_s)
            if wanted is None or wanted >= before:
                return Verdict.PENDING, None
            grace, due = wanted, parse(meta["deletionTimestamp"]) - before + wanted
            if due < wall_s:  # it has passed already: the shortest, but still one (rest/delete.go:137)
                grace, due = min(grace, 1), wall_s
        else:
            requested = strategy.grace_s(old, wanted)
            assert requested is not None
            grace, due = requested, wall_s + requested
            if meta.get("generation", 0) > 0:
                meta["generation"] += 1
        meta["deletionTimestamp"] = seconds(due)
        meta["deletionGracePeriodSeconds"] = grace
        self._set_finalizers(meta, strategy)
        if grace > 0 or meta.get("finalizers"):
            return Verdict.MARK, old
        return Verdict.MARK_AND_REMOVE, old

    def _namespace(self, strategy: Strategy, old: Object, wall_s: float) -> tuple[Verdict, Object | None]:
        """kk/pkg/registry/core/namespace/storage/storage.go Delete: Terminating until spec.finalizers are gone."""
        meta = old["metadata"]
        if "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = seconds(wall_s)
            old.setdefault("status", {})["phase"] = "Terminating"
            self._set_finalizers(meta, strategy)
            return Verdict.MARK, old
        if (old.get("spec") or {}).get("finalizers") or meta.get("finalizers"):
            return Verdict.PENDING, None
        return Verdict.REMOVE, None

    def _set_finalizers(self, meta: Object, strategy: Strategy) -> bool:
        """Set those for the garbage collector as the policy has it; whether that changes any (store.go:1048)."""
        before = meta.get("finalizers") or []
        policy = self.propagation or _kept_policy(meta) or ("Orphan" if strategy.orphans else "")
        wanted = _FINALIZERS.get(policy)
        after = [item for item in before if item not in _FINALIZERS.values()] + ([wanted] if wanted else [])
        if set(before) == set(after):
            return False
        meta["finalizers"] = after
        return True


# Set by a deletion's propagationPolicy for the garbage collector (store.go deletionFinalizersForGarbageCollection).
_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def _kept_policy(meta: Object) -> str:
    """Finalizers that are there say what is to become of dependents where the request does not."""
    for policy, finalizer in _FINALIZERS.items():
        if finalizer in (meta.get("finalizers") or ()):
            return policy
    return ""


def _mark(meta: Object, wall_s: float) -> None:
    """As being deleted, without a grace period (store.go:1083)."""
    stamp = meta.get("deletionTimestamp")
    if stamp is None and meta.get("generation", 0) > 0:
        meta["generation"] += 1
    if stamp is None or parse(stamp) > wall_s:
        meta["deletionTimestamp"] = seconds(wall_s)
    meta["deletionGracePeriodSeconds"] = 0


def due_during_update(resource: Resource, new: Object) -> bool:
    """Whether an update takes the last finalizer from an object that only waited for it (store.go:620)."""
    meta = new["metadata"]
    if "deletionTimestamp" not in meta or meta.get("finalizers"):
        return False
    if resource.kind == "Namespace" and not resource.group:
        return not (new.get("spec") or {}).get("finalizers")
    return not meta.get("deletionGracePeriodSeconds")
