"""What `Connection.feed()` tells."""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Headers(msgspec.Struct, gc=False):
    """A request (server) or the final answer's head (client); pseudo-headers come first, names are lower case."""

    stream_id: int
    headers: list[tuple[bytes, bytes]]
    end_stream: bool


class Trailers(msgspec.Struct, gc=False):
    """Trailing headers; the peer has ended the stream."""

    stream_id: int
    headers: list[tuple[bytes, bytes]]


class Data(msgspec.Struct, gc=False):
    """A piece of body. `data` is empty only where `end_stream` is True."""

    stream_id: int
    data: bytes
    end_stream: bool


class Reset(msgspec.Struct, gc=False):
    """The stream broke: the peer reset it or will not process it (GOAWAY), or, `by_peer` False, it broke the protocol
    on this stream. A client hears nothing of a stream whose answer has ended. `code` may be one that we do not know.
    """

    stream_id: int
    code: int
    by_peer: bool = True


class GoAway(msgspec.Struct, gc=False):
    """The peer takes no more streams. The client's streams above `last_stream_id` follow as `Reset`s with
    REFUSED_STREAM: they were not processed."""

    code: int
    last_stream_id: int
    debug: bytes


class PingAck(msgspec.Struct, gc=False):
    payload: bytes


class SettingsReceived(msgspec.Struct, gc=False):
    """`Connection.peer_settings` has changed."""


class Drained(msgspec.Struct, gc=False):
    """All that waited on this stream's flow control has been framed: `unsent(stream_id)` is 0 again."""

    stream_id: int


Event: TypeAlias = Headers | Trailers | Data | Reset | GoAway | PingAck | SettingsReceived | Drained
