"""Header compression (RFC 7541) behind one small interface: jh2's Rust coder where it is installed, else `hpack`.

The Rust coder takes 1 us for a request's headers, `hpack` 8. It is a private module of jh2, hence the pinned version
and the second implementation; the tests run over both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

import hpack
import hpack.exceptions

try:
    from jh2 import _hazmat as _rust
except ImportError:  # a platform without its wheel
    _rust = None

HeaderList: TypeAlias = list[tuple[bytes, bytes]]

DECODED_LIMIT = 16 << 20
"""Bytes of one decoded header list at which a decoder gives up in the middle, its state lost. Far above any announced
limit: that one is checked on the decoded list, so that the connection outlives a list that is merely too long."""


_UNINDEXED = frozenset((b":path", b"audit-id", b"content-length", b"date"))
"""Names whose values hardly come twice on a connection. Kept out of the dynamic table, which they would fill: 4 KB less
on either side of a kubelet's 35 watches, and the rest stays in it. (Go's encoder indexes them too.)"""


class HpackError(Exception):
    """A header block that cannot be decoded; the connection's compression state is lost."""


class Coder(Protocol):
    """Both directions of one connection. Field names and values are bytes."""

    def encode(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes: ...

    def decode(self, block: bytes) -> HeaderList:
        """Raises `HpackError` and nothing else."""
        ...

    def set_encoder_table_size(self, size: int) -> None:
        """What the peer allows; the next block announces the change."""
        ...

    def set_decoder_table_size(self, size: int) -> None:
        """What we allow the peer."""
        ...


class RustCoder:
    __slots__ = ("_decoder", "_encoder")

    def __init__(self) -> None:
        assert _rust is not None, "jh2 is not installed"
        self._encoder: Any = _rust.Encoder()
        self._decoder: Any = _rust.Decoder(DECODED_LIMIT)

    def encode(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        block: bytes = self._encoder.encode([(name, value, name in _UNINDEXED) for name, value in headers])
        return block

    def decode(self, block: bytes) -> HeaderList:
        try:
            return [(name, value) for name, value, _ in self._decoder.decode(block, True)]
        except Exception as error:
            raise HpackError(str(error)) from error
        except BaseException as error:
            # The Rust code panics on some truncated blocks; pyo3 makes that a BaseException of its own.
            if type(error).__name__ != "PanicException":
                raise
            raise HpackError(f"truncated header block ({error})") from error

    def set_encoder_table_size(self, size: int) -> None:
        self._encoder.header_table_size = size

    def set_decoder_table_size(self, size: int) -> None:
        self._decoder.max_allowed_table_size = size


class PythonCoder:
    __slots__ = ("_decoder", "_encoder")

    def __init__(self) -> None:
        self._encoder = hpack.Encoder()
        self._decoder = hpack.Decoder(max_header_list_size=DECODED_LIMIT)

    def encode(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        return self._encoder.encode([(name, value, name in _UNINDEXED) for name, value in headers])

    def decode(self, block: bytes) -> HeaderList:
        try:
            return [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except (hpack.exceptions.HPACKError, ValueError, IndexError) as error:
            raise HpackError(str(error)) from error

    def set_encoder_table_size(self, size: int) -> None:
        self._encoder.header_table_size = size

    def set_decoder_table_size(self, size: int) -> None:
        self._decoder.max_allowed_table_size = size


def new_coder() -> Coder:
    return PythonCoder() if _rust is None else RustCoder()
