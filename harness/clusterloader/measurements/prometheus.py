"""What every measurement in PromQL has in common: a window of the test, and how Prometheus is asked about it.

Mirrors cl2/pkg/measurement/common/prometheus_measurement.go: start remembers the time, gather asks about what was
since then, thresholds count with enableViolations only. Without a Prometheus these are skipped, as upstream skips
them. A query that gets no answer is tried again, for a minute and not for upstream's 15: a Prometheus on the same
machine is there or it is gone. One that Prometheus does not understand fails at once, in its own words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Params,
    Unsupported,
    unknown_action,
)
from harness.clusterloader.messages import MASTER, Queried, Query
from harness.clusterloader.runtime import Runtime
from harness.wire.promql import QueryFailed, VectorSample, range_of, read_vector

NO_PROMETHEUS = "needs PromQL; give --prometheus-url, or put a prometheus binary on PATH"
RETRY_EVERY_S = 5.0
RETRY_FOR_S = 60.0
_SHOWN = 200  # characters of a query that a message quotes


class Window:
    """A part of the test, `since_s` to `until_s` in seconds since 1970, and the Prometheus that saw it."""

    def __init__(self, runtime: Runtime, since_s: float, until_s: float) -> None:
        self._runtime = runtime
        self.since_s, self.until_s = since_s, until_s

    @property
    def range(self) -> str:
        """The window's length as PromQL writes it."""
        return range_of(self.until_s - self.since_s)

    async def vector(self, expression: str, at_s: float | None = None) -> list[VectorSample]:
        """The instant vector at the window's end, or at `at_s`. Raises MeasurementError."""
        runtime = self._runtime
        give_up_at = runtime.now + RETRY_FOR_S
        at_s = self.until_s if at_s is None else at_s
        while True:
            query = Query(number=runtime.post.number(), expression=expression, at_s=at_s)
            answer = await runtime.post.ask(MASTER, query)
            assert isinstance(answer, Queried)
            why = answer.error
            if not why:
                try:
                    return read_vector(answer.status, answer.body)
                except QueryFailed as error:
                    why = str(error)
            final = not answer.error and answer.status < 500 and answer.status != 429
            if final or runtime.now + RETRY_EVERY_S > give_up_at:
                raise MeasurementError(f"Prometheus: {why} (query: {expression:.{_SHOWN}})")
            await runtime.tasks.until(runtime.now + RETRY_EVERY_S)


class Gatherer(Protocol):
    """One method: what it takes at its start, and what it asks at its end."""

    def configure(self, params: Params) -> None:
        """Raises MeasurementError."""
        ...

    async def gather(self, window: Window, call: Call) -> Outcome:
        """Raises MeasurementError. The outcome's failure counts where the call has enableViolations."""
        ...


class PrometheusMeasurement:
    """`method` is its name in messages."""

    def __init__(self, method: str, gatherer: Gatherer) -> None:
        self._method = method
        self._gatherer = gatherer
        self._since_s: float | None = None

    async def execute(self, call: Call) -> Outcome:
        params = call.params
        client = params.text("prometheusClient", "inCluster")
        if client == "managed":
            raise Unsupported("asks the managed Prometheus of a cloud (prometheusClient: managed)")
        if client != "inCluster":
            raise MeasurementError(f"params.prometheusClient: {client!r} is not allowed; expected inCluster")
        if not call.runtime.prometheus:
            raise Unsupported(NO_PROMETHEUS)
        action = params.text("action")
        if action == "start":
            self._gatherer.configure(params)
            self._since_s = call.runtime.wall_s
            return Outcome()
        if action != "gather":
            raise unknown_action(action, "start", "gather")
        if self._since_s is None:
            raise MeasurementError(f"{self._method} has not been started")
        window = Window(call.runtime, self._since_s, call.runtime.wall_s)
        outcome = await self._gatherer.gather(window, call)
        if outcome.failure and not params.boolean("enableViolations", False):
            message = f"{self._method} - {call.identifier}: {outcome.failure} (enableViolations is not set)"
            call.runtime.note("warning", message=message)
            return outcome._replace(failure="")
        return outcome

    def dispose(self) -> None:
        """Nothing runs."""


def maker(method: str, gatherer: Callable[[], Gatherer]) -> Callable[[], PrometheusMeasurement]:
    """What makes measurements of one method, for the table of methods."""
    return lambda: PrometheusMeasurement(method, gatherer())
