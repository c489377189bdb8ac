"""The shape of a run: the fleet and its helpers, until the scenario has ended."""

from __future__ import annotations

from typing import Any, cast

from locust import LoadTestShape

from harness.load.session import Session


class ScenarioShape(LoadTestShape):
    """Spawns -u kubelets at -r a second beside one user of each other class; ends the run when the session says so.

    The session (`harness.load.session`) knows when: the scenario's end, -t, a lost worker or a lost process.
    """

    use_common_options = True
    abstract = False

    def tick(self) -> tuple[int, float] | None:
        session: Session = cast(Any, self.runner).environment.swarmlet_session
        session.look()
        if session.over:
            return None
        return session.options.kubelets + session.helpers, session.options.spawn_rate
