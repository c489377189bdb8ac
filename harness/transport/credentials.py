"""What a client shows for itself, and where it comes from where it changes while a run goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.wire.errors import ConfigError

TOKEN_FILE_AGE_S = 60.0
"""A token file is read again when what was read is so old: client-go transport/token_source.go, ``period``."""


@dataclass(frozen=True)
class Credentials:
    """`certificate` and `key` are PEM; `expires` is seconds since 1970, None for what says nothing of its end."""

    token: str = field(default="", repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    expires: float | None = None


class Rotation(Protocol):
    """Where fresh credentials come from."""

    def due(self, now: float) -> bool:
        """Whether it is time to ask; `now` is seconds since 1970."""
        ...

    def fetch(self) -> Credentials:
        """Ask. Blocks; raises ConfigError."""
        ...


class TokenFile:
    """A file whose token is replaced from outside, as a kubelet does with a projected service-account token."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._read_at = 0.0

    def due(self, now: float) -> bool:
        return now - self._read_at >= TOKEN_FILE_AGE_S

    def fetch(self) -> Credentials:
        self._read_at = self._clock()
        try:
            token = self.path.read_text("utf-8", "replace").strip()
        except OSError as error:
            raise ConfigError(f"token file {self.path} cannot be read: {error.strerror}") from error
        if not token:
            raise ConfigError(f"token file {self.path} is empty")
        return Credentials(token)


class Bearer:
    """The Authorization header of all transports that share it; `token` may change while they run, "" sends none.

    `on_refused` is called where a server answers 401.
    """

    __slots__ = ("field", "on_refused")

    def __init__(self, token: str = "", on_refused: Callable[[], object] = lambda: None) -> None:
        self.field: tuple[bytes, bytes] | None = None
        self.on_refused = on_refused
        self.replace(token)

    def __repr__(self) -> str:
        return f"<Bearer {'with' if self.field else 'without'} a token>"

    def replace(self, token: str) -> None:
        self.field = (b"authorization", f"Bearer {token}".encode("latin-1")) if token else None
