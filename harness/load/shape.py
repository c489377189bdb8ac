"""The shape of a run: the fleet and its helpers, until the scenario has ended."""

from __future__ import annotations

from typing import Any, cast

from locust import LoadTestShape
from locust.runners import MasterRunner

from harness.load.session import Session


class ScenarioShape(LoadTestShape):
    """Spawns -u kubelets at -r a second of the run's pace beside one user of each other class; ends the run when the
    session says so.

    The session (`harness.load.session`) knows when: the scenario's end, -t, a lost worker or a lost process.
    """

    use_common_options = True
    abstract = False

    def tick(self) -> tuple[int, float] | None:
        runner = cast(Any, self.runner)
        session: Session = runner.environment.swarmlet_session
        if session.over:
            session.ending = True
            if isinstance(runner, MasterRunner):
                runner.stop()  # waits for the workers: what their users count as they stop comes with the last report
            return None
        options = session.options
        return options.kubelets + session.helpers, options.spawn_rate / options.pace.factor
