"""The faults that are done to a pool from outside its members: begun, told, ended. One object a supervisor.

Each active fault has a thread, which waits for its end: its length, `clear`, or the pool's end. A process has one fault
at a time; links may have several in turn, of which the last one counts.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from harness.apiserver.faults.kinds import AnyFault
from harness.apiserver.faults.poolkinds import (
    CutLink,
    KillPart,
    NetworkFault,
    PausePart,
    RestartParts,
    SlowLink,
)
from harness.apiserver.faults.spec import ALL, FaultSpec
from harness.pool.faults import KEEPS_NOTHING, processes
from harness.pool.network.config import LinkState
from harness.pool.network.places import NETWORK, Parts, Place
from harness.pool.network.shaping import Shape
from harness.pool.pausing import Paused
from harness.pool.process import Process
from harness.pool.restarts import Part, RestartOrder, end_in_order, kill, restart
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace

CLOSED_WITHIN_S = 1.0
READY_WITHIN_S = 60.0
"""From the start of a process that was stopped or killed to its readiness; more and the fault has failed."""


class Around(Protocol):
    """What is needed of what stands around a pool's members: the links that there are, the balancer."""

    @property
    def placed(self) -> Sequence[Place]: ...

    def reshape(self, states: dict[str, LinkState]) -> None:
        """What links are like from now on, by their places' names."""
        ...

    def balanced(self) -> dict[str, dict[str, Any]]:
        """What the balancer says of each member. Raises ConfigError."""
        ...


class Disturbed(Protocol):
    """What is needed of a pool; `logs` is a folder."""

    parts: Parts
    logs: Path

    @property
    def around(self) -> Around: ...

    def part(self, name: str) -> Part:
        """A process by its name. Raises ConfigError where there is none that has been started."""
        ...


class Active:
    """One fault on one part, or on all that it is done to in turn."""

    def __init__(
        self, number: int, spec: FaultSpec, member: str, names: Sequence[str], started_wall_s: float
    ) -> None:
        self.number = number
        self.spec = spec
        self.member = member
        self.names = tuple(names)
        self.started_wall_s = started_wall_s
        self.ending = threading.Event()
        self.thread: threading.Thread | None = None

    def describe(self) -> dict[str, Any]:
        """As `apiserver.faults.active.Running` describes one of a member."""
        return {
            "id": self.number,
            "fault": FaultSpec(self.spec.fault).text,
            "kind": self.spec.fault.kind,
            "member": self.member,
            "seconds": self.spec.for_s,
            "started": self.started_wall_s,
            "hits": 0,
        }


class Disturbances:
    """`close` is due before the pool's processes are told to end. `tell` hears of each start and end as a member's
    faults are told (`fault-started`, `fault-ended`, `fault-failed`), and what becomes of processes (`restarts`).
    Lengths and times are the model's, at `pace`."""

    def __init__(self, pool: Disturbed, tell: Callable[[dict[str, Any]], None], pace: Pace = REAL) -> None:
        self._pool = pool
        self._tell = tell
        self._pace = pace
        self._wall = pace.stamps(time.time)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._active: dict[int, Active] = {}
        self._numbers = itertools.count(1)
        self._states: dict[str, dict[int, LinkState]] = {}  # by place, then by fault

    # ---- what is ordered -------------------------------------------------------------------------------------------
    def begin(self, spec: FaultSpec) -> list[dict[str, Any]]:
        """What has begun, described. Raises ConfigError where it cannot be done, with nothing begun."""
        fault = spec.fault
        if isinstance(fault, NetworkFault):
            work = self._network(fault)
            return [self._run(self._new(spec, NETWORK, ()), work)]
        names = processes(spec, self._pool.parts)
        self._check_parts(fault, [self._pool.part(name) for name in names])
        if isinstance(fault, RestartParts):
            return [self._run(self._new(spec, spec.member, names), self._rolling)]
        work = self._pause if isinstance(fault, PausePart) else self._end_and_start
        return [self._run(active, work) for active in self._new_each(spec, names)]

    def restart(self, order: RestartOrder) -> None:
        """Carry out an order of a scenario's (ClusterLoader2's RestartApiserver), as a `restart`; blocks."""
        try:
            fault = RestartParts(order.down_s or 0.0, 0.0, order.ready_timeout_s)
            active = self._new(FaultSpec(fault, order.member), order.member, [order.member])
        except (ConfigError, ValueError) as error:  # its times may be none that a fault can have
            failed = {"kind": "member-restart-failed", "member": order.member, "seconds": 0.0}
            self._tell({**failed, "error": str(error)})
            return
        self._run(active, self._rolling)
        assert active.thread is not None, "begun"
        active.thread.join()

    def clear(self, member: str = ALL) -> int:
        """End all, or those of one part; how many there were. Waits until they have ended."""
        ended = [each for each in self._all() if member in (ALL, each.member)]
        for active in ended:
            active.ending.set()
        for active in ended:
            if active.thread is not None:
                active.thread.join(READY_WITHIN_S)
        return len(ended)

    def describe(self, member: str = ALL) -> list[dict[str, Any]]:
        """Active ones, of all parts or of one."""
        return [active.describe() for active in self._all() if member in (ALL, active.member)]

    def close(self) -> None:
        """The pool ends: what stands still goes on, so that it can be told to end; nothing is started again. Who waits
        for a process to end is not waited for, since the pool ends that now."""
        self._over.set()
        active = self._all()
        for each in active:
            each.ending.set()
        deadline = time.monotonic() + CLOSED_WITHIN_S
        for each in active:
            if each.thread is not None:
                each.thread.join(max(0.0, deadline - time.monotonic()))

    def _all(self) -> list[Active]:
        with self._lock:
            return list(self._active.values())

    @staticmethod
    def _check_parts(fault: AnyFault, parts: Sequence[Part]) -> None:
        for part in parts:
            name = part.process.name
            if not part.process.alive:
                raise ConfigError(f"fault {fault.kind}: {name} does not run")
            if part.start is None and not isinstance(fault, PausePart):
                raise ConfigError(f"fault {fault.kind}: {name} {KEEPS_NOTHING}")

    def balanced(self) -> dict[str, dict[str, Any]]:
        """What the balancer says of each member. Raises ConfigError where there is none."""
        return self._pool.around.balanced()

    # ---- active ones -----------------------------------------------------------------------------------------------
    def _new(self, spec: FaultSpec, member: str, names: Sequence[str]) -> Active:
        with self._lock:
            self._check_free(names)
            return self._added(spec, member, names)

    def _new_each(self, spec: FaultSpec, names: Sequence[str]) -> list[Active]:
        with self._lock:
            self._check_free(names)
            return [self._added(spec, name, [name]) for name in names]

    def _added(self, spec: FaultSpec, member: str, names: Sequence[str]) -> Active:
        active = Active(next(self._numbers), spec, member, names, self._wall())
        self._active[active.number] = active
        return active

    def _check_free(self, names: Sequence[str]) -> None:
        for active in self._active.values():
            for name in set(active.names).intersection(names):
                raise ConfigError(f"{name}: fault {active.spec.fault.kind} is not over yet")

    def _run(self, active: Active, work: Callable[[Active], str]) -> dict[str, Any]:
        """Do it on a thread of its own; `work` blocks until it is over, and gives why it failed."""

        def run() -> None:
            try:
                error = work(active)
            except Exception as failed:  # of whatever kind: who ordered it waits for an answer
                error = str(failed) or repr(failed)
            finally:
                with self._lock:
                    del self._active[active.number]
            if error:
                self._say("fault-failed", active, {"error": error})
            elif not self._over.is_set():
                self._say("fault-ended", active)

        self._say("fault-started", active)
        active.thread = threading.Thread(target=run, name=f"fault-{active.number}", daemon=True)
        active.thread.start()
        return active.describe()

    def _say(self, kind: str, active: Active, more: dict[str, Any] | None = None) -> None:
        told = active.describe()
        del told["started"]
        self._tell({**told, "kind": kind, "fault_kind": active.spec.fault.kind, **(more or {})})

    def _wait(self, active: Active, seconds: float | None) -> bool:
        """So long, None: for ever; or until it is to end, which is then True."""
        return active.ending.wait(None if seconds is None else self._pace.real_s(seconds))

    # ---- how each is done ------------------------------------------------------------------------------------------
    def _end_and_start(self, active: Active) -> str:
        part = self._pool.part(active.member)
        assert part.start is not None, "checked"
        end = kill if isinstance(active.spec.fault, KillPart) else end_in_order
        order = RestartOrder(active.member, active.spec.for_s, READY_WITHIN_S)
        until = _Until(active, self._over)
        return restart(order, part.process, part.start, until, self._tell, end=end, pace=self._pace)

    def _pause(self, active: Active) -> str:
        process = self._pool.part(active.member).process
        name = f"pausing-{active.member}"
        pausing = Process(
            name, "harness.pool.pausing", Paused(process.program_pid), self._pool.logs / f"{name}.log"
        )
        try:
            pausing.wait_ready()
            self._wait(active, active.spec.for_s)
        finally:
            pausing.stop()
        return ""

    def _rolling(self, active: Active) -> str:
        fault = active.spec.fault
        assert isinstance(fault, RestartParts)
        until = _Until(active, self._over)
        for index, name in enumerate(active.names):
            if index and (self._wait(active, fault.settle_s) or self._over.is_set()):
                return ""
            part = self._pool.part(name)
            assert part.start is not None, "checked"
            order = RestartOrder(name, fault.down_s, fault.ready_within_s)
            if error := restart(order, part.process, part.start, until, self._tell, pace=self._pace):
                return error
        return ""

    def _network(self, fault: NetworkFault) -> Callable[[Active], str]:
        """Raises ConfigError where there is no link to do it with."""
        places = self._pool.parts.find(fault.between)
        missing = [place for place in places if place not in self._pool.around.placed]
        if missing:
            raise ConfigError(
                f"fault {fault.kind}: there is no link between {missing[0].near} and {missing[0].far}; start the pool "
                f"with --link {missing[0].name}"
            )
        state = link_state(fault)

        def work(active: Active) -> str:
            for place in places:
                self._states.setdefault(place.name, {})[active.number] = state
            self._reshape(places)
            self._wait(active, active.spec.for_s)
            for place in places:
                del self._states[place.name][active.number]
            self._reshape(places)
            return ""

        return work

    def _reshape(self, places: Sequence[Place]) -> None:
        """Each link is as the newest of its faults has it, or free of any."""
        with self._lock:
            states = {place.name: self._states[place.name] for place in places}
            newest = {name: [LinkState(), *of.values()][-1] for name, of in states.items()}
            self._pool.around.reshape(newest)


class _Until:
    """The end of a fault as `restart` waits for it."""

    def __init__(self, active: Active, over: threading.Event) -> None:
        self._ending, self._over = active.ending, over

    def wait(self, timeout: float | None = None) -> bool:
        self._ending.wait(timeout)
        return self._over.is_set()


def link_state(fault: NetworkFault) -> LinkState:
    """What a link is like while a fault is active."""
    if isinstance(fault, SlowLink):
        return LinkState(Shape(fault.latency_s, fault.jitter_s, fault.rate_bit_s, fault.drop))
    assert isinstance(fault, CutLink)
    return LinkState(reset=True) if fault.how == "reset" else LinkState(Shape(cut=True))


# ---- orders --------------------------------------------------------------------------------------------------------
class BeginFault(msgspec.Struct, frozen=True, tag="begin"):
    """`fault` as `faults.spec` reads it."""

    fault: str


class ListFaults(msgspec.Struct, frozen=True, tag="list"):
    """Active ones."""

    member: str = ALL


class ClearFaults(msgspec.Struct, frozen=True, tag="clear"):
    member: str = ALL


class AskBalancer(msgspec.Struct, frozen=True, tag="balancer"):
    """What the balancer says of its members."""


PoolOrder = BeginFault | ListFaults | ClearFaults | AskBalancer | RestartOrder
"""What a pool's supervisor can be told."""
