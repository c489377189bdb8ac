"""The scenario's machine on one worker: the one that leads, or the one that does shares of its phases.

Messages between workers go through Locust's master (`desk`). A worker that no message reaches has no follower, nor
reads the scenario.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.client.machine import Finished, Note, Sample, Tell, Told
from harness.clusterloader.messages import AnyMessage, decode, encode
from harness.load.scenarios import follower_machine
from harness.load.shell import Shell
from harness.wire.errors import SwarmletError

if TYPE_CHECKING:
    from harness.load.context import WorkerContext

MESSAGE = "swarmlet-executor"
"""Locust's message, both ways: ``{"to", "body"}`` to the master, ``{"by", "body"}`` to a worker."""

USER = "clusterloader"
_KEY = ("told",)

Send = Callable[[str, bytes], None]


class Executors:
    """`send(to, body)` brings a message to the master, which passes it on."""

    def __init__(self, context: WorkerContext, send: Send) -> None:
        self._context = context
        self._send = send
        self._shell: Shell | None = None
        self._own = False

    def lead(self, shell: Shell) -> None:
        """The scenario's own user is here."""
        self._shell = shell

    def tell(self, to: str, message: AnyMessage) -> None:
        self._send(to, encode(message))

    def told(self, by: str, body: bytes) -> None:
        """Somebody tells this worker's machine; the first message to a worker that does not lead makes its follower."""
        message = decode(body)
        if self._shell is None:
            self._shell = self._follow()
        if self._shell is not None:
            self._shell.feed(Told(_KEY, by, message))

    def close(self) -> None:
        if self._shell is not None and self._own:
            self._shell.stop()

    def _follow(self) -> Shell | None:
        context = self._context
        try:
            machine = follower_machine(context)
            transport = context.transport(USER)
        except SwarmletError as error:
            self._failed(error)
            return None
        shell = Shell(
            USER,
            machine,
            transport,
            context.timers,
            context.statistics,
            self._noted,
            self._finished,
            self._failed,
        )
        self._own = True
        shell.start()
        return shell

    def _noted(self, item: Note | Sample | Tell) -> None:
        if isinstance(item, Tell):
            self.tell(item.to, item.message)
        elif isinstance(item, Sample):
            self._context.statistics.sample(USER, item)
        else:
            self._context.tell(item.kind, {"user": USER, **item.fields})

    def _finished(self, _: Finished) -> None:
        """A follower never has: it waits for orders until the run ends."""

    def _failed(self, error: Exception) -> None:
        text = str(error) if isinstance(error, SwarmletError) else repr(error)
        self._context.tell("user-failed", {"user": f"{USER} executor", "error": text})
