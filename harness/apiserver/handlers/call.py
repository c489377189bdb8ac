"""One request on its way to its answer, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.exchange import Exchange
from harness.apiserver.handlers.negotiate import Representation
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.resources import Resource
from harness.wire.paths import RequestInfo

Object = dict[str, Any]


class Answer(msgspec.Struct, gc=False):
    """A whole answer; `objects` is how many it is about, for what it costs."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}  # msgspec copies an empty dict for each instance
    objects: int = 1


class Call(msgspec.Struct, gc=False):
    """What a handler works with. `user` is who the request acts as; `wall` gives seconds since 1970; `etcd_us` is what
    each write costs etcd."""

    exchange: Exchange
    info: RequestInfo
    user: UserInfo
    resource: Resource
    registry: Registry
    wall: Callable[[], float]
    representation: Representation
    etcd_us: float | None = None

    def caller(self, dry_run: bool = False) -> Caller:
        info = self.info
        namespace = info.namespace if self.resource.namespaced else ""
        return Caller(self.user, namespace, info.name, info.subresource, dry_run, self.etcd_us)
