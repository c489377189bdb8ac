"""How a pool's supervisor is told something by a command: a Unix socket in the pool's own folder (0700).

One JSON line there (`disturbances.PoolOrder`), one back: ``{"error": text}`` for what cannot be.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import msgspec

from harness.apiserver.faults.spec import parse_spec
from harness.pool.disturbances import (
    AskBalancer,
    BeginFault,
    ClearFaults,
    Disturbances,
    ListFaults,
    PoolOrder,
)
from harness.pool.restarts import RestartOrder
from harness.wire.errors import ConfigError

NAME = "control.sock"
ANSWER_WITHIN_S = 120.0
_LINE_BYTES = 1 << 16


def obey(disturbances: Disturbances, order: PoolOrder) -> dict[str, Any]:
    """Do it; the answer. A restart blocks until it is over. Raises ConfigError."""
    match order:
        case BeginFault():
            return {"faults": disturbances.begin(parse_spec(order.fault))}
        case ListFaults():
            return {"faults": disturbances.describe(order.member)}
        case ClearFaults():
            return {"ended": disturbances.clear(order.member)}
        case AskBalancer():
            return {"members": disturbances.balanced()}
        case RestartOrder():
            disturbances.restart(order)
            return {}


class Control:
    """Listens from the beginning; each order is obeyed on a thread of its own."""

    def __init__(self, path: Path, disturbances: Disturbances) -> None:
        self._disturbances = disturbances
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(16)
        threading.Thread(target=self._accept, name="control", daemon=True).start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # accept() ends by it; by close() it would not
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            try:
                order = msgspec.json.decode(stream.readline(_LINE_BYTES), type=PoolOrder)
                answer = obey(self._disturbances, order)
            except (msgspec.MsgspecError, ConfigError) as error:
                answer = {"error": str(error)}
            stream.write(msgspec.json.encode(answer) + b"\n")


def tell_pool(path: str, order: PoolOrder) -> Any:
    """The answer of a pool's supervisor; a text where there is none or it refused."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_WITHIN_S)
            connection.connect(path)
            connection.sendall(msgspec.json.encode(order) + b"\n")
            with connection.makefile("rb") as stream:
                answer = msgspec.json.decode(stream.readline(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError) as error:
        return f"the pool's supervisor does not answer: {error}"
    return str(answer["error"]) if "error" in answer else answer
