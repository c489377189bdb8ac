"""A provisioner's informers: every claim, volume and storage class of the cluster, unfiltered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import cast

from harness.client.machine import Event
from harness.client.reflector import Reflector
from harness.client.requests import (
    CSINODES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    VOLUMEATTACHMENTS,
    ResourceRef,
)
from harness.client.store import Change, Changed, Decode, NoStore
from harness.fleet.context import Out
from harness.fleet.controllers.api import STORAGECLASSES
from harness.fleet.controllers.views import Object, View, WholeView, decode_metadata, decode_whole, whole
from harness.fleet.provisioners.options import ProvisionerOptions

CLAIMS, VOLUMES, CLASSES = ("informer", "claims"), ("informer", "volumes"), ("informer", "classes")
Listener = Callable[[Change, View], None]


class Caches:
    """`listeners` hear of changes, by the key of the informer. Keys: (("informer", name), part)."""

    def __init__(
        self, options: ProvisionerOptions, rng: Random, listeners: Mapping[tuple[str, str], Listener]
    ) -> None:
        self._listeners = listeners
        self._reflectors: dict[Hashable, Reflector] = {}

        def add(key: tuple[str, str], ref: ResourceRef, decode: Decode = decode_metadata) -> None:
            store = None if decode is decode_whole else NoStore()
            self._reflectors[key] = Reflector(
                key, ref, None, "", "", rng, decode=decode, watch_list=options.watch_list, store=store
            )

        add(CLAIMS, PERSISTENTVOLUMECLAIMS, decode_whole)
        add(VOLUMES, PERSISTENTVOLUMES, decode_whole)
        add(CLASSES, STORAGECLASSES, decode_whole)
        if options.second_classes:
            add(("informer", "library's classes"), STORAGECLASSES)
        if options.topology:
            add(("informer", "nodes"), NODES)
            add(("informer", "csinodes"), CSINODES)
        if options.publish:
            add(("informer", "attachments"), VOLUMEATTACHMENTS)

    @property
    def synced(self) -> bool:
        return all(reflector.synced for reflector in self._reflectors.values())

    def start(self, now: float, out: Out) -> None:
        for reflector in self._reflectors.values():
            out.extend(reflector.start(now))  # type: ignore[arg-type]  # nothing has changed yet

    def stop(self, now: float, out: Out) -> None:
        for reflector in self._reflectors.values():
            out.extend(reflector.stop(now))  # type: ignore[arg-type]

    def handle(self, event: Event, now: float, out: Out) -> None:
        key = cast(tuple[str, str], event.key[0])
        for output in self._reflectors[key].handle(event, now):
            if not isinstance(output, Changed):
                out.append(output)
            elif output.change is not Change.REPLACED and key in self._listeners:
                self._listeners[key](output.change, output.object)

    def claim(self, key: str) -> Object | None:
        """A copy of the claim ``namespace/name``."""
        return self._whole(CLAIMS, key)

    def volume(self, name: str) -> Object | None:
        return self._whole(VOLUMES, name)

    def storage_class(self, name: str) -> Object | None:
        return self._whole(CLASSES, name)

    def resync(self) -> None:
        """Tell of every object as if it had changed."""
        for key, listener in self._listeners.items():
            for view in list(self._reflectors[key].store.values()):
                listener(Change.MODIFIED, view)

    def has_volume(self, name: str) -> bool:
        return name in self._reflectors[VOLUMES].store

    def _whole(self, informer: Hashable, key: str) -> Object | None:
        found: WholeView | None = self._reflectors[informer].store.get(key)
        return None if found is None else whole(found)
