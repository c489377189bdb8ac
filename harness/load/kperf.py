"""The Locust user that runs a kperf profile, and the shape that spreads it: one user a worker, each with its share.

A user that is there says so; when the master has heard all of them it tells everyone to begin, in which order they
share (`KperfResults`). So they begin together, and a worker that comes later has no part.
"""

from __future__ import annotations

import secrets
import weakref
from typing import Any

from locust.runners import MasterRunner

from harness.client.machine import Finished
from harness.documents.files import Files
from harness.kperf import LoadProfile, Runner, RunnerOptions, Share, load_profile
from harness.load.byclient import TransportsByClient
from harness.load.context import WorkerContext
from harness.load.kperfresults import GO, READY, SHARE_ENDED
from harness.load.labels import labels_of
from harness.load.shape import ScenarioShape
from harness.load.users import MachineUser, Running

_HEADERS = {"accept-encoding": "gzip"}
"""Go's net/http asks for it and unpacks, so kperf's answers cost the server their compression."""


_waiting: weakref.WeakSet[KperfUser] = weakref.WeakSet()
"""This process's users that have not begun."""


def _go(msg: Any, **_: Any) -> None:
    """The master's word."""
    users: list[str] = msg.data["users"]
    while _waiting:
        _waiting.pop().go(users)


class KperfUser(MachineUser):
    """A share of every runner of the profile that ``--scenario`` names; the locustfile's shape says how many."""

    abstract = True
    kind = "kperf"
    runs_profiles = True

    def on_start(self) -> None:
        """Say that it is there. The machines begin later, at the master's word."""
        self.run_context = self.environment.swarmlet_context
        self.ended = 0
        runner = self.environment.runner
        self.name = f"{max(0, runner.worker_index):05}-{secrets.token_hex(4)}"
        if GO not in runner.custom_messages:  # a process may run several tests
            runner.register_message(GO, _go, concurrent=True)
        _waiting.add(self)
        self.run_context.tell(READY, {"name": self.name})

    def go(self, users: list[str]) -> None:
        self.share = Share(users.index(self.name), len(users))
        self.start_machines()

    def on_stop(self) -> None:
        _waiting.discard(self)
        super().on_stop()

    def build(self, context: WorkerContext) -> list[Running]:
        plan = context.plan
        profile = load_profile(plan.scenario, Files(plan.files))
        self.ends_after = profile.runners
        return [self._runner(profile, number, context) for number in range(profile.runners)]

    def _runner(self, profile: LoadProfile, number: int, context: WorkerContext) -> Running:
        """One runner, over connections of its own."""
        plan = context.plan
        options = RunnerOptions(number, self.share, plan.seed, labels_of(plan.run))
        runner = Runner(profile, options, context.epoch_s)
        transports = {
            str(index): context.transport("kperf", headers=_HEADERS)
            for index in range(connections(profile, number, self.share))
        }
        return Running(runner, TransportsByClient(transports))

    def finished(self, end: Finished) -> None:
        self.ended += 1
        if self.ended == self.ends_after:
            self.run_context.tell(SHARE_ENDED, {"name": self.name})


def connections(profile: LoadProfile, runner: int, share: Share) -> int:
    """How many this share of a runner uses, in the spec where they are most."""
    parts = ((share.of_runner(runner, spec), spec) for spec in profile.specs)
    return max((part.count(spec.conns) for part, spec in parts if part is not None), default=0)


class KperfShape(ScenarioShape):
    """One user for each worker there is at the start, beside the others; ends the run when the session says so."""

    def tick(self) -> tuple[int, float] | None:
        wanted = super().tick()
        if wanted is None:
            return None
        others, rate = wanted
        runner: Any = self.runner
        results = runner.environment.swarmlet_session.work.kperf
        if not results.expected:
            results.expected = runner.worker_count if isinstance(runner, MasterRunner) else 1
        return others + results.expected, rate
