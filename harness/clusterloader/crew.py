"""The executors beside the one that leads a test: finding them, telling them what to do and when, hearing from them.

The leader runs the whole test; of each phase it does one share itself and orders the others. Workers may be on
different machines, whose clocks differ: before each phase the leader asks every executor for its time, halves the
round trip as NTP does, keeps the answer that came quickest of late, and gives the start of the phase in the executor's
own time. What is left of the error is at most half of that round trip, and is noted (`executor-clock`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from harness.clusterloader.messages import (
    MASTER,
    AnyMessage,
    Dismiss,
    Order,
    Ping,
    Pong,
    Recruit,
    Recruits,
    Report,
)
from harness.clusterloader.runtime import FailureLog, Runtime
from harness.clusterloader.tasks import Future

JOIN_WITHIN_S = 60.0
"""An executor reads the test first, which takes a second or so, while its worker's kubelets register."""
PINGS = 5  # at the start; then one before each phase
CLOCKS_KEPT_S = 300.0  # crystals drift by up to 50 us a second: 15 ms in that time
LEAD_S = 0.1
"""From the order to the start of a phase, beside two round trips: what a worker's loop may be late with reading it."""
MakeOrder = Callable[[int, int, float], Order]
"""The order with this number for this share, of an executor whose clock is so much ahead."""

SILENT_S = 20.0
"""Reports come every second. Locust gives up on a worker after 10 s, and its master says so first."""


class _Clock(NamedTuple):
    asked_s: float
    trip_s: float
    offset_s: float


class _Member:
    """One executor and its clock: what its time is ahead of ours."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._clocks: deque[_Clock] = deque(maxlen=16)

    def add(self, clock: _Clock) -> None:
        self._clocks.append(clock)

    def best(self, now: float) -> _Clock:
        late = [clock for clock in self._clocks if now - clock.asked_s <= CLOCKS_KEPT_S]
        return min(late or self._clocks, key=lambda clock: clock.trip_s)


class Job:
    """What one executor was asked for, and how far it is."""

    def __init__(self, name: str, number: int, now: float) -> None:
        self.name = name
        self.number = number
        self.heard_s = now
        self.done = self.total = 0
        self.ended: Future[Report] = Future()


class Crew:
    """`of` is how many executors there are, the leader included: 1 until `gather` has found others."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._post = runtime.post
        self._members: list[_Member] = []

    @property
    def of(self) -> int:
        return 1 + len(self._members)

    # ---- who -------------------------------------------------------------------------------------------------------
    async def gather(self, wanted: int) -> None:
        """Find executors until there are `wanted`, or as many as there are workers."""
        if wanted <= 1:
            return
        tasks = self._runtime.tasks
        deadline = tasks.now + JOIN_WITHIN_S
        asked = self._post.ask(MASTER, Recruit(number=self._post.number(), most=wanted - 1))
        found = asked.value if await tasks.either(asked, deadline) else None
        if not isinstance(found, Recruits):
            self._runtime.note("warning", message="the run's master names no executors")
            return
        members = [_Member(name) for name in found.members]
        waits = [tasks.spawn(self._join(member, deadline)) for member in members]
        joined = [await wait for wait in waits]
        for member, has in zip(members, joined, strict=True):
            if not has:
                text = f"{member.name} did not join the executors within {JOIN_WITHIN_S:g} s"
                self._runtime.note("warning", message=text)
        self._members = [member for member, has in zip(members, joined, strict=True) if has]
        names = [found.you, *(member.name for member in self._members)]
        self._runtime.note("executors", count=self.of, wanted=wanted, members=names)

    async def _join(self, member: _Member, deadline: float) -> bool:
        for _ in range(PINGS):
            if not await self._ping(member, deadline):
                return False
        return True

    async def _ping(self, member: _Member, deadline: float) -> bool:
        tasks = self._runtime.tasks
        asked_s, number = tasks.now, self._post.number()
        reply = self._post.ask(member.name, Ping(number=number))
        if not await tasks.either(reply, deadline):
            self._post.close(number)
            return False
        pong, trip_s = reply.value, tasks.now - asked_s
        if isinstance(pong, Pong):
            member.add(_Clock(asked_s, trip_s, pong.at_s - asked_s - trip_s / 2))
        return True

    # ---- what ------------------------------------------------------------------------------------------------------
    async def start_time(self) -> float:
        """When a phase that is ordered now can begin everywhere, by our clock."""
        tasks = self._runtime.tasks
        deadline = tasks.now + 1.0  # who is busy has older clocks
        for wait in [tasks.spawn(self._ping(member, deadline)) for member in self._members]:
            await wait
        now = tasks.now
        clocks = {member.name: member.best(now) for member in self._members}
        self._runtime.note(
            "executor-clock",
            offsets_ms={name: clock.offset_s * 1000 for name, clock in clocks.items()},
            uncertain_ms={name: clock.trip_s * 500 for name, clock in clocks.items()},
        )
        return now + LEAD_S + 2 * max((clock.trip_s for clock in clocks.values()), default=0.0)

    def order(self, make: MakeOrder, of: int, changed: Callable[[], None]) -> list[Job]:
        """Order shares 1 to `of` - 1. `changed` is called whenever one of them is heard of."""
        now = self._runtime.now
        jobs = []
        for share, member in enumerate(self._members[: of - 1], 1):
            job = Job(member.name, self._post.number(), now)
            order = make(job.number, share, member.best(now).offset_s)
            self._post.listen(member.name, order, self._hear(job, changed))
            jobs.append(job)
        return jobs

    def _hear(self, job: Job, changed: Callable[[], None]) -> Callable[[AnyMessage], None]:
        def heard(report: AnyMessage) -> None:
            if not isinstance(report, Report):
                return
            job.heard_s = self._runtime.now
            job.done, job.total = report.done, report.total
            if report.ended:
                self._post.close(job.number)
                job.ended.set(report)
            changed()

        return heard

    def dismiss(self) -> None:
        """Have every executor give up what it does."""
        for member in self._members:
            self._post.tell(member.name, Dismiss(number=self._post.number()))

    async def finish(self, jobs: Iterable[Job], failures: FailureLog) -> None:
        """Wait for every share; its failures are added. One that falls silent has failed: what it did is not known."""
        tasks, api = self._runtime.tasks, self._runtime.api
        for job in jobs:
            while not await tasks.either(job.ended, job.heard_s + SILENT_S):
                if tasks.now < job.heard_s + SILENT_S:
                    continue  # it was heard of while we waited
                self._post.close(job.number)
                known = f"{job.done} of its {job.total} operations" if job.total else "none of its operations"
                text = (
                    f"executor {job.name} has said nothing for {SILENT_S:g} s: {known} are known to be done"
                )
                self._post.tell(job.name, Dismiss(number=job.number))
                self._runtime.note("executor-lost", message=text)
                failures.add(text, "executor lost")
                break
            else:
                report = job.ended.value
                if report.error:
                    failures.add(f"executor {job.name}: {report.error}", "executor refused")
                failures.absorb(report.failures, report.more)
                api.operations.update(report.operations)
                api.retries.update(report.retries)
