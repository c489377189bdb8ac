"""What admission is asked about."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.resources import Resource

Object = dict[str, Any]


class Operation(Enum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Attributes(msgspec.Struct, gc=False):
    """One write. `new` is None for a deletion, `old` for a creation (and for a deletion before it was read)."""

    operation: Operation
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: UserInfo
    new: Object | None = None
    old: Object | None = None

    @property
    def shown_name(self) -> str:
        """As messages name the object: a generated name is not known yet, so its prefix stands for it."""
        meta = (self.new or {}).get("metadata") or {}
        return self.name or str(meta.get("name") or meta.get("generateName") or "")
