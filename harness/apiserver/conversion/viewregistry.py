"""Writing a resource in another version than the one that is stored."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.apiserver.apply.endpoints import FieldManagers
from harness.apiserver.conversion import from_hub, to_hub
from harness.apiserver.registry import Caller, Mutation, Registry, Written
from harness.apiserver.schema import Schema, structure_of
from harness.apiserver.typed import Told

Object = dict[str, Any]


class ViewRegistry(Registry):
    """Takes objects in the form of its resource and mutations of that form; what comes back is as it is stored.

    Server-side apply tracks fields by the names of this version. Other writes leave managedFields as they are.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields = FieldManagers(self.resource, lambda: self.structure)

    @property
    def structure(self) -> Schema:
        return structure_of(self.resource.api_version, self.resource.kind)

    async def create(self, caller: Caller, new: Object) -> Written:
        untracked = msgspec.structs.replace(caller, manager="")
        return await super().create(untracked, to_hub(self.resource, new))

    async def update(
        self, caller: Caller, mutate: Mutation, prepare: str | None = None, told: Told | None = None
    ) -> Written:
        def converted(old: Object, revision: int) -> Object:
            return to_hub(self.resource, mutate(from_hub(self.resource, old), revision))

        return await super().update(msgspec.structs.replace(caller, manager=""), converted, prepare, told)
