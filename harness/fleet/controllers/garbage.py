"""The garbage collector: what is owned goes when its owners are gone. kk/pkg/controller/garbagecollector.

Upstream keeps a graph of every object; here the informers' indexes by owner are that graph, and an owner is known where
an informer holds it under its uid. Nothing is deleted on the cache's word alone: the object is read, then each of its
owners that is not known to be absent.

Keys: ``delete|resource|namespace/name|uid`` and ``orphan|...``; an owner that no informer has seen is a key too, so
that a read decides whether it exists.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec

from harness.client import requests
from harness.client.requests import PODS, SERVICES, ResourceRef
from harness.client.store import Change
from harness.fleet.controllers.api import (
    CLAIMS,
    DAEMONSETS,
    DEPLOYMENTS,
    ENDPOINTSLICES,
    JOBS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    REVISIONS,
    STATEFULSETS,
    ApiError,
    Steps,
    call,
    call_all,
)
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.informers import Informer
from harness.fleet.controllers.views import OwnerReference, View, decode_metadata
from harness.wire.request import MERGE_PATCH

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_ABSENT = 500  # absentOwnerCache
KINDS: dict[tuple[str, str], ResourceRef] = {
    ("v1", "Pod"): PODS,
    ("v1", "Service"): SERVICES,
    ("v1", "ReplicationController"): REPLICATIONCONTROLLERS,
    ("v1", "PersistentVolumeClaim"): CLAIMS,
    ("apps/v1", "Deployment"): DEPLOYMENTS,
    ("apps/v1", "ReplicaSet"): REPLICASETS,
    ("apps/v1", "StatefulSet"): STATEFULSETS,
    ("apps/v1", "DaemonSet"): DAEMONSETS,
    ("apps/v1", "ControllerRevision"): REVISIONS,
    ("batch/v1", "Job"): JOBS,
    ("discovery.k8s.io/v1", "EndpointSlice"): ENDPOINTSLICES,
}
"""What is collected, and what counts as an owner. An object whose owner is of another kind is left alone."""


class _State(Enum):
    """What an owner is to an object: there, gone, or waiting for the object to go."""

    SOLID = "solid"
    DANGLING = "dangling"
    WAITING = "waiting"


class GarbageCollector(Controller):
    name = "generic-garbage-collector"
    workers = 20  # concurrent-gc-syncs
    qps_factor = 2.0  # each deletion takes two requests (cmd/kube-controller-manager/app/core.go)

    def subscribe(self) -> None:
        self._absent: dict[str, None] = {}
        self._owners: dict[str, Informer] = {}
        for ref in KINDS.values():
            self._owners[str(ref)] = self.watch(ref, self._subscriber(ref))

    def _subscriber(self, ref: ResourceRef) -> Callable[[Change, View, View | None], None]:
        resource = str(ref)

        def changed(change: Change, new: View, old: View | None) -> None:
            if change is Change.DELETED:
                self._gone(new)
            elif old is None or old.owners is not new.owners or old.deleted != new.deleted:
                self._seen(resource, new, old)

        return changed

    # ---- what is heard (processGraphChanges) -------------------------------------------------------------------------
    def _seen(self, resource: str, new: View, old: View | None) -> None:
        for owner in new.owners:
            if old is None or owner not in old.owners:
                self._check_owner(new.namespace, owner)
        if old is not None:
            for owner in old.owners:
                if owner not in new.owners:
                    self._unblock(old.namespace, owner)
        if new.deleted is not None and (old is None or old.deleted is None):
            if FOREGROUND in new.finalizers:
                self._add_dependents(new.uid)
                self.queue.add(_key("delete", resource, new))
            elif ORPHAN in new.finalizers:
                self.queue.add(_key("orphan", resource, new))

    def _check_owner(self, namespace: str, owner: OwnerReference) -> None:
        """An owner that nobody has seen becomes an item of its own (a virtual node)."""
        informer = self._informer_of(owner)
        if informer is not None and self._known(informer, namespace, owner) is None and self._started:
            self.queue.add(f"delete|{informer.ref}|{namespace}/{owner.name}|{owner.uid}")

    def _gone(self, obj: View) -> None:
        if self._add_dependents(obj.uid):
            self._remember_absent(obj.uid)
        for owner in obj.owners:
            self._unblock(obj.namespace, owner)

    def _unblock(self, namespace: str, owner: OwnerReference) -> None:
        """An owner that waits for its dependents has one fewer."""
        informer = self._informer_of(owner)
        if informer is not None:
            found = self._known(informer, namespace, owner)
            if found is not None and _waits(found):
                self.queue.add(_key("delete", str(informer.ref), found))

    def _add_dependents(self, uid: str) -> bool:
        found = False
        for resource, informer in self._owners.items():
            for each in informer.owned_by(uid):
                found = True
                self.queue.add(_key("delete", resource, each))
        return found

    def _remember_absent(self, uid: str) -> None:
        self._absent[uid] = None
        if len(self._absent) > _ABSENT:
            del self._absent[next(iter(self._absent))]

    def _informer_of(self, owner: OwnerReference) -> Informer | None:
        ref = KINDS.get((owner.api_version, owner.kind))
        return None if ref is None else self._owners[str(ref)]

    @staticmethod
    def _known(informer: Informer, namespace: str, owner: OwnerReference) -> View | None:
        found: View | None = lookup(informer, f"{namespace}/{owner.name}")
        return found if found is not None and found.uid == owner.uid else None

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        what, resource, name, uid = key.split("|")
        informer = self._owners[resource]
        item = lookup(informer, name)
        if item is not None and item.uid != uid:
            item = None
        if what == "orphan":
            if item is not None:
                yield from self._orphan_dependents(informer, item)
            return
        if item is not None and item.deleted is not None and not _waits(item):
            return
        if item is not None and not item.owners and not _waits(item):
            return  # a virtual owner that has been seen meanwhile
        yield from self._attempt(informer, item, name, uid)

    def _attempt(self, informer: Informer, item: View | None, key: str, uid: str) -> Steps[None]:
        """attemptToDeleteItem."""
        namespace, _, name = key.rpartition("/")
        try:
            response = yield from call(self.get(informer.ref, namespace, name))
        except ApiError as error:
            if not error.not_found:
                raise
            self._missing(uid)
            return
        live = decode_metadata(response.body)
        if live.uid != uid:
            self._missing(uid)
            return
        if item is not None and _waits(item):
            yield from self._finish_foreground(informer, item)
            return
        if not live.owners:
            return
        yield from self._judge(informer, live)

    def _missing(self, uid: str) -> None:
        """enqueueVirtualDeleteEvent."""
        if self._add_dependents(uid):
            self._remember_absent(uid)

    def _judge(self, informer: Informer, live: View) -> Steps[None]:
        """By what its owners are: solid ones keep it, without these it goes."""
        states = []
        for owner in live.owners:
            states.append((yield from self._state_of(live.namespace, owner)))
        if _State.SOLID in states:
            rest = [
                owner for owner, state in zip(live.owners, states, strict=True) if state is not _State.SOLID
            ]
            if rest:
                yield from self._drop_owners(informer, live, rest)
            return
        dependents = [each for other in self._owners.values() for each in other.owned_by(live.uid)]
        if _State.WAITING in states and dependents:
            policy = "Foreground"
        else:
            policy = "Orphan" if ORPHAN in live.finalizers else "Background"
            policy = "Foreground" if FOREGROUND in live.finalizers else policy
        request = self.delete(
            informer.ref,
            live.namespace,
            live.name,
            uid=live.uid,
            resource_version=live.resource_version,
            propagation=policy,
        )
        yield from call(request)

    def _state_of(self, namespace: str, owner: OwnerReference) -> Steps[_State]:
        """isDangling."""
        if owner.uid in self._absent:
            return _State.DANGLING
        informer = self._informer_of(owner)
        if informer is None:
            return _State.SOLID
        try:
            response = yield from call(self.get(informer.ref, namespace, owner.name))
        except ApiError as error:
            if not error.not_found:
                raise
            self._remember_absent(owner.uid)
            return _State.DANGLING
        found = decode_metadata(response.body)
        if found.uid != owner.uid:
            self._remember_absent(owner.uid)
            return _State.DANGLING
        return _State.WAITING if _waits(found) else _State.SOLID

    def _drop_owners(self, informer: Informer, obj: View, owners: list[OwnerReference]) -> Steps[None]:
        references = [{"$patch": "delete", "uid": owner.uid} for owner in owners]
        body = {"metadata": {"ownerReferences": references, "uid": obj.uid}}
        yield from call(self.patch(informer.ref, obj.namespace, obj.name, body))

    # ---- foreground and orphaning ------------------------------------------------------------------------------------
    def _finish_foreground(self, informer: Informer, item: View) -> Steps[None]:
        """processDeletingDependentsItem: the last dependent that blocks has gone, or each gets its attempt."""
        blocking = [
            (resource, each)
            for resource, other in self._owners.items()
            for each in other.owned_by(item.uid)
            if any(owner.uid == item.uid and owner.block_owner_deletion for owner in each.owners)
        ]
        if not blocking:
            yield from self._remove_finalizer(informer, item, FOREGROUND)
            return
        for resource, each in blocking:
            if not _waits(each):
                self.queue.add(_key("delete", resource, each))

    def _orphan_dependents(self, informer: Informer, owner: View) -> Steps[None]:
        """attemptToOrphanWorker: each dependent loses its owner, then the owner its finalizer."""
        patches = []
        for other in self._owners.values():
            for each in other.owned_by(owner.uid):
                references = [{"$patch": "delete", "uid": owner.uid}]
                body = {"metadata": {"ownerReferences": references, "uid": each.uid}}
                patches.append(self.patch(other.ref, each.namespace, each.name, body))
        for error in (yield from call_all(patches)):
            if error is not None and not error.not_found:
                raise error
        yield from self._remove_finalizer(informer, owner, ORPHAN)

    def _remove_finalizer(self, informer: Informer, item: View, finalizer: str) -> Steps[None]:
        """removeFinalizer: as a merge patch that a change in between makes fail."""
        try:
            response = yield from call(self.get(informer.ref, item.namespace, item.name))
        except ApiError as error:
            if error.not_found:
                return
            raise
        live = decode_metadata(response.body)
        if finalizer not in live.finalizers:
            return
        kept = [each for each in live.finalizers if each != finalizer]
        body = {"metadata": {"resourceVersion": live.resource_version, "finalizers": kept}}
        yield from call(
            requests.patch_(
                informer.ref,
                item.namespace,
                item.name,
                msgspec.json.encode(body),
                content_type=MERGE_PATCH,
                client=self.name,
            )
        )


def lookup(informer: Informer, key: str) -> View | None:
    found: View | None = informer.get(key)
    return found


def _waits(obj: View) -> bool:
    """It is deleted once its dependents are gone (isDeletingDependents)."""
    return obj.deleted is not None and FOREGROUND in obj.finalizers


def _key(what: str, resource: str, obj: View) -> str:
    return f"{what}|{resource}|{obj.key}|{obj.uid}"
