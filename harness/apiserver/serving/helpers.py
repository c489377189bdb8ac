"""Small things that sessions of both protocols need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from harness.wire.status import Details, Status

K = TypeVar("K")


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Repeated headers joined by a comma and a space (RFC 9110, 5.2), in time linear in their number."""
    single: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for name, value in headers:
        if name not in single:
            single[name] = value
        elif name in repeated:
            repeated[name].append(value)
        else:
            repeated[name] = [single[name], value]
    for name, values in repeated.items():
        single[name] = ", ".join(values)
    return single


class FirstSeen(Generic[K]):
    """Since when something goes on, as precise as the looks at it: nothing is written down when it begins."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since: dict[K, float] = {}

    def older(self, keys: Iterable[K], now: float, than_s: float) -> list[K]:
        """Those of `keys` that were there `than_s` ago, at the latest look before that; others are forgotten."""
        self._since = {key: self._since.get(key, now) for key in keys}
        return [key for key, since in self._since.items() if since <= now - than_s]


def body_too_large(limit: int) -> bytes:
    """apimachinery/pkg/api/errors ``NewRequestEntityTooLargeError`` as apiserver's ``limitedReadBody`` words it."""
    message = f"Request entity too large: limit is {limit}"
    return Status(413, "RequestEntityTooLarge", message, Details()).body()
