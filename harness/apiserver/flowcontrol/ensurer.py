"""Makes the bootstrap configuration's objects, and keeps them as they should be.

kubernetes v1.36 pkg/registry/flowcontrol/rest/storage_flowcontrol.go (at the start, then each minute) and
pkg/registry/flowcontrol/ensurer/{strategy,prioritylevelconfiguration,flowschema}.go. Mandatory objects always get their
spec back; suggested ones for as long as their annotation says so, or, where it says nothing, while nobody has changed
them. Every member does it; who is late finds it done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.deletion import Deletion
from harness.apiserver.flowcontrol.bootstrap import (
    AUTO_UPDATE,
    FLOW_SCHEMAS,
    MANDATORY,
    PRIORITY_LEVELS,
    level_object,
    level_spec,
    schema_object,
    schema_spec,
)
from harness.apiserver.flowcontrol.config import (
    EXEMPT,
    BrokenLevel,
    PriorityLevel,
    read_level,
    read_schema,
)
from harness.apiserver.registry import Caller, Registry
from harness.wire.status import StatusError

Object = dict[str, Any]
MANAGER = "api-priority-and-fairness-config-producer-v1"
PERIOD_S = 60.0
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class _Metadata(msgspec.Struct):
    name: str
    generation: int = 0
    annotations: dict[str, str] | None = None


class _Head(msgspec.Struct):
    metadata: _Metadata


_decode_head = msgspec.json.Decoder(_Head).decode


class Wanted(NamedTuple):
    """An object of the bootstrap configuration: `same` says of another's JSON whether its spec is this one's."""

    name: str
    object: Callable[[], Object]
    spec: Callable[[], Object]
    same: Callable[[bytes], bool]

    @property
    def mandatory(self) -> bool:
        return self.name in MANDATORY


class Repair(NamedTuple):
    """What an object needs: its spec, and what its annotation is to say (None: what it says)."""

    spec: bool
    annotation: bool | None


def repair(body: bytes, wanted: Wanted) -> Repair | None:
    """None where the object is as it should be (strategy.go, ShouldUpdate)."""
    meta = _decode_head(body).metadata
    said = _BOOLEANS.get((meta.annotations or {}).get(AUTO_UPDATE, ""))
    auto = wanted.mandatory or (said if said is not None else meta.generation == 1)
    spec = auto and not wanted.same(body)
    annotation = None if said == auto else auto
    return Repair(spec, annotation) if spec or annotation is not None else None


def _same_level(level: PriorityLevel, body: bytes) -> bool:
    try:
        found = read_level(body)
    except BrokenLevel:
        return False
    if level.name == EXEMPT:  # what it takes of the server, and lends, is anybody's to say
        found = msgspec.structs.replace(found, shares=level.shares, lendable_percent=level.lendable_percent)
    return msgspec.structs.replace(found, uid="") == level


def wanted_levels() -> list[Wanted]:
    return [
        Wanted(
            level.name,
            lambda level=level: level_object(level),  # type: ignore[misc]
            lambda level=level: level_spec(level),  # type: ignore[misc]
            lambda body, level=level: _same_level(level, body),  # type: ignore[misc]
        )
        for level in PRIORITY_LEVELS
    ]


def wanted_schemas() -> list[Wanted]:
    return [
        Wanted(
            schema.name,
            lambda schema=schema: schema_object(schema),  # type: ignore[misc]
            lambda schema=schema: schema_spec(schema),  # type: ignore[misc]
            lambda body, schema=schema: (  # type: ignore[misc]
                msgspec.structs.replace(read_schema(body).schema, uid="") == schema
            ),
        )
        for schema in FLOW_SCHEMAS
    ]


class Kind(NamedTuple):
    """One of the two kinds: `bodies()` are the objects that the member's cache has, by name."""

    registry: Registry
    bodies: Callable[[], dict[str, bytes]]
    wanted: list[Wanted]


class Ensurer:
    """`ensure()` once, and again each PERIOD_S."""

    def __init__(self, schemas: Kind, levels: Kind, user: UserInfo) -> None:
        self._kinds = (schemas, levels)
        self._user = user

    async def ensure(self) -> None:
        """Make and repair what is not as it should be; suggested objects first, schemas before levels, as upstream.
        Raises StatusError and StoreError."""
        for mandatory in (False, True):
            for kind in self._kinds:
                bodies = kind.bodies()
                for wanted in kind.wanted:
                    if wanted.mandatory == mandatory:
                        await self._ensure(kind, wanted, bodies.get(wanted.name))
        for kind in self._kinds:
            await self._remove(kind)

    async def _ensure(self, kind: Kind, wanted: Wanted, body: bytes | None) -> None:
        if body is None:
            try:
                await kind.registry.create(Caller(self._user, manager=MANAGER), wanted.object())
            except StatusError as error:
                if error.status.reason != "AlreadyExists":  # another member was faster
                    raise
            return
        needed = repair(body, wanted)
        if needed is not None:
            caller = Caller(self._user, name=wanted.name, manager=MANAGER)
            try:
                await kind.registry.update(caller, lambda old, _: _repaired(old, wanted, needed))
            except StatusError as error:
                if error.status.code != 404:  # deleted meanwhile: made with the next turn
                    raise

    async def _remove(self, kind: Kind) -> None:
        """Objects of an older configuration, which nobody has taken over."""
        names = {wanted.name for wanted in kind.wanted}
        for name in _automatic(kind.bodies().values()):
            if name not in names:
                try:
                    await kind.registry.delete(Caller(self._user, name=name), Deletion())
                except StatusError as error:
                    if error.status.code != 404:
                        raise


def _automatic(bodies: Iterable[bytes]) -> list[str]:
    heads = [_decode_head(body).metadata for body in bodies]
    return [meta.name for meta in heads if _BOOLEANS.get((meta.annotations or {}).get(AUTO_UPDATE, ""))]


def _repaired(old: Object, wanted: Wanted, needed: Repair) -> Object:
    new = {**old, "metadata": dict(old["metadata"])}
    if needed.spec:
        new["spec"] = wanted.spec()
    if needed.annotation is not None:
        annotations = {
            **(new["metadata"].get("annotations") or {}),
            AUTO_UPDATE: str(needed.annotation).lower(),
        }
        new["metadata"]["annotations"] = annotations
    return new
