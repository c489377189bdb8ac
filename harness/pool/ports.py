"""Ports of this machine for programs that must be told where to listen."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens at now."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    try:
        return [taken.getsockname()[1] for taken in sockets]
    finally:
        for taken in sockets:
            taken.close()
