"""The containers of a pod that has more to them than "all start, then all run": init containers, sidecars, ends.

kk/pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, SyncPod, doBackOff) as seen from outside. Init
containers run one after the other, a sidecar counts as done once it runs; then all others start. One that has ended is
started again where the pod's restartPolicy says so: at once the first time, later after its back-off of 10 s, doubled
up to 300 s. Where nothing is to be started again the pod is complete: sidecars stop, and its phase says how it ended.
"""

from __future__ import annotations

from enum import Enum
from math import inf

from harness.fleet.context import Context
from harness.fleet.pods import Container, Plan

_BACKOFF_S, _BACKOFF_CAP_S = 10.0, 300.0  # kubelet.go: backOffPeriod, MaxContainerBackOff
_FORGET_S = 2 * _BACKOFF_CAP_S  # a container that ran so long begins anew (client-go flowcontrol/backoff.go)


class RunState(Enum):
    WAITING = "waiting"
    STARTING = "being started"
    RUNNING = "running"
    ENDED = "terminated"


class Run:
    """One container."""

    __slots__ = (
        "backoff_s", "code", "container", "due", "ended_at", "init", "last", "restarts", "started_at", "state",
    )  # fmt: skip

    def __init__(self, container: Container, init: bool) -> None:
        self.container = container
        self.init = init
        self.state = RunState.WAITING
        self.due = inf  # when it comes to run, to end, or to be started again
        self.started_at = self.ended_at = 0.0
        self.code = 0
        self.restarts = 0
        self.backoff_s = 0.0  # what it waits, or last waited, before it is started again
        self.last: tuple[int, float, float] | None = None  # exit code, start and end of the run before

    @property
    def path(self) -> str:
        """Its field path below ``spec.``, for events."""
        return f"{'initContainers' if self.init else 'containers'}{{{self.container.name}}}"

    @property
    def done(self) -> bool:
        """Of an init container: whether the next one may start."""
        if self.container.sidecar:
            return self.state is RunState.RUNNING
        return self.state is RunState.ENDED and self.code == 0

    @property
    def crashed(self) -> bool:
        """Whether it waits out its back-off."""
        return self.state is RunState.ENDED and self.due != inf


class Happening(Enum):
    STARTED = "runs"
    ENDED = "has ended"
    BACKOFF = "is to be started again, but not yet"


class Runs:
    """All containers of one pod. `phase` is "" until the pod is complete, then Succeeded or Failed."""

    __slots__ = ("_context", "_restart", "init", "main", "phase")

    def __init__(self, plan: Plan, context: Context) -> None:
        self._context = context
        self._restart = plan.restart
        self.init = [Run(each, init=True) for each in plan.init]
        self.main = [Run(each, init=False) for each in plan.containers]
        self.phase = ""

    @property
    def initialised(self) -> bool:
        return all(run.done for run in self.init)

    @property
    def due(self) -> float:
        """When `advance` has something to do; infinity for never."""
        return min((run.due for run in (*self.init, *self.main)), default=inf)

    def begin(self, now: float) -> list[tuple[Run, Happening]]:
        """The sandbox is there and the first containers run."""
        for run in self._startable():
            run.state, run.due = RunState.STARTING, now
        return self.advance(now)

    def advance(self, now: float) -> list[tuple[Run, Happening]]:
        """Everything that is due, in order, and what follows from it."""
        happened = []
        while self.due <= now and not self.phase:
            run = min((*self.init, *self.main), key=lambda each: each.due)
            happened += self._step(run, now)
            for other in self._startable():
                other.state, other.due = RunState.STARTING, now + self._starting_s()
            self._settle(now)
        return happened

    def stop(self, now: float) -> None:
        """The pod is deleted: what still runs ends."""
        for run in (*self.main, *self.init):
            run.due = inf
            if run.state is RunState.RUNNING:
                run.state, run.ended_at, run.code = RunState.ENDED, now, 0

    # ---- inner -----------------------------------------------------------------------------------------------------
    def _step(self, run: Run, now: float) -> list[tuple[Run, Happening]]:
        run.due = inf
        if run.state is RunState.RUNNING:
            run.state, run.ended_at, run.code = RunState.ENDED, now, run.container.exit_code
            return [(run, Happening.ENDED), *self._again(run, now)]
        if run.state is RunState.ENDED:  # the back-off is over
            run.restarts += 1
            run.last = (run.code, run.started_at, run.ended_at)
            run.state, run.due = RunState.STARTING, now + self._starting_s()
            return []
        run.state, run.started_at = RunState.RUNNING, now
        if run.container.run_s != inf:
            lasts_s = run.container.run_s
            if lasts_s < 0:
                lasts_s = self._context.draw(self._context.options.run_s)
            run.due = self._context.next_relist(now + lasts_s)
        return [(run, Happening.STARTED)]

    def _again(self, run: Run, now: float) -> list[tuple[Run, Happening]]:
        """Whether, and when, it is started again."""
        if run.init and not run.container.sidecar:
            wanted = run.code != 0 and self._restart != "Never"
        else:
            wanted = (
                run.container.sidecar
                or self._restart == "Always"
                or (self._restart != "Never" and run.code != 0)
            )
        if not wanted:
            return []
        if run.ended_at - run.started_at > _FORGET_S:
            run.backoff_s = 0.0
        wait_s = run.backoff_s
        run.backoff_s = min(2 * wait_s, _BACKOFF_CAP_S) or _BACKOFF_S
        run.due = now + wait_s
        return [(run, Happening.BACKOFF)] if wait_s else []

    def _startable(self) -> list[Run]:
        """What may start now and has not been."""
        for run in self.init:
            if run.state is RunState.WAITING:
                return [run]
            if not run.done:
                return []
        return [run for run in self.main if run.state is RunState.WAITING]

    def _starting_s(self) -> float:
        return self._context.draw(self._context.options.start_delay_s)

    def _settle(self, now: float) -> None:
        """Find out whether the pod is complete."""
        failed = any(run.state is RunState.ENDED and not run.done and run.due == inf for run in self.init)
        ended = all(run.state is RunState.ENDED and run.due == inf for run in self.main)
        if not failed and not ended:
            return
        self.phase = "Failed" if failed or any(run.code for run in self.main) else "Succeeded"
        self.stop(now)
