"""A paged LIST as client-go's pager walks it (cg/tools/pager/pager.go:77-170) for a reflector."""

from __future__ import annotations

from typing import Any

from harness.client.store import Decode, object_key
from harness.wire.objectviews import decode_list

PAGE_LIMIT = 500  # pager.go:31


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
        metadata, items = decode_list(body)
        for item in items:
            obj = decode(item)
            self.objects[object_key(obj)] = obj
        self.result_version = self.result_version or metadata.resource_version
        self.continue_token = metadata.continue_token
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
