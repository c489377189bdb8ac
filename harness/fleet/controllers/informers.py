"""One informer for each resource, shared by all controllers, as kube-controller-manager's factory shares them.

An event is decoded and stored once; then each subscriber hears of it, in the order of subscription. Pods are indexed in
buckets of one namespace, owner and set of labels: a ReplicaSet's pods are one bucket, a service's a few, and neither
lookup goes over the other pods of the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, TypeAlias

from harness.client.machine import Event
from harness.client.reflector import Reflector
from harness.client.requests import PODS, ResourceRef
from harness.client.store import Change, Changed
from harness.fleet.context import Out
from harness.fleet.controllers.views import DECODERS, PodView, View, decode_whole

CLIENT = "shared-informers"
Subscriber: TypeAlias = Callable[[Change, Any, Any], None]
"""Called with the change (never REPLACED), the object, and what was there before or None."""
_Bucket: TypeAlias = dict[str, PodView]
_BucketKey: TypeAlias = tuple[str, str, int]


class Informer:
    """A reflector, its subscribers, and indexes by namespace and by owner."""

    def __init__(self, ref: ResourceRef, rng: Random, *, metadata_only: bool = False) -> None:
        decode = DECODERS.get(ref.resource, decode_whole)
        if metadata_only:
            decode = DECODERS["metadata"]
        self.ref = ref
        self.reflector = Reflector(
            ("informer", str(ref)), ref, None, "", "", rng, decode=decode, client=CLIENT
        )
        self.subscribers: list[Subscriber] = []
        self._by_namespace: dict[str, dict[str, Any]] = {}
        self._by_owner: dict[str, dict[str, Any]] = {}

    def __repr__(self) -> str:
        return f"Informer({self.ref}, objects={len(self.reflector.store)}, synced={self.synced})"

    @property
    def synced(self) -> bool:
        return self.reflector.synced

    def get(self, key: str) -> Any:
        """The object ``namespace/name`` (or ``name``), None if there is none."""
        return self.reflector.store.get(key)

    def all(self) -> Iterable[Any]:
        return self.reflector.store.values()

    def in_namespace(self, namespace: str) -> list[Any]:
        return list(self._by_namespace.get(namespace, {}).values())

    def owned_by(self, uid: str) -> list[Any]:
        """Objects that name `uid` as an owner, managing or not."""
        return list(self._by_owner.get(uid, {}).values())

    def orphans_in(self, namespace: str) -> list[Any]:
        """Objects of the namespace that no controller manages."""
        return [each for each in self.in_namespace(namespace) if each.controller is None]

    def handle(self, event: Event, now: float, out: Out) -> None:
        for output in self.reflector.handle(event, now):
            if type(output) is Changed:
                self._changed(output)
            else:
                out.append(output)  # type: ignore[arg-type]

    def start(self, now: float, out: Out) -> None:
        out.extend(self.reflector.start(now))  # type: ignore[arg-type]  # nothing has changed yet

    def stop(self, now: float, out: Out) -> None:
        out.extend(self.reflector.stop(now))  # type: ignore[arg-type]

    def _changed(self, changed: Changed) -> None:
        change, new, old = changed.change, changed.object, changed.old
        if change is Change.REPLACED:
            return
        if old is not None:
            self._forget(old)
        if change is not Change.DELETED:
            self._remember(new)
        if old is not None and old.uid != new.uid:  # a watch that missed the deletion in between
            self._tell(Change.DELETED, old, old)
            change, old = Change.ADDED, None
        self._tell(change, new, old)

    def _tell(self, change: Change, new: Any, old: Any) -> None:
        for subscriber in self.subscribers:
            subscriber(change, new, old)

    def _remember(self, obj: View) -> None:
        key = obj.key
        self._by_namespace.setdefault(obj.namespace, {})[key] = obj
        for owner in obj.owners:
            self._by_owner.setdefault(owner.uid, {})[key] = obj

    def _forget(self, obj: View) -> None:
        key = obj.key
        _drop(self._by_namespace, obj.namespace, key)
        for owner in obj.owners:
            _drop(self._by_owner, owner.uid, key)


class PodInformer(Informer):
    """Pods in buckets; see the module."""

    def __init__(self, rng: Random) -> None:
        super().__init__(PODS, rng)
        self._buckets: dict[_BucketKey, _Bucket] = {}
        self._of_namespace: dict[str, dict[_BucketKey, _Bucket]] = {}
        self._of_owner: dict[str, dict[_BucketKey, _Bucket]] = {}

    def in_namespace(self, namespace: str) -> list[PodView]:
        return list(_pods(self._of_namespace.get(namespace, {}).values()))

    def selected(self, namespace: str, matches: Callable[[dict[str, str]], bool]) -> list[PodView]:
        """Pods of the namespace whose labels match; asked once for each set of labels."""
        buckets = self._of_namespace.get(namespace, {}).values()
        return list(_pods(each for each in buckets if matches(next(iter(each.values())).labels)))

    def owned_by(self, uid: str) -> list[PodView]:
        found = list(_pods(self._of_owner.get(uid, {}).values()))
        return found + list(self._by_owner[uid].values()) if uid in self._by_owner else found

    def orphans_in(self, namespace: str) -> list[PodView]:
        buckets = self._of_namespace.get(namespace, {})
        return list(_pods(each for (_, owner, _), each in buckets.items() if not owner))

    def _remember(self, obj: View) -> None:
        assert isinstance(obj, PodView)
        key, owner = _bucket_key(obj)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = {}
            self._of_namespace.setdefault(obj.namespace, {})[key] = bucket
            if owner:
                self._of_owner.setdefault(owner, {})[key] = bucket
        bucket[obj.name] = obj
        for each in obj.owners:
            if each.uid != owner:
                self._by_owner.setdefault(each.uid, {})[obj.key] = obj

    def _forget(self, obj: View) -> None:
        assert isinstance(obj, PodView)
        key, owner = _bucket_key(obj)
        bucket = self._buckets.get(key)
        if bucket is None or bucket.pop(obj.name, None) is None:
            return
        if not bucket:
            del self._buckets[key]
            _drop(self._of_namespace, obj.namespace, key)
            if owner:
                _drop(self._of_owner, owner, key)
        for each in obj.owners:
            if each.uid != owner:
                _drop(self._by_owner, each.uid, obj.key)


def _bucket_key(pod: PodView) -> tuple[_BucketKey, str]:
    """Equal sets of labels are one object (`shared_labels`), so its identity stands for them."""
    owner = ""
    for each in pod.owners:
        if each.controller:
            owner = each.uid
    return (pod.namespace, owner, id(pod.labels)), owner


def _pods(buckets: Iterable[_Bucket]) -> Iterator[PodView]:
    for bucket in buckets:
        yield from bucket.values()


def _drop(index: dict[str, dict[Any, Any]], group: str, key: Any) -> None:
    members = index.get(group)
    if members is not None:
        members.pop(key, None)
        if not members:
            del index[group]
