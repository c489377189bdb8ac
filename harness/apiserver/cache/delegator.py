"""Where a read is served from: the watch cache, one of its past states, or the store.

Mirrors k8s.io/apiserver pkg/storage/cacher/delegator.go and delegator/interface.go (v1.36, ShouldDelegateList), and
cacher.go (computeListLimit):

| resourceVersion | match | from |
|---|---|---|
| unset | unset | the cache, once it has what was written before the request; the store where that takes over 3 s |
| 0 | unset or NotOlderThan | the cache as it is, limit ignored |
| N | unset without limit, NotOlderThan | the cache, once it is at N |
| N | unset with limit, Exact | the state at N: a snapshot of the cache, else the store |
| a continue token's | unset | the same; a token without a revision reads the latest state, as unset |

Without snapshots (the gate ListFromCacheSnapshot) every exact and every continued list is the store's. So it is, until
a consistency check succeeds again, after one has failed; what needs no snapshot goes on being read from the cache.
A list by namespace and name is no range, and has no snapshot. Resources without a cache are read from the store.
"""

from __future__ import annotations

import msgspec

from harness.apiserver.cache.cachedobject import CachedObject, Selection
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.freshness import TooLarge
from harness.apiserver.cache.history import TooOld
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.cache.watchcache import Listing
from harness.wire.selectors import FieldSelector, LabelSelector


class ListRequest(msgspec.Struct, frozen=True):
    """A list as validated. `revision` None: the latest. `exact`: as of `revision`, not as it is now. `continued`: from
    `start_key` on, a whole key of the store."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    limit: int = 0
    revision: int | None = None
    exact: bool = False
    continued: bool = False
    start_key: str = ""


class Served(msgspec.Struct, frozen=True):
    """Objects, and what they took: `consistent` asked the store for its revision, `from_store` for the objects."""

    listing: Listing
    consistent: bool = False
    from_store: bool = False


class Delegator:
    """Reads of one resource. `cache` None where it has none."""

    def __init__(self, store: StoreLister, cache: Cacher | None) -> None:
        self.resource = store.resource
        self._store = store
        self._cache = cache

    async def get(self, key: str, revision: int | None) -> tuple[CachedObject | None, bool]:
        """An object no older than `revision` (None: the latest), and whether it came from the store. Raises TooLarge
        and StoreError."""
        cache = self._cache
        if revision is None or cache is None or not cache.ready:
            found, _ = await self._store.get(key)
            return found, True
        if revision:
            await cache.wait_until_fresh(revision)
        return cache.get(key), False

    async def list(self, request: ListRequest) -> Served:
        """Raises CacheNotReady, TooLarge, and StoreError, of these Compacted and FutureRevision."""
        cache = self._cache
        if cache is None or self._is_the_stores(request, cache):
            return await self._from_store(request)
        if not cache.ready and _small(request):
            return await self._from_store(request)
        if request.exact:
            return await self._exact(request, cache)
        if request.revision is None:
            return await self._consistent(request, cache)
        cache.check_ready()
        if request.revision:
            await cache.wait_until_fresh(request.revision)
        limit = request.limit if request.revision else 0
        return Served(_present(request, cache, limit))

    def _is_the_stores(self, request: ListRequest, cache: Cacher) -> bool:
        """Whether no cache can serve it."""
        if not (request.exact or request.continued):
            return False
        selection = Selection(request.namespace, "", request.labels, request.fields)
        single = bool(selection.name) and (bool(selection.namespace) or not self.resource.namespaced)
        snapshots = cache.cache.snapshots
        if single or not snapshots.wanted:
            return True
        if not request.exact:
            return False
        assert request.revision is not None
        return request.revision <= cache.revision and not snapshots.covers(request.revision)

    async def _exact(self, request: ListRequest, cache: Cacher) -> Served:
        revision = request.revision
        assert revision is not None
        cache.check_ready()
        await cache.wait_until_fresh(revision)
        try:
            listing = cache.list_at(
                revision, request.namespace, request.labels, request.fields, request.limit, request.start_key
            )
        except TooOld:
            return await self._from_store(request)
        return Served(listing)

    async def _consistent(self, request: ListRequest, cache: Cacher) -> Served:
        success, fallback = "false", "false"
        try:
            cache.check_ready()
            try:
                await cache.consistent()
                served = Served(_present(request, cache, request.limit), consistent=True)
            except TooLarge:
                fallback = "true"
                served = await self._from_store(request)
            success = "true"
        finally:
            cache.count_consistent_read(success, fallback)
        return served

    async def _from_store(self, request: ListRequest) -> Served:
        exact = request.exact and request.revision is not None
        listing = await self._store.list(
            request.namespace,
            request.labels,
            request.fields,
            request.limit,
            request.start_key,
            (request.revision or 0) if exact else 0,
            request.revision or 0,
        )
        return Served(listing, consistent=not exact, from_store=True)


def _present(request: ListRequest, cache: Cacher, limit: int) -> Listing:
    return cache.list(request.namespace, request.labels, request.fields, limit, request.start_key)


def _small(request: ListRequest) -> bool:
    """What the store is asked for while the cache is being filled (shouldDelegateListOnNotReadyCache)."""
    labels, fields = request.labels, request.fields
    return bool(request.limit) and not (labels and not labels.empty) and not (fields and fields.terms)
