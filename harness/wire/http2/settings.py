"""SETTINGS (RFC 9113, 6.5): what a side says of itself, and the values that Kubernetes' two sides use."""

from __future__ import annotations

import struct
from enum import Enum
from functools import lru_cache

import msgspec

from harness.wire.http2.errors import ErrorCode, ProtocolError
from harness.wire.http2.limits import MAX_WINDOW

DEFAULT_WINDOW = 65_535
MIN_FRAME_SIZE, MAX_FRAME_SIZE = 1 << 14, (1 << 24) - 1
MAX_ENTRIES = 100
"""Settings of one frame; more are a connection error, as in x/net/http2 server.go ``processSettings``."""

_HEADER_TABLE_SIZE, _ENABLE_PUSH, _MAX_STREAMS, _INITIAL_WINDOW, _MAX_FRAME_SIZE, _MAX_HEADER_LIST = range(
    1, 7
)
_NO_RFC7540_PRIORITIES = 9
_ENTRY = struct.Struct(">HI")


class Role(Enum):
    CLIENT = "client"
    SERVER = "server"


class Settings(msgspec.Struct, frozen=True, gc=False):
    """Defaults are those of the protocol. None means no limit."""

    header_table_size: int = 4096
    enable_push: bool = True
    max_concurrent_streams: int | None = None
    initial_window_size: int = DEFAULT_WINDOW
    max_frame_size: int = MIN_FRAME_SIZE
    max_header_list_size: int | None = None
    no_rfc7540_priorities: bool = False


PROTOCOL_DEFAULTS = Settings()

KUBE_APISERVER_SETTINGS = Settings(
    max_concurrent_streams=100,
    initial_window_size=262_144,
    max_frame_size=262_144,
    max_header_list_size=1_048_896,
    no_rfc7540_priorities=True,
)
"""As a kube-apiserver v1.36.2 sends them (apiserver/pkg/server/secure_serving.go:198)."""

KUBE_APISERVER_CONNECTION_WINDOW = DEFAULT_WINDOW + 26_148_865
"""100 streams of 256 KiB; it opens with a WINDOW_UPDATE of 26148865."""

GO_CLIENT_SETTINGS = Settings(
    enable_push=False,
    initial_window_size=4 << 20,
    max_frame_size=MIN_FRAME_SIZE,
    max_header_list_size=10 << 20,
)
"""golang.org/x/net/http2 transport.go: ``transportDefaultStreamFlow``, ``maxHeaderListSize``."""

GO_CLIENT_CONNECTION_WINDOW = DEFAULT_WINDOW + (1 << 30)
"""transport.go ``transportDefaultConnFlow``, on top of the protocol's default."""


def encode_settings(settings: Settings, role: Role) -> bytes:
    """The payload that announces what differs from the protocol's defaults; a client always refuses or allows push."""
    entries: list[tuple[int, int | None]] = []
    if role is Role.CLIENT:
        entries.append((_ENABLE_PUSH, int(settings.enable_push)))
    defaults = PROTOCOL_DEFAULTS
    for number, value, default in (
        (_HEADER_TABLE_SIZE, settings.header_table_size, defaults.header_table_size),
        (_MAX_STREAMS, settings.max_concurrent_streams, None),
        (_INITIAL_WINDOW, settings.initial_window_size, defaults.initial_window_size),
        (_MAX_FRAME_SIZE, settings.max_frame_size, defaults.max_frame_size),
        (_MAX_HEADER_LIST, settings.max_header_list_size, None),
        (_NO_RFC7540_PRIORITIES, int(settings.no_rfc7540_priorities), 0),
    ):
        if value != default:
            entries.append((number, value))
    return b"".join(_ENTRY.pack(number, value) for number, value in entries if value is not None)


@lru_cache(maxsize=256)
def apply_settings(base: Settings, payload: bytes, role: Role) -> Settings:
    """`base` as changed by a SETTINGS payload that came to a side with this role; raises `ProtocolError`.

    Cached because all peers of one kind send the same: thousands of connections then share one value.
    """
    if len(payload) % 6:
        raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, f"SETTINGS of {len(payload)} bytes")
    if len(payload) > 6 * MAX_ENTRIES:
        raise ProtocolError(
            ErrorCode.ENHANCE_YOUR_CALM, f"{len(payload) // 6} settings, allowed are {MAX_ENTRIES}"
        )
    changed = msgspec.structs.asdict(base)
    for number, value in _ENTRY.iter_unpack(payload):
        name = _NAMES.get(number)
        if name is not None:
            changed[name] = _checked(number, value, role)
    return Settings(**changed)


_NAMES = {
    _HEADER_TABLE_SIZE: "header_table_size",
    _ENABLE_PUSH: "enable_push",
    _MAX_STREAMS: "max_concurrent_streams",
    _INITIAL_WINDOW: "initial_window_size",
    _MAX_FRAME_SIZE: "max_frame_size",
    _MAX_HEADER_LIST: "max_header_list_size",
    _NO_RFC7540_PRIORITIES: "no_rfc7540_priorities",
}


def _checked(number: int, value: int, role: Role) -> int | bool:
    name = _NAMES[number]
    if number in (_ENABLE_PUSH, _NO_RFC7540_PRIORITIES):
        if value > 1:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, f"SETTINGS {name}={value}, allowed are 0 and 1")
        if number == _ENABLE_PUSH and value and role is Role.CLIENT:
            raise ProtocolError(ErrorCode.PROTOCOL_ERROR, "SETTINGS enable_push=1 from a server")
        return bool(value)
    if number == _INITIAL_WINDOW and value > MAX_WINDOW:
        raise ProtocolError(ErrorCode.FLOW_CONTROL_ERROR, f"SETTINGS {name}={value}, allowed is {MAX_WINDOW}")
    if number == _MAX_FRAME_SIZE and not MIN_FRAME_SIZE <= value <= MAX_FRAME_SIZE:
        allowed = f"{MIN_FRAME_SIZE} to {MAX_FRAME_SIZE}"
        raise ProtocolError(ErrorCode.PROTOCOL_ERROR, f"SETTINGS {name}={value}, allowed is {allowed}")
    return value
