"""RestartApiserver: one apiserver, drawn at random, ends and is started again; the step ends when it is ready.

Mirrors pkg/measurement/common/restart_apiserver.go, which moves a static pod's manifest away and back over SSH. Here
the members of the run's own pool can be restarted; of any other target it is skipped aloud.
"""

from __future__ import annotations

from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Unsupported
from harness.clusterloader.messages import MASTER, Restart, Restarted

_DOWN_S = 30
_READY_TIMEOUT_S = 600.0


class RestartApiserver:
    async def execute(self, call: Call) -> Outcome:
        runtime = call.runtime
        message = Restart(
            number=runtime.post.number(),
            down_s=max(0, call.params.integer("downSeconds", _DOWN_S)),
            ready_timeout_s=call.params.duration("readyTimeout", _READY_TIMEOUT_S),
        )
        answer = await runtime.post.ask(MASTER, message)
        assert isinstance(answer, Restarted)
        if answer.unsupported:
            raise Unsupported(answer.unsupported)
        if answer.error:
            raise MeasurementError(f"{answer.member or 'restart'}: {answer.error}")
        runtime.note("apiserver-restarted", step=call.step, member=answer.member, seconds=answer.seconds)
        return Outcome()

    def dispose(self) -> None:
        """Nothing runs."""
