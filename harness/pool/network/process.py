"""The process of a pool's links: ``python -m harness.pool.network.process``.

Its standard input has the links (`Links`) on the first line, then an order (`Become`) a line; it ends with that input.
It says ``{"ready": true, "ports": {link: port}}``.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys

import msgspec
import uvloop

from harness.apiserver.process.child import read_config, say
from harness.pool.network.config import Become, Links
from harness.pool.network.proxy import Link


async def run(config: Links) -> None:
    """Until standard input ends. Raises OSError where an address is taken."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    links = {link.name: Link(link, config.pace) for link in config.links}
    for link in links.values():
        await link.start()

    pending = [b""]  # of a line that is not all there

    def become(order: Become) -> None:
        for name, state in order.states.items():
            links[name].become(state)

    def told() -> None:
        data = os.read(0, 1 << 16)
        *lines, pending[0] = (pending[0] + data).split(b"\n")
        for line in lines:
            become(msgspec.json.decode(line, type=Become))
        if not data:
            over.set()

    loop.add_reader(0, told)
    say({"ready": True, "ports": {name: link.port for name, link in links.items()}})
    await over.wait()
    loop.remove_reader(0)
    for link in links.values():
        link.close()


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        uvloop.run(run(read_config(0, Links)))
    except OSError as error:
        say({"error": str(error)})
        sys.exit(2)


if __name__ == "__main__":
    main()
