"""The bootstrap roles and bindings as objects in the store (kk/pkg/registry/rbac/rest/storage_rbac.go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from harness.apiserver.auth.bootstrappolicy import GROUP, BootstrapObject, bootstrap_objects
from harness.apiserver.clock import Clock, sleep, spawn
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.systemobjects import loopback_user
from harness.wire.status import StatusError

_decode = msgspec.json.Decoder().decode
_WAIT_S = 0.02
_WAITS = 100


async def create_policy(
    registries: Mapping[str, Registry], clock: Clock, there: Callable[[BootstrapObject], bool]
) -> None:
    """Create the bootstrap objects that are not `there`; `registries` by group resource. Raises StoreError.

    Some 140 writes at once, which group commit makes cheap. Whoever creates the first of them creates the others too;
    members that start at the same time wait for these, and make them themselves where they do not come.
    """
    first, *others = bootstrap_objects()
    if there(first) or not await _created(registries, first):
        for _ in range(_WAITS):
            if all(map(there, others)):
                return
            await sleep(clock, _WAIT_S)
    writes = [spawn(_created(registries, item)) for item in others if not there(item)]
    for write in writes:
        await write.outcome


async def _created(registries: Mapping[str, Registry], item: BootstrapObject) -> bool:
    """Whether the object was not there yet. What a cluster begins with is no load: it costs the modelled etcd
    nothing."""
    registry = registries[f"{item.resource}.{GROUP}"]
    try:
        await registry.create(Caller(loopback_user(), item.namespace, etcd_us=0.0), _decode(item.body))
    except StatusError as error:
        if error.status.reason != "AlreadyExists":
            raise
        return False
    return True
