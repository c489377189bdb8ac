"""One request on its way to its answer, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.exchange import Exchange
from harness.apiserver.handlers.negotiate import Representation
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.resources import Resource
from harness.wire.paths import RequestInfo

Object = dict[str, Any]
MAX_MANAGER_BYTES = 128  # am/apis/meta/v1/validation/validation.go:211, FieldManagerMaxLength


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

    def caller(self, dry_run: bool = False, typed: bool = False) -> Caller:
        info = self.info
        namespace = info.namespace if self.resource.namespaced else ""
        manager = info.query.get("fieldManager") or manager_of(self.exchange.headers.get("user-agent", ""))
        return Caller(
            self.user, namespace, info.name, info.subresource, dry_run, self.etcd_us, manager, typed
        )


@lru_cache(maxsize=256)
def manager_of(user_agent: str) -> str:
    """The field manager that a client is which does not name itself: its User-Agent up to the first slash
    (as/endpoints/handlers/create.go:269)."""
    printable = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return printable.encode()[:MAX_MANAGER_BYTES].decode(errors="ignore") or "unknown"
