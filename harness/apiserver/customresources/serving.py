"""Serves the objects of whatever is established (ae/pkg/apiserver/customresource_handler.go).

A member learns of definitions by its own informer. A kind is served once its cache is filled, and withdrawn when its
definition goes: between the two moments at which two members learn of it, one answers 404.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.clock import Clock, sleep, spawn
from harness.apiserver.conversion.viewregistry import ViewRegistry
from harness.apiserver.customresources.controller import DefinitionController
from harness.apiserver.customresources.names import TERMINATING, Object, is_true
from harness.apiserver.customresources.served import Served, served_of
from harness.apiserver.customresources.strategy import CustomStrategy
from harness.apiserver.deletion import Deletion
from harness.apiserver.openapi import CustomType
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.resources import Resource
from harness.apiserver.router import Endpoint, Router
from harness.apiserver.schema import Schema
from harness.apiserver.strategies import Strategy
from harness.apiserver.systemobjects import loopback_user
from harness.wire.status import StatusError
from harness.wire.watching import DELETED

_decode = msgspec.json.Decoder().decode
_READY_POLL_S = 0.01
ServeAlso = Callable[[Sequence[CustomType]], object]


class CustomViewRegistry(ViewRegistry):
    """A version that is not stored: its objects are those of the stored one with another apiVersion."""

    @property
    def structure(self) -> Schema:
        return self.strategy.structure


class Maker(msgspec.Struct, frozen=True):
    """What a member makes of rows: `source` a cache that is not started, `endpoint` what answers requests,
    `lister` what reads the store. It is told which caches are there (`keep`) and which no longer (`leave`)."""

    source: Callable[[Resource], Cacher]
    endpoint: Callable[[Resource, Strategy, Cacher, type[Registry]], Endpoint]
    lister: Callable[[Resource], StoreLister]
    keep: Callable[[Cacher], None]
    leave: Callable[[Cacher], None]


class _Kind(msgspec.Struct):
    """One definition that is served, or about to be."""

    served: Served
    versions: bytes  # what it was made from
    source: Cacher
    endpoints: list[Endpoint]
    types: list[CustomType]
    terminating: bool = False


class CustomResources:
    """`definitions` is the cache of definitions, `registry` writes them; `serve_also` tells discovery."""

    def __init__(
        self,
        definitions: Cacher,
        registry: Registry,
        maker: Maker,
        router: Router,
        serve_also: ServeAlso,
        clock: Clock,
    ) -> None:
        self._definitions = definitions
        self._maker = maker
        self._router = router
        self._serve_also = serve_also
        self._clock = clock
        self._kinds: dict[str, _Kind] = {}
        self._controller = DefinitionController(
            registry, lambda: definitions.list().items, self._delete_objects, clock
        )

    def follow(self) -> None:
        self._definitions.subscribe(self._changed)

    def stop(self) -> None:
        for kind in self._kinds.values():
            kind.source.stop()

    def _changed(self, event: str, obj: CachedObject, previous: CachedObject | None) -> None:
        definition = _decode(obj.body)
        if event == DELETED:
            self._withdraw(obj.name)
            self._controller.gone(definition)
            return
        self._follow_definition(obj.name, definition)
        self._controller.seen(definition)

    # ---- serving -----------------------------------------------------------------------------------------------
    def _follow_definition(self, name: str, definition: Object) -> None:
        served = served_of(definition)
        there = self._kinds.get(name)
        if served is None:
            return
        versions = msgspec.json.encode([served, definition["spec"]["versions"]])
        if there is not None:
            there.terminating = _is_terminating(definition)
            if there.versions == versions:
                return
            self._withdraw(name)
        kind = _Kind(served, versions, self._maker.source(served.stored), [], [], _is_terminating(definition))
        self._kinds[name] = kind
        kind.source.start()
        self._maker.keep(kind.source)
        spawn(self._serve(name, kind))

    async def _serve(self, name: str, kind: _Kind) -> None:
        while not kind.source.ready:
            if self._kinds.get(name) is not kind:
                return
            await sleep(self._clock, _READY_POLL_S)
        for row, version in kind.served.versions:
            strategy = CustomStrategy(row, version, lambda: kind.terminating)
            made_by: type[Registry] = Registry if row.hub is None else CustomViewRegistry
            kind.endpoints.append(self._maker.endpoint(row, strategy, kind.source, made_by))
            kind.types.append(CustomType(row, strategy.schema))
        self._publish()

    def _withdraw(self, name: str) -> None:
        kind = self._kinds.pop(name, None)
        if kind is not None:
            self._maker.leave(kind.source)
            kind.source.stop()
            self._publish()

    def _publish(self) -> None:
        kinds = [self._kinds[name] for name in sorted(self._kinds)]
        self._router.serve_also([endpoint for kind in kinds for endpoint in kind.endpoints])
        self._serve_also([item for kind in kinds for item in kind.types])

    # ---- deletion ----------------------------------------------------------------------------------------------
    async def _delete_objects(self, definition: Object) -> int:
        kind = self._kinds.get(definition["metadata"]["name"])
        if kind is None or not kind.endpoints:
            return 0
        endpoint = kind.endpoints[0]
        for obj in (await self._maker.lister(kind.served.stored).list()).items:
            caller = Caller(loopback_user(), obj.namespace, obj.name)
            try:
                await endpoint.registry.delete(caller, Deletion())
            except StatusError as error:
                if error.status.code != 404:
                    raise
        return len((await self._maker.lister(kind.served.stored).list()).items)


def _is_terminating(definition: Object) -> bool:
    return "deletionTimestamp" in definition["metadata"] or is_true(definition, TERMINATING)
