"""HAProxy's configuration and its process."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from harness.pool.balancer.options import BalancerOptions, find_haproxy
from harness.pool.balancer.stats import MemberStats, ask_stats
from harness.pool.guardian import Guarded
from harness.pool.network.config import Address
from harness.pool.network.places import BALANCER
from harness.pool.process import Process, ProcessFailed

READY_WITHIN_S = 20.0
IDLE_S = 86400
"""How long a connection may be silent: longer than any run."""
MAX_CONNECTIONS = 100_000
"""More than a pool on one machine can have (docs/model.md). Each takes two descriptors."""
_OWN_DESCRIPTORS = 256
_LOOK_EVERY_S = 0.05
_TEMPLATE = "haproxy.cfg.j2"


class Behind(msgspec.Struct, frozen=True):
    """A member as the balancer reaches it."""

    name: str
    host: str
    port: int


def render(
    options: BalancerOptions, listen: Address, members: Sequence[Behind], ca_file: str, socket: str
) -> str:
    """HAProxy's configuration."""
    _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  # it is no HTML
    )
    return templates.get_template(_TEMPLATE).render(
        socket=socket,
        max_connections=min(MAX_CONNECTIONS, (descriptors - _OWN_DESCRIPTORS) // 2),
        idle_s=IDLE_S,
        host=_written(listen.host),
        port=listen.port,
        policy=options.policy,
        check=options.check,
        ca_file=ca_file,
        members=[Behind(member.name, _written(member.host), member.port) for member in members],
    )


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Haproxy:
    """`folder` gets its configuration and its socket; `port` of `listen` must be one that is free."""

    def __init__(
        self,
        options: BalancerOptions,
        listen: Address,
        folder: Path,
        log: Path,
        on_exit: Callable[[Process, int], None] | None = None,
    ) -> None:
        self.options = options
        self.listen = listen
        self._binary = find_haproxy(options.binary)
        self._config = folder / "haproxy.cfg"
        self._socket = folder / "haproxy.sock"
        self._log = log
        self._on_exit = on_exit
        self.process: Process | None = None

    def configure(self, members: Sequence[Behind], ca_file: str) -> None:
        """Before its start."""
        self._config.write_text(render(self.options, self.listen, members, ca_file, str(self._socket)))

    def start(self, within_s: float = READY_WITHIN_S) -> Process:
        """Blocks until it listens. Raises ConfigError or ProcessFailed, with nothing left."""
        process = self.process = Process(
            BALANCER,
            "harness.pool.guardian",
            Guarded([self._binary, "-db", "-f", str(self._config)]),
            self._log,
            on_exit=self._on_exit,
        )
        try:
            process.wait_ready()
            self._wait_until_it_answers(process, within_s)
        except BaseException:
            process.stop()
            raise
        return process

    def stop(self) -> None:
        """Safe to call twice."""
        if self.process is not None:
            self.process.stop()

    def members(self) -> dict[str, MemberStats]:
        """What it says of them. Raises OSError or ValueError where it does not."""
        return ask_stats(self._socket)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.options.kind,
            "binary": self._binary,
            "policy": self.options.policy,
            "check": self.options.check,
        }

    def _wait_until_it_answers(self, process: Process, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while True:
            try:
                self.members()
                return
            except (OSError, ValueError) as error:
                why = str(error)
            if not process.alive:
                raise ProcessFailed(
                    f"haproxy {self._binary} ended; its log {self._log} ends: {process.tail()}"
                )
            if time.monotonic() > deadline:
                raise ProcessFailed(f"haproxy {self._binary}: not ready within {within_s:g} s: {why}")
            time.sleep(_LOOK_EVERY_S)
