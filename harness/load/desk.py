"""What Locust's master does for a scenario that runs on a worker: passes messages on, runs commands, restarts members,
asks Prometheus.

A worker is known to the others by its name, ``worker-<index>``; in a run without workers the one process is both.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent

from harness.apiserver.faults.poolkinds import SILENCING
from harness.clusterloader.messages import (
    MASTER,
    AnyMessage,
    Execute,
    Executed,
    FailNodes,
    Queried,
    Query,
    RebootNodes,
    Recruit,
    Recruits,
    Restart,
    Restarted,
    decode,
    encode,
)
from harness.load.executors import MESSAGE
from harness.load.running import Command, run_command
from harness.load.workers.failures import ORDERED, carry_out, nodes_of
from harness.pool.process import Process
from harness.pool.restarts import RestartOrder

LOCAL = "worker-0"
RESTART_EVENTS = ("member-ended", "member-restarted", "member-restart-failed")
_SHOWN_LINES = 200  # of a command's output that become events; all of it is in its log

Tell = Callable[[str, dict[str, Any]], None]


class Desk:
    """`tell` keeps an event of the run; `logs` is where commands' output goes; `seed` draws the member that is
    restarted; without `allow_exec` no command is run."""

    def __init__(
        self, environment: Any, tell: Tell, logs: Path, seed: int, *, allow_exec: bool = False
    ) -> None:
        self.crew: set[str] = set()
        """The workers that share a scenario's operations."""
        self._pool: Process | None = None
        self._members: tuple[str, ...] = ()
        self._allow_exec = allow_exec
        self._environment = environment
        self._tell = tell
        self._logs = logs
        self._rng = random.Random(f"{seed}/desk")
        self._commands: list[Command] = []
        self._restarts: dict[str, tuple[str, int]] = {}  # by member: who asked, under which number
        self.away: set[str] = set()
        """Members that ended unasked, or that a fault has taken away: nobody restarts these."""
        self.query: Callable[[Query], Queried] | None = None
        """Asks the run's Prometheus; blocks its greenlet."""

    def use_pool(self, pool: Process, members: tuple[str, ...]) -> None:
        """The run's own, whose members can be restarted."""
        self._pool, self._members = pool, members

    def take(self, by: str, to: str, body: bytes) -> None:
        """A message of the worker `by`."""
        if to != MASTER:
            self._deliver(to, by, body)
            return
        message = decode(body)
        if isinstance(message, Recruit):
            others = tuple(self._others(by)[: message.most])
            self.crew = {by, *others} if others else set()
            self._reply(by, Recruits(number=message.number, you=by, members=others))
        elif isinstance(message, Execute):
            gevent.spawn(self._execute, by, message)
        elif isinstance(message, Restart):
            self._restart(by, message)
        elif isinstance(message, FailNodes | RebootNodes):
            self._to_all(body)
        elif isinstance(message, Query) and self.query is not None:
            gevent.spawn(self._ask, self.query, by, message)

    def name_of(self, client_id: str) -> str:
        """A worker's name by Locust's id of it."""
        return f"worker-{self._environment.runner.get_worker_index(client_id)}"

    def stop(self) -> None:
        """End the commands that still run."""
        for command in self._commands:
            command.kill(signal.SIGKILL)

    # ---- messages --------------------------------------------------------------------------------------------------
    def _workers(self) -> dict[str, str]:
        """Locust's ids of the workers that are there, by name; none in a run without."""
        clients = getattr(self._environment.runner, "clients", None)
        if clients is None:
            return {}
        return {self.name_of(client.id): client.id for client in clients.all if client.state != "missing"}

    def _others(self, by: str) -> list[str]:
        return sorted(name for name in self._workers() if name != by)

    def _reply(self, to: str, message: AnyMessage) -> None:
        self._deliver(to, MASTER, encode(message))

    def _deliver(self, to: str, by: str, body: bytes) -> None:
        """A worker that has gone gets nothing; whoever waits for its answer notices."""
        runner = self._environment.runner
        if not hasattr(runner, "clients"):
            gevent.spawn(self._hand_over, by, body)  # later: the asker is in the middle of its turn
            return
        client_id = self._workers().get(to)
        if client_id is not None:
            runner.send_message(MESSAGE, {"by": by, "body": body}, client_id)

    def _to_all(self, body: bytes) -> None:
        """Every worker looks which of the nodes are its own."""
        runner = self._environment.runner
        if not hasattr(runner, "clients"):  # later: the asker is in the middle of its turn
            gevent.spawn(lambda: carry_out(body, nodes_of(runner), self._tell))
            return
        for client_id in self._workers().values():
            runner.send_message(ORDERED, {"body": body}, client_id)

    def _hand_over(self, by: str, body: bytes) -> None:
        context = self._environment.swarmlet_context
        if context is not None:
            context.executors.told(by, body)

    def _ask(self, query: Callable[[Query], Queried], by: str, message: Query) -> None:
        self._reply(by, query(message))

    # ---- commands --------------------------------------------------------------------------------------------------
    def _execute(self, by: str, message: Execute) -> None:
        if not self._allow_exec:
            self._reply(by, Executed(number=message.number, error="--allow-exec was not given", log=""))
            return
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"exec-{len(self._commands) + 1}.log"
        command = Command(message.command, message.timeout_s, log)
        self._commands.append(command)
        self._tell("exec-started", {"command": list(command.words), "log": log.name})
        shown = 0

        def line(text: str) -> None:
            nonlocal shown
            shown += 1
            if shown <= _SHOWN_LINES:
                self._tell("exec-output", {"line": text})

        error = run_command(command, line)
        self._tell("exec-ended", {"command": list(command.words), "error": error, "lines": shown})
        self._reply(by, Executed(number=message.number, error=error, log=log.name))

    # ---- members ---------------------------------------------------------------------------------------------------
    def _restart(self, by: str, message: Restart) -> None:
        number = message.number
        if self._pool is None:
            why = "the target is no pool of this run's, whose apiservers it could end and start"
            self._reply(by, Restarted(number=number, unsupported=why))
            return
        free = [name for name in self._members if name not in self._restarts and name not in self.away]
        if not free:
            self._reply(by, Restarted(number=number, error="every member is away or being restarted"))
            return
        member = self._rng.choice(free)
        self._restarts[member] = (by, number)
        self._pool.send(RestartOrder(member, message.down_s, message.ready_timeout_s))

    def disturbed(self, kind: str, event: dict[str, Any]) -> None:
        """The pool tells of a fault."""
        if event.get("fault_kind") in SILENCING:
            change = self.away.discard if kind == "fault-ended" else self.away.add
            change(str(event["member"]))

    def restarted(self, kind: str, event: dict[str, Any]) -> None:
        """The pool tells what became of a restart."""
        if kind == "member-ended":
            return
        if kind == "member-restarted":
            self.away.discard(str(event["member"]))
        by, number = self._restarts.pop(str(event["member"]), ("", 0))
        member, error = str(event["member"]), str(event.get("error", ""))
        done = Restarted(number=number, member=member, seconds=float(event["seconds"]), error=error)
        if by:
            self._reply(by, done)
