"""A paged LIST as client-go's pager walks it (cg/tools/pager/pager.go:77-170) for a reflector."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.client.store import Decode, object_key

PAGE_LIMIT = 500  # pager.go:31


class _ListMeta(
    msgspec.Struct, gc=False, rename={"resource_version": "resourceVersion", "continue_token": "continue"}
):
    resource_version: str = ""
    continue_token: str = ""


class _ListBody(msgspec.Struct, gc=False):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None  # Go writes null for a nil slice


_decode_list = msgspec.json.Decoder(_ListBody).decode


class Pager:
    """One reflector's list under way: what to ask for next, and what has come so far.

    `second` says that the list was begun again at the latest state, which happens once (reflector.go:699-708).
    """

    __slots__ = (
        "_page_limit",
        "_requested",
        "continue_token",
        "from_any_version",
        "limit",
        "objects",
        "paginated",
        "result_version",
        "second",
    )

    def __init__(self, resource_version: str, limit: int) -> None:
        self._page_limit = limit
        self.from_any_version = resource_version == "0"
        self.second = False
        self._begin(resource_version, limit)

    def _begin(self, resource_version: str, limit: int) -> None:
        self._requested = resource_version
        self.limit = limit
        self.continue_token = ""
        self.result_version = ""
        self.paginated = False
        self.objects: dict[str, Any] = {}

    @property
    def resource_version(self) -> str:
        """What to send: continuations carry none."""
        return "" if self.continue_token else self._requested

    def page(self, body: bytes, decode: Decode) -> bool:
        """Take one page; True when it was the last. Raises msgspec.DecodeError for what is no list."""
        found = _decode_list(body)
        for item in found.items or ():
            obj = decode(bytes(item))
            self.objects[object_key(obj)] = obj
        self.result_version = self.result_version or found.metadata.resource_version
        self.continue_token = found.metadata.continue_token
        if self.continue_token:
            self.paginated = True
        return not self.continue_token

    def expired(self) -> bool:
        """The revision is gone: True where the pager itself goes on with a full list, after a page beyond the first."""
        if not self.continue_token:
            return False
        self._begin(self._requested, limit=0)
        self.paginated = True
        return True

    def again(self, resource_version: str) -> None:
        """Begin the second time, with the page size of the first (0 stays 0)."""
        self.second = True
        self._begin(resource_version, self._page_limit)
