"""A pool's links: their process, and where each listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.pool.network.config import Address, Become, LinkConfig, Links, LinkState
from harness.pool.network.places import Place
from harness.pool.process import Process
from harness.wire.pace import REAL, Pace


class NetworkProcess:
    """Links of one process, which is started at once; blocks until they listen. Raises ConfigError where an address is
    taken, ProcessFailed."""

    def __init__(
        self,
        name: str,
        links: Sequence[tuple[Place, Address, Address]],
        seed: int,
        log: Path,
        on_exit: Callable[[Process, int], None] | None = None,
        pace: Pace = REAL,
    ) -> None:
        """`links`: where each is, where it listens, and what it leads to."""
        configs = tuple(
            LinkConfig(place.name, listen, to, f"{seed}/{place.name}") for place, listen, to in links
        )
        self.process = Process(
            name, "harness.pool.network.process", Links(configs, pace), log, on_exit=on_exit
        )
        try:
            ports = self.process.wait_ready()["ports"]
        except BaseException:
            self.process.stop()
            raise
        self.listening = {
            config.name: Address(config.listen.host, int(ports[config.name]), config.listen.path)
            for config in configs
        }
        """By the place's name."""

    def become(self, states: dict[str, LinkState]) -> None:
        """Of those that are this process's."""
        own = {name: state for name, state in states.items() if name in self.listening}
        if own:
            self.process.send(Become(own))
