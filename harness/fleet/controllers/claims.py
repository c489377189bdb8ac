"""Which objects an owner manages: adoption and release. kk/pkg/controller/controller_ref_manager.go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from harness.client.requests import ResourceRef
from harness.fleet.controllers.api import Steps, SyncError, call
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.podcontrol import owner_reference
from harness.fleet.controllers.views import Object, View, whole
from harness.wire.selectors import LabelSelector

V = TypeVar("V", bound=View)


def claim(
    controller: Controller,
    owner: Object,
    owner_ref: ResourceRef,
    dependent_ref: ResourceRef,
    candidates: Iterable[V],
    selector: LabelSelector,
    may_adopt: Callable[[V], bool] = lambda candidate: True,
) -> Steps[list[V]]:
    """Those of `candidates` that `owner` manages, once what matches and has no owner is adopted and what no longer
    matches is released."""
    uid = owner["metadata"]["uid"]
    going = "deletionTimestamp" in owner["metadata"]
    claimed: list[V] = []
    checked = False
    for candidate in candidates:
        manager = candidate.controller
        matches = selector.match(candidate.labels)
        if manager is not None:
            if manager.uid != uid:
                continue
            if matches:
                claimed.append(candidate)
            elif not going:
                yield from _patch(controller, dependent_ref, candidate, _released(candidate.uid, uid))
        elif matches and not going and candidate.deleted is None and may_adopt(candidate):
            if not checked:
                yield from _check_owner(controller, owner, owner_ref)
                checked = True
            yield from _patch(controller, dependent_ref, candidate, _adopted(candidate.uid, owner))
            claimed.append(candidate)
    return claimed


def _check_owner(controller: Controller, owner: Object, ref: ResourceRef) -> Steps[None]:
    """RecheckDeletionTimestamp: an uncached read, since the cache may be behind a deletion."""
    metadata = owner["metadata"]
    response = yield from call(controller.get(ref, metadata["namespace"], metadata["name"]))
    fresh = whole(response.body)["metadata"]
    if fresh["uid"] != metadata["uid"] or "deletionTimestamp" in fresh:
        raise SyncError(f"{metadata['namespace']}/{metadata['name']} has just been deleted")


def _patch(controller: Controller, ref: ResourceRef, dependent: View, body: Object) -> Steps[None]:
    yield from call(controller.patch(ref, dependent.namespace, dependent.name, body))


def _adopted(uid: str, owner: Object) -> Object:
    return {"metadata": {"ownerReferences": [owner_reference(owner)], "uid": uid}}


def _released(uid: str, owner_uid: str) -> Object:
    return {"metadata": {"uid": uid, "ownerReferences": [{"$patch": "delete", "uid": owner_uid}]}}
