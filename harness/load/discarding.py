"""The body of an answer that nobody reads: counted as it comes, a list of 20 MB costs no memory."""

from __future__ import annotations

from collections.abc import Mapping

_SIZE_BYTES = 4  # gzip ends with the size of what it holds, modulo 2**32 (RFC 1952, ISIZE)


class Discarded:
    """Takes pieces as a list does; `size_bytes` is the size of all, unpacked where it came as gzip (one member, as Go's
    server writes it)."""

    __slots__ = ("_packed", "_received", "_tail")

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._packed = headers.get("content-encoding") == "gzip"
        self._received = 0
        self._tail = b""

    def append(self, data: bytes) -> None:
        self._received += len(data)
        if self._packed:
            self._tail = (self._tail + data[-_SIZE_BYTES:])[-_SIZE_BYTES:]

    @property
    def size_bytes(self) -> int:
        return int.from_bytes(self._tail, "little") if self._packed else self._received
