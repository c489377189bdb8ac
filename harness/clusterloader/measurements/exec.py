"""Exec: a command of the config's, run on the machine where the run was started (pkg/measurement/common/exec.go).

A config is data, so a run refuses one that has commands unless it is told to allow them (`refuse_commands`).
`retries`, how often a command that failed is run again, is our own.
"""

from __future__ import annotations

from harness.clusterloader.config import Config
from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome
from harness.clusterloader.messages import MASTER, Execute, Executed
from harness.wire.errors import ConfigError

METHOD = "Exec"
_TIMEOUT_S = 3600.0


class Exec:
    async def execute(self, call: Call) -> Outcome:
        command = call.params.texts("command")
        if not command:
            raise MeasurementError("params.command: [] is not allowed; expected at least a program")
        timeout_s = call.params.duration("timeout", _TIMEOUT_S)
        tries = 1 + max(0, call.params.integer("retries", 0))
        post = call.runtime.post
        error = ""
        for _ in range(tries):
            message = Execute(number=post.number(), command=tuple(command), timeout_s=timeout_s)
            answer = await post.ask(MASTER, message)
            assert isinstance(answer, Executed)
            if not answer.error:
                return Outcome()
            log = f" (its output: logs/{answer.log})" if answer.log else ""
            error = f"{answer.error}{log}"
        raise MeasurementError(error + (f", tried {tries} times" if tries > 1 else ""))

    def dispose(self) -> None:
        """Nothing runs."""


def refuse_commands(config: Config) -> None:
    """Raise ConfigError at the first step that would run a command."""
    for placed in config.placed:
        for index, spec in enumerate(placed.step.measurements):
            if spec.method == METHOD:
                key = f"{placed.key}.measurements[{index}]"
                raise ConfigError(
                    f"{placed.document.where(key)}: {key}: Exec runs a command on this machine; --allow-exec allows it"
                )
