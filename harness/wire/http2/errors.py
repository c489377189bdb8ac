"""Error codes (RFC 9113, 7) and the one error that a connection raises."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from harness.wire.errors import SwarmletError

if TYPE_CHECKING:
    from harness.wire.http2.events import Event


class ErrorCode(IntEnum):
    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class ProtocolError(SwarmletError):
    """The peer broke the protocol and the connection cannot go on; write what is queued, then close.

    `events` are those that the same `feed()` had understood before the fault.
    """

    def __init__(self, code: ErrorCode, detail: str) -> None:
        super().__init__(f"{code.name}: {detail}")
        self.code = code
        self.detail = detail
        self.events: list[Event] = []


def name_of(code: int) -> str:
    """``REFUSED_STREAM`` for 7, ``0x20`` for a code that RFC 9113 does not know."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return hex(code)
