"""get and list: the request as the cache's delegator takes it, its errors as clients hear them."""

from __future__ import annotations

from typing import Any, NamedTuple

from harness.apiserver.apierrors import bad_request, not_found, unclassified
from harness.apiserver.cache.cachedobject import Selection
from harness.apiserver.cache.cacher import CacheNotReady, Cacher
from harness.apiserver.cache.delegator import Delegator, ListRequest, Served
from harness.apiserver.cache.freshness import TooLarge
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


class Read(NamedTuple):
    """An answer and what it took: `consistent` asked the store for its revision, `from_store` for the objects."""

    answer: Answer
    consistent: bool = False
    from_store: bool = False


class Found(NamedTuple):
    """An object's JSON, and whether the store was asked for it."""

    body: bytes
    from_store: bool


class Reader:
    """Reads one resource. `cache` None where it is not cached."""

    def __init__(self, resource: Resource, store: StoreLister, cache: Cacher | None) -> None:
        self.resource = resource
        self._reads = Delegator(store, cache)

    # ---- get -------------------------------------------------------------------------------------------------------
    async def get(self, call: Call) -> Read:
        body, from_store = await self.find(call)
        return Read(object_answer(call, body), consistent=from_store, from_store=from_store)

    async def find(self, call: Call) -> Found:
        """The object that a request names. Raises StatusError."""
        namespace = call.info.namespace if self.resource.namespaced else ""
        key = self.resource.key(namespace, call.info.name)
        version = call.info.query.get("resourceVersion", "")
        if version and not is_version(version):
            raise unclassified(invalid_version(version))
        try:
            found, from_store = await self._reads.get(key, int(version) if version else None)
        except TooLarge as error:
            raise too_large(error) from None
        if found is None:
            raise not_found(self.resource, call.info.name)
        return Found(found.body, from_store)

    # ---- list ------------------------------------------------------------------------------------------------------
    async def list(self, call: Call) -> Read:
        info = call.info
        options = list_options(info.query, self.resource, watch=False)
        namespace = info.namespace if self.resource.namespaced else ""
        served = await self._find(namespace, options)
        prefix = self._prefix(namespace, options)
        return Read(self._answer(call, prefix, served.listing), served.consistent, served.from_store)

    async def selected(self, namespace: str, options: ListOptions) -> Listing:
        """The objects that a deletecollection is about."""
        return (await self._find(namespace, options)).listing

    async def _find(self, namespace: str, options: ListOptions) -> Served:
        """Raises StatusError."""
        request = self._request(namespace, options)
        try:
            return await self._reads.list(request)
        except CacheNotReady as error:
            raise StatusError(storage_initializing(error.retry_after_s)) from None
        except TooLarge as error:
            raise too_large(error) from None
        except Compacted:
            if not request.continued:
                raise StatusError(LIST_COMPACTED) from None
            start = request.start_key[len(self._prefix(namespace, options)) :]
            raise StatusError(continue_expired(continues.encode(continues.CURRENT, start))) from None
        except FutureRevision as error:
            status = too_large_resource_version(error.requested, error.current, from_cache=False)
            raise StatusError(status) from None

    def _request(self, namespace: str, options: ListOptions) -> ListRequest:
        """Raises StatusError 400."""
        revision = _version(options.resource_version)
        exact = bool(revision) and (options.match == EXACT or (bool(options.limit) and not options.match))
        start_key = ""
        if options.continue_:
            if options.resource_version not in ("", "0"):
                raise bad_request("specifying resource version is not allowed when using continue")
            try:
                at, start = continues.decode(options.continue_)
            except continues.ContinueError as error:
                raise bad_request(str(error)) from None
            exact = at != continues.CURRENT
            revision = at if exact else None
            start_key = self._prefix(namespace, options) + start
        return ListRequest(
            namespace,
            options.labels,
            options.fields,
            options.limit,
            revision,
            exact,
            bool(options.continue_),
            start_key,
        )

    def _prefix(self, namespace: str, options: ListOptions) -> str:
        """What the keys of a list have in common, which its continue tokens leave out."""
        namespace = Selection(namespace, "", None, options.fields).namespace
        prefix = self.resource.prefix
        return f"{prefix}{namespace}/" if namespace and self.resource.namespaced else prefix

    def _answer(self, call: Call, prefix: str, listing: Listing) -> Answer:
        metadata: dict[str, Any] = {"resourceVersion": str(listing.revision)}
        if listing.more:
            last = listing.items[-1].key
            metadata["continue"] = continues.encode(listing.revision, last[len(prefix) :] + "\0")
            if listing.remaining is not None:
                metadata["remainingItemCount"] = listing.remaining
        return list_answer(call, listing.items, metadata)


def check_ready(cache: Cacher) -> None:
    """Raises StatusError 429 while the cache is being filled."""
    try:
        cache.check_ready()
    except CacheNotReady as error:
        raise StatusError(storage_initializing(error.retry_after_s)) from None


def too_large(error: TooLarge) -> StatusError:
    return StatusError(too_large_resource_version(error.requested, error.current))


def _version(text: str) -> int | None:
    """None where it is unset. Raises StatusError 400."""
    if not text:
        return None
    if not is_version(text):
        raise bad_request("invalid resource version: " + invalid_version(text))
    return int(text)


def is_version(text: str) -> bool:
    """Whether strconv.ParseUint would take it."""
    return text.isascii() and text.isdecimal() and not _beyond_uint64(text)


def _beyond_uint64(text: str) -> bool:
    digits = text.lstrip("0")
    return len(digits) > 20 or (len(digits) == 20 and int(digits) >= 1 << 64)


def invalid_version(text: str) -> str:
    shown = quote(text)
    why = "value out of range" if text.isascii() and text.isdecimal() else "invalid syntax"
    return f"resourceVersion: Invalid value: {shown}: strconv.ParseUint: parsing {shown}: {why}"
