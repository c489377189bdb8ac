"""Shows a run's view: tabs and /metrics in Locust's web UI where there is one, /metrics at an address of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.load.live.exposition import MetricsServer, registry_of
from harness.load.live.tab import add_tabs
from harness.load.live.view import View


class Show:
    """From now until `end`. `address` is HOST and PORT to serve at, None for none; `wall` the clock of the view's
    times. Raises ConfigError."""

    def __init__(
        self, environment: Any, view: View, address: tuple[str, int] | None, wall: Callable[[], float]
    ) -> None:
        runner = environment.runner
        registry = registry_of(
            view, lambda: int(runner.user_count), lambda: int(getattr(runner, "worker_count", 0))
        )
        if environment.web_ui is not None:
            add_tabs(environment.web_ui, view, registry, wall)
            if (
                environment.shape_class is not None
            ):  # a form for -u, -r and -t would be too late: the plan is made
                environment.shape_class.use_common_options = False
            for user in environment.user_classes:  # nor may it ask for a host
                user.host = user.host or view.target
        self._server = None if address is None else MetricsServer(address, registry)

    def end(self) -> None:
        if self._server is not None:
            self._server.stop()
