"""What the process of links is told: the links, and what they are like from now on."""

from __future__ import annotations

import msgspec

from harness.pool.network.shaping import OPEN, Shape
from harness.wire.pace import REAL, Pace


class Address(msgspec.Struct, frozen=True):
    """A TCP address, or the path of a Unix socket; `port` 0 is a free one, to listen on."""

    host: str = ""
    port: int = 0
    path: str = ""


class LinkConfig(msgspec.Struct, frozen=True):
    """One link: where it listens, and where what connects there is led. `seed` draws its jitter and its losses."""

    name: str
    listen: Address
    to: Address
    seed: str


class LinkState(msgspec.Struct, frozen=True):
    """What a link is like, both ways. `reset` breaks connections, those that come too."""

    shape: Shape = OPEN
    reset: bool = False


class Links(msgspec.Struct, frozen=True):
    """All of one process. Times of their shapes are at `pace`."""

    links: tuple[LinkConfig, ...]
    pace: Pace = REAL


class Become(msgspec.Struct, frozen=True):
    """What links are like from now on, by name."""

    states: dict[str, LinkState]
