"""What the store's and a member's process have in common: how they are told what to do, and when they end.

A process reads its configuration as JSON from the first line of its standard input, prints one JSON line when it is
ready (``{"error": ...}`` when it cannot do what it was told), and ends on SIGTERM or when its standard input does:
whoever started it holds the other end of that pipe and cannot die without closing it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import uvloop

from harness.wire.errors import ConfigError, SwarmletError

T = TypeVar("T")


def read_config(descriptor: int, type_: type[T]) -> T:
    """The first line of a descriptor as a `type_`. Raises ConfigError."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(descriptor, 1)  # not beyond the line: the rest says when our parent is gone
        if not byte:
            break
        line += byte
    try:
        return msgspec.json.decode(line, type=type_)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"the first line of standard input is no configuration: {error}") from None


def say(message: dict[str, Any]) -> None:
    print(msgspec.json.encode(message).decode(), flush=True)


def run(config_type: type[T], body: Callable[[T, asyncio.Event], Awaitable[None]]) -> int:
    """Read the configuration and run `body(config, stop)` on uvloop until it returns; `stop` is set when it is to end.
    The exit code of the process."""

    async def run_body() -> None:
        config = read_config(0, config_type)
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # Ctrl-C is for whoever started us, who then ends us in order

        def parent_wrote() -> None:
            if not os.read(0, 4096):
                stop.set()

        loop.add_reader(0, parent_wrote)
        try:
            await body(config, stop)
        finally:
            loop.remove_reader(0)

    try:
        uvloop.run(run_body())
    except SwarmletError as error:
        say({"error": str(error)})
        return error.exit_code
    return 0


def main(config_type: type[T], body: Callable[[T, asyncio.Event], Awaitable[None]]) -> None:
    sys.exit(run(config_type, body))
