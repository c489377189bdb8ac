"""APIAvailability: which share of probes of /readyz the control plane answered with 200.

Mirrors pkg/measurement/common/api_availability_measurement.go: a probe each pollFrequency over the client's own
connection. Its host-level half asks each master from a pod; here members are told apart by which one answered.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Result, unknown_action
from harness.clusterloader.runtime import Runtime
from harness.wire.gotext import duration
from harness.wire.request import Request, Response


class Availability:
    """Probes of one target."""

    def __init__(self) -> None:
        self.answered = self.failed = self._failed_in_a_row = self.longest_failed = 0

    def add(self, available: bool) -> None:
        if available:
            self.answered += 1
            self._failed_in_a_row = 0
            return
        self.failed += 1
        self._failed_in_a_row += 1
        self.longest_failed = max(self.longest_failed, self._failed_in_a_row)

    @property
    def percentage(self) -> float:
        """100 where nothing was asked, as upstream."""
        total = self.answered + self.failed
        return 100 * self.answered / total if total else 100.0

    def summary(self, frequency_s: float) -> Summary:
        return Summary(self.percentage, duration(self.longest_failed * frequency_s))


class Summary(msgspec.Struct, rename="camel"):
    """As the summary's file has it."""

    availability_percentage: float
    longest_unavailable_period: str


class APIAvailability:
    def __init__(self) -> None:
        self._running = self._paused = False
        self._frequency_s = 0.0
        self._threshold = 0.0
        self._whole = Availability()
        self._members: defaultdict[str, int] = defaultdict(int)

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            self._start(call)
        elif action in ("pause", "unpause"):
            self._paused = action == "pause"
        elif action == "gather":
            return self._gather()
        else:
            raise unknown_action(action, "start", "pause", "unpause", "gather")
        return Outcome()

    def dispose(self) -> None:
        self._running = False

    def _start(self, call: Call) -> None:
        if self._running:
            return
        self._frequency_s = call.params.duration("pollFrequency")
        if self._frequency_s <= 0:
            raise MeasurementError(
                f"params.pollFrequency: {self._frequency_s:g}s is not allowed; expected more than 0"
            )
        self._threshold = call.params.number("threshold", 0.0)
        self._running = True
        call.runtime.tasks.spawn(self._poll(call.runtime))

    async def _poll(self, runtime: Runtime) -> None:
        at = runtime.now
        while True:
            at = max(at + self._frequency_s, runtime.now)
            await runtime.tasks.until(at)
            if not self._running:
                return
            if not self._paused:
                await self._probe(runtime)

    async def _probe(self, runtime: Runtime) -> None:
        """Leaves out the check of a shutdown that has begun, as upstream does."""
        request = Request("get", "GET", "/readyz?exclude=shutdown", "/readyz")
        answer = await runtime.tasks.ask(request)
        available = isinstance(answer, Response) and answer.status == 200
        if isinstance(answer, Response):
            self._members[answer.member] += available
        self._whole.add(available)

    def _gather(self) -> Outcome:
        if not self._running:
            return Outcome()
        self.dispose()
        whole = self._whole
        values: dict[str, object] = {
            "availability": whole.percentage,
            "probes": whole.answered + whole.failed,
            "longest_unavailable_s": whole.longest_failed * self._frequency_s,
            **{f"answered by {member}": count for member, count in sorted(self._members.items())},
        }
        content = {"clusterMetrics": whole.summary(self._frequency_s), "hostMetrics": None}
        failure = ""
        if whole.percentage < self._threshold:
            failure = (
                f"API availability: SLO not fulfilled (expected >= {self._threshold:.2f}, "
                f"got: {whole.percentage:.2f})"
            )
        return Outcome((Result("APIAvailability", values, content),), failure)
