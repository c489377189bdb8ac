"""Which handler answers a request on a resource."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from harness.apiserver.admission import Admission
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.uncached import Uncached
from harness.apiserver.handlers import applying, podconnections, podlogs, scale, subresources, writing
from harness.apiserver.handlers.call import Answer, Call
from harness.apiserver.handlers.evictions import Evictions
from harness.apiserver.handlers.options import list_options
from harness.apiserver.handlers.reading import Read, Reader
from harness.apiserver.handlers.shaping import list_answer
from harness.apiserver.registry import Registry
from harness.apiserver.resources import Resource
from harness.wire.paths import RequestInfo
from harness.wire.status import StatusError, method_not_allowed, no_such_resource

Write = Callable[[Call], Awaitable[Answer]]
After = Callable[[Call, bytes], object]
"""(the request, the body of its answer) -> ...; returns at once."""
_NAMED = frozenset({"get", "update", "patch", "delete"})
_COLLECTION = frozenset({"list", "watch", "create", "deletecollection"})
_OF_PODS = ("ephemeralcontainers", "resize")
_CONNECTIONS = ("attach", "exec", "portforward")
_Read = Callable[[Call, Reader], Awaitable[Read]]
_READS: dict[str, _Read] = {
    "scale": scale.get,
    "log": podlogs.get,
    **dict.fromkeys(_CONNECTIONS, podconnections.refuse),
}
_READABLE = frozenset({"approval", "status", *_OF_PODS, *_READS})


class Endpoint(msgspec.Struct, frozen=True):
    """One served resource and its parts; `source` serves its watches."""

    resource: Resource
    registry: Registry
    reader: Reader
    source: Cacher | Uncached


class Router:
    """Finds the endpoint of a request, and the handler of its verb and subresource. `authorize` is asked about creates
    by apply; `reviews` answer creates of what is not stored; `after` hears of each write of a resource that has been
    made. Both by group and resource."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        admission: Admission,
        tokens: subresources.Tokens,
        authorize: applying.Authorize,
        reviews: Mapping[tuple[str, str], Write] | None = None,
        after: Mapping[tuple[str, str], After] | None = None,
    ) -> None:
        self._reviews = reviews or {}
        self._after = after or {}
        patch = applying.chosen(writing.patch, applying.applier(authorize))
        self.endpoints = {
            (item.resource.group, item.resource.version, item.resource.resource): item for item in endpoints
        }
        self._groups = {(group, version) for group, version, _ in self.endpoints}
        self._custom: list[tuple[str, str, str]] = []
        budgets = self.endpoints["policy", "v1", "poddisruptionbudgets"]
        assert isinstance(budgets.source, Cacher)
        evictions = Evictions(admission, budgets.source, budgets.registry)
        self._writes: dict[tuple[str, str], Write] = {
            ("create", ""): writing.create,
            ("update", ""): writing.update,
            ("update", "status"): writing.update,
            ("patch", ""): patch,
            ("patch", "status"): patch,
            ("delete", ""): writing.delete,
            ("create", "binding"): lambda call: subresources.binding(call, admission),
            ("create", "eviction"): evictions.create,
            ("update", "finalize"): subresources.finalize,
            ("update", "scale"): scale.update,
            ("patch", "scale"): applying.chosen(scale.patch, scale.apply),
            **{("create", name): self._connect for name in _CONNECTIONS},
            **{("update", name): writing.update for name in _OF_PODS},
            **{("patch", name): patch for name in _OF_PODS},
            ("create", "token"): tokens.create,
            ("update", "approval"): writing.update,
            ("patch", "approval"): patch,
        }

    async def _connect(self, call: Call) -> Answer:
        await podconnections.refuse(call, self.endpoints["", "v1", "pods"].reader)

    def serve_also(self, endpoints: Sequence[Endpoint]) -> None:
        """These custom resources, and no others beside those that are built in."""
        for key in self._custom:
            del self.endpoints[key]
        added = {
            (item.resource.group, item.resource.version, item.resource.resource): item for item in endpoints
        }
        self._custom = [key for key in added if key not in self.endpoints]
        self.endpoints |= {key: added[key] for key in self._custom}
        self._groups = {(group, version) for group, version, _ in self.endpoints}

    def serves_group(self, info: RequestInfo) -> bool:
        """Whether there is such a group and version: paths of others are no paths at all."""
        return (info.group, info.version) in self._groups

    def find(self, info: RequestInfo) -> Endpoint:
        """Raises StatusError 404 or 405."""
        if info.resource == "bindings" and not info.group:
            return self._bindings(info)
        endpoint = self.endpoints.get((info.group, info.version, info.resource))
        if endpoint is None:
            raise StatusError(no_such_resource())
        resource, subresource = endpoint.resource, info.subresource
        if len(info.parts) > 3 or (subresource and subresource not in resource.subresources):
            raise StatusError(no_such_resource())
        if subresource:
            known = (info.verb, subresource) in self._writes or (
                info.verb == "get" and subresource in _READABLE
            )
        elif info.verb not in resource.verbs:
            known = False
        else:
            named = len(info.parts) > 1
            known = info.verb in (_NAMED if named else _COLLECTION) or info.verb == "watch"
            # Namespaced objects are reached in their namespace; lists and watches also across all of them.
            if resource.namespaced and not info.namespace and info.verb not in ("list", "watch"):
                known = False
        if not known:
            raise StatusError(method_not_allowed())
        return endpoint

    def _bindings(self, info: RequestInfo) -> Endpoint:
        """The old way to bind a pod: POST bindings, the pod's name in the body."""
        if info.verb != "create" or not info.namespace or len(info.parts) > 1:
            raise StatusError(method_not_allowed())
        return self.endpoints["", info.version, "pods"]

    async def write(self, call: Call) -> Answer:
        """create, update, patch, delete and deletecollection. Raises StatusError."""
        info = call.info
        if info.resource == "bindings":
            return await self._writes["create", "binding"](call)
        if info.verb == "deletecollection":
            return await delete_collection(
                call, self.endpoints[info.group, info.version, info.resource].reader
            )
        if not call.resource.stored:
            return await self._reviews[info.group, info.resource](call)
        answer = await self._writes[info.verb, info.subresource](call)
        after = self._after.get((info.group, info.resource))
        if after is not None and info.verb != "delete":
            after(call, answer.body)
        return answer


async def read(call: Call, reader: Reader) -> Read:
    """get and list. Raises StatusError."""
    if call.info.subresource in _READS:
        return await _READS[call.info.subresource](call, reader)
    return await (reader.get(call) if call.info.verb == "get" else reader.list(call))


async def delete_collection(call: Call, reader: Reader) -> Answer:
    """Lists what is selected, deletes each, answers with the list (as/registry/generic/registry/store.go:1247)."""
    options = writing.read_delete_options(call)
    namespace = call.info.namespace if call.resource.namespaced else ""
    listing = await reader.selected(namespace, list_options(call.info.query, call.resource, watch=False))
    keys = [(obj.namespace, obj.name) for obj in listing.items]
    await writing.delete_each(call, keys, options)
    return list_answer(call, listing.items, {"resourceVersion": str(listing.revision)})
