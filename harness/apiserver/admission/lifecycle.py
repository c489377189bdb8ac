"""NamespaceLifecycle: nothing is created in a namespace that does not exist or is being terminated
(as/admission/plugin/namespace/lifecycle/admission.go)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from harness.apiserver.admission.attributes import Attributes
from harness.apiserver.apierrors import forbidden, not_found
from harness.apiserver.clock import Clock, Promise, sleep
from harness.apiserver.resources import Resource
from harness.apiserver.store.core import GetResult
from harness.wire.status import Cause

MISSING_NAMESPACE_WAIT_S = 0.05  # admission.go:45: the informer may not have seen a namespace just created
_IMMORTAL = ("default", "kube-system", "kube-public")


class _Status(msgspec.Struct):
    phase: str = ""


class _Namespace(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


_phase_of = msgspec.json.Decoder(_Namespace).decode


class NamespaceLifecycle:
    """`cached(name)` gives a namespace's bytes from the informer, None if it is not there; `read(key)` asks the store.

    Upstream's informer is the watch cache's client; here it is the cache itself. Phases are remembered by body.
    """

    def __init__(
        self,
        resource: Resource,
        cached: Callable[[str], bytes | None],
        read: Callable[[str], Promise[GetResult]],
        clock: Clock,
    ) -> None:
        self._resource = resource
        self._cached = cached
        self._read = read
        self._clock = clock

    async def admit_create(self, attributes: Attributes) -> None:
        name = attributes.namespace
        body = self._cached(name)
        if body is None:
            await sleep(self._clock, MISSING_NAMESPACE_WAIT_S)
            body = self._cached(name)
        if body is None:
            found = await self._read(self._resource.key(None, name))
            if found.kv is None:
                raise not_found(self._resource, name)
            body = found.kv.value
        # The phase is the last thing in a namespace's JSON; decoding it is for the few that are not Active.
        if body.endswith(b'"status":{"phase":"Active"}}') or _phase_of(body).status.phase != "Terminating":
            return
        cause = Cause("NamespaceTerminating", f"namespace {name} is being terminated", "metadata.namespace")
        text = f"unable to create new content in namespace {name} because it is being terminated"
        raise forbidden(attributes.resource, attributes.shown_name, text, [cause])

    def admit_delete(self, attributes: Attributes) -> None:
        if attributes.resource is self._resource and attributes.name in _IMMORTAL:
            raise forbidden(attributes.resource, attributes.name, "this namespace may not be deleted")
