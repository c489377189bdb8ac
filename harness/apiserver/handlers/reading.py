"""get and list: which resourceVersion is served from where (as/storage/cacher/delegator, as/storage/etcd3/store.go).

| resourceVersion | match | from |
|---|---|---|
| unset | unset | the cache, once it has what was written before the request |
| 0 | unset or NotOlderThan | the cache as it is, limit ignored |
| N | unset without limit, NotOlderThan | the cache, once it is at N |
| N | unset with limit, Exact | the state at N: the cache's history, else the store |

Resources without a cache are read from the store. A page continues at the revision of the first one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from harness.apiserver.apierrors import bad_request, not_found, unclassified
from harness.apiserver.cache.cachedobject import CachedObject, Selection
from harness.apiserver.cache.cacher import CacheNotReady, Cacher
from harness.apiserver.cache.freshness import TooLarge
from harness.apiserver.cache.history import TooOld
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.cache.watchcache import Listing
from harness.apiserver.handlers.call import Answer, Call
from harness.apiserver.handlers.options import EXACT, ListOptions, list_options
from harness.apiserver.handlers.shaping import list_answer, object_answer
from harness.apiserver.resources import Resource
from harness.apiserver.store.core import Compacted, FutureRevision
from harness.wire import continues
from harness.wire.gotext import quote
from harness.wire.status import (
    LIST_COMPACTED,
    StatusError,
    continue_expired,
    storage_initializing,
    too_large_resource_version,
)


class _Wanted:
    """What a list is about: as the cache takes it, and as a selection for objects of the store."""

    __slots__ = ("fields", "labels", "namespace", "selection")

    def __init__(self, namespace: str, options: ListOptions) -> None:
        self.namespace = namespace
        self.labels = options.labels
        self.fields = options.fields
        self.selection = Selection(namespace, "", options.labels, options.fields)


class Read(NamedTuple):
    """An answer and what it took: `consistent` asked the store for its revision, `from_store` for the objects."""

    answer: Answer
    consistent: bool = False
    from_store: bool = False


class Reader:
    """Reads one resource. `cache` None where it is not cached."""

    def __init__(self, resource: Resource, store: StoreLister, cache: Cacher | None) -> None:
        self.resource = resource
        self._store = store
        self._cache = cache

    # ---- get -------------------------------------------------------------------------------------------------------
    async def get(self, call: Call) -> Read:
        namespace = call.info.namespace if self.resource.namespaced else ""
        key = self.resource.key(namespace, call.info.name)
        version = call.info.query.get("resourceVersion", "")
        if version and self._cache is not None:
            if not (version.isascii() and version.isdecimal()):
                raise unclassified(invalid_version(version))
            cached = await self._cached(self._cache, key, int(version))
            if cached is None:
                raise not_found(self.resource, call.info.name)
            return Read(object_answer(call, cached.body))
        found, _ = await self._store.get(key)
        if found is None:
            raise not_found(self.resource, call.info.name)
        return Read(object_answer(call, found.body), consistent=True, from_store=True)

    async def _cached(self, cache: Cacher, key: str, revision: int) -> CachedObject | None:
        check_ready(cache)
        if revision > cache.revision:
            await _fresh(cache, revision)
        return cache.get(key)

    # ---- list ------------------------------------------------------------------------------------------------------
    async def list(self, call: Call) -> Read:
        info = call.info
        options = list_options(info.query, self.resource, watch=False)
        namespace = info.namespace if self.resource.namespaced else ""
        wanted = _Wanted(namespace, options)
        listing, consistent, from_store = await self._find(wanted, options)
        return Read(self._answer(call, wanted, listing), consistent, from_store)

    async def selected(self, namespace: str, options: ListOptions) -> Listing:
        """The objects that a deletecollection is about."""
        listing, _, _ = await self._find(_Wanted(namespace, options), options)
        return listing

    async def _find(self, wanted: _Wanted, options: ListOptions) -> tuple[Listing, bool, bool]:
        """(objects, whether the store was asked for its revision, whether for the objects). Raises StatusError."""
        version = _version(options.resource_version)
        if options.continue_:
            return await self._continued(wanted, options)
        if self._cache is None:
            exact = version if options.match == EXACT or (version and options.limit) else 0
            return await self._from_store(wanted, options.limit, "", exact or 0), True, True
        check_ready(self._cache)
        if version and (options.match == EXACT or (options.limit and not options.match)):
            return await self._exact(wanted, options.limit, "", version)
        if version is None:
            consistent = await self._consistent(self._cache)
            if not consistent:
                return await self._from_store(wanted, options.limit, "", 0), True, True
            return self._present(wanted, options.limit, ""), True, False
        if version > self._cache.revision:
            await _fresh(self._cache, version)
        limit = 0 if version == 0 else options.limit
        return self._present(wanted, limit, ""), False, False

    async def _continued(self, wanted: _Wanted, options: ListOptions) -> tuple[Listing, bool, bool]:
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        try:
            revision, start = continues.decode(options.continue_)
        except continues.ContinueError as error:
            raise bad_request(str(error)) from None
        prefix = self._prefix(wanted)
        start_key = prefix + start
        if revision != continues.CURRENT:
            return await self._exact(wanted, options.limit, start_key, revision)
        if self._cache is None or not await self._consistent(self._cache):
            return await self._from_store(wanted, options.limit, start_key, 0), True, True
        return self._present(wanted, options.limit, start_key), True, False

    async def _consistent(self, cache: Cacher) -> bool:
        """Wait until the cache has what was written so far; False where it cannot, and the store must be read."""
        try:
            await cache.consistent()
        except TooLarge:
            return False
        return True

    def _present(self, wanted: _Wanted, limit: int, start_key: str) -> Listing:
        assert self._cache is not None
        return self._cache.list(wanted.namespace, wanted.labels, wanted.fields, limit, start_key)

    async def _exact(
        self, wanted: _Wanted, limit: int, start_key: str, revision: int
    ) -> tuple[Listing, bool, bool]:
        """The state at `revision`: from the cache where it reaches so far, else from the store."""
        cache = self._cache
        if cache is not None:
            if revision > cache.revision:
                await _fresh(cache, revision)
            try:
                found = cache.list_at(
                    revision, wanted.namespace, wanted.labels, wanted.fields, limit, start_key
                )
                return found, False, False
            except TooOld:
                pass
        return await self._from_store(wanted, limit, start_key, revision), False, True

    async def _from_store(self, wanted: _Wanted, limit: int, start_key: str, revision: int) -> Listing:
        try:
            return await self._store.list(
                wanted.namespace, wanted.labels, wanted.fields, limit, start_key, revision
            )
        except Compacted:
            if not start_key:
                raise StatusError(LIST_COMPACTED) from None
            token = continues.encode(continues.CURRENT, start_key[len(self._prefix(wanted)) :])
            raise StatusError(continue_expired(token)) from None
        except FutureRevision as error:
            status = too_large_resource_version(error.requested, error.current, from_cache=False)
            raise StatusError(status) from None

    def _prefix(self, wanted: _Wanted) -> str:
        prefix, namespace = self.resource.prefix, wanted.selection.namespace
        return f"{prefix}{namespace}/" if namespace and self.resource.namespaced else prefix

    def _answer(self, call: Call, wanted: _Wanted, listing: Listing) -> Answer:
        metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)}
        if listing.more:
            prefix = self._prefix(wanted)
            last = listing.items[-1].key
            metadata["continue"] = continues.encode(listing.revision, last[len(prefix) :] + "\0")
            if listing.remaining is not None:
                metadata["remainingItemCount"] = listing.remaining
        return list_answer(call, (obj.body for obj in listing.items), metadata)


def check_ready(cache: Cacher) -> None:
    """Raises StatusError 429 while the cache is being filled."""
    try:
        cache.check_ready()
    except CacheNotReady as error:
        raise StatusError(storage_initializing(error.retry_after_s)) from None


async def _fresh(cache: Cacher, revision: int) -> None:
    try:
        await cache.wait_until_fresh(revision)
    except TooLarge as error:
        raise StatusError(too_large_resource_version(error.requested, error.current)) from None


def _version(text: str) -> int | None:
    """None where it is unset. Raises StatusError 400."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise bad_request("invalid resource version: " + invalid_version(text))
    return int(text)


def invalid_version(text: str) -> str:
    shown = quote(text)
    return f"resourceVersion: Invalid value: {shown}: strconv.ParseUint: parsing {shown}: invalid syntax"
