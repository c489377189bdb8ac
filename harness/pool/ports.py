"""Ports of this machine for programs that must be told where to listen."""

from __future__ import annotations

import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000  # below are those that services are known by
_TRIES = 1000


def ephemeral_ports() -> range | None:
    """Those that the kernel gives to whoever asks for any, and to connections; None where it does not say."""
    try:
        low, high = map(int, EPHEMERAL.read_text().split())
    except (OSError, ValueError):
        return None
    return range(low, high + 1)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens at now, from below the ephemeral ones: of those another process, or a
    connection, may be given one before the program that it is meant for listens there."""
    taken = ephemeral_ports()
    below = range(_LOWEST, taken.start) if taken else range(0)
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            sockets.append(_bound(below))
        return [bound.getsockname()[1] for bound in sockets]
    finally:
        for bound in sockets:
            bound.close()


def _bound(below: range) -> socket.socket:
    """One of `below`, drawn, that is free; any, where they are few or taken."""
    for _ in range(_TRIES if below else 0):
        try:
            return socket.create_server((HOST, random.choice(below)))
        except OSError:
            continue
    return socket.create_server((HOST, 0))
