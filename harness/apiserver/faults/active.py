"""The faults of one member: begun, counted, told, ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, TypeVar

import msgspec

from harness.apiserver.clock import Clock, Timer
from harness.apiserver.exchange import Exchange
from harness.apiserver.faults.kinds import MEMBER_KINDS, AnyFault, Fault
from harness.apiserver.faults.spec import FaultSpec, check_length
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.metrics.text import Counter
from harness.wire.errors import ConfigError

F = TypeVar("F")
Tell = Callable[[dict[str, Any]], object]
End = Callable[[], object]

TOLD_KEPT = 64
"""Events that the page lists: who asks once a second misses none of the faults that somebody orders by hand."""

_TEXT = "text/plain; charset=utf-8"


class Running:
    """One active fault. `rng` is its own; `hit()` counts what it struck. `for_s` None: until it is ended."""

    __slots__ = ("_counter", "end", "fault", "for_s", "hits", "id", "rng", "started_wall_s", "timer")

    def __init__(
        self, id_: int, fault: AnyFault, for_s: float | None, rng: Random, counter: Counter, wall_s: float
    ) -> None:
        self.id = id_
        self.fault = fault
        self.for_s = for_s
        self.rng = rng
        self.started_wall_s = wall_s
        self.hits = 0
        self.timer: Timer | None = None
        self.end: End | None = None
        self._counter = counter

    def hit(self, count: int = 1) -> None:
        """So many requests, connections or watches have met it."""
        self.hits += count
        self._counter.inc(count)

    def drawn(self, chance: float) -> bool:
        return self.rng.random() < chance

    def describe(self) -> dict[str, Any]:
        """As `GET /swarmlet/faults` lists it and events tell of it."""
        return {
            "id": self.id,
            "fault": FaultSpec(self.fault).text,
            "kind": self.fault.kind,
            "seconds": self.for_s,
            "started": self.started_wall_s,
            "hits": self.hits,
        }


class Faults:
    """`provide` says how a kind is done; a kind that nobody provided is refused. `tell` hears of each start and end."""

    def __init__(self, clock: Clock, seed: str, metrics: Metrics) -> None:
        self.tell: Tell = lambda event: None
        self._clock = clock
        self._seed = seed
        self._begun = metrics.swarmlet_faults_total
        self._hits = metrics.swarmlet_fault_hits_total
        self._active_gauge = metrics.swarmlet_faults_active
        self._begin: dict[str, Callable[[Any, Running], End | None]] = {}
        self._active: dict[int, Running] = {}
        self._last_id = 0
        self._born = clock.now()
        self._told: deque[tuple[int, float, dict[str, Any]]] = deque(maxlen=TOLD_KEPT)
        self._last_told = 0

    def __iter__(self) -> Iterator[Running]:
        return iter(self._active.values())

    def provide(self, kind: type[F], begin: Callable[[F, Running], End | None]) -> None:
        """`begin(fault, running)` does a fault of this kind and returns what undoes it. It may raise ConfigError."""
        self._begin[str(kind.__struct_config__.tag)] = begin  # type: ignore[attr-defined]

    def begin(self, fault: AnyFault, for_s: float | None = None) -> Running:
        """Raises ConfigError where this member cannot do it."""
        check_length(fault, for_s)
        begin = self._begin.get(fault.kind)
        if begin is None:
            raise ConfigError(f"fault {fault.kind}: not possible with this member")
        number = self._last_id + 1
        running = Running(
            number,
            fault,
            for_s,
            Random(f"{self._seed}/fault {number} {fault.kind}"),
            self._hits.labels(fault.kind),
            self._clock.wall(),
        )
        running.end = begin(fault, running)
        self._last_id = number
        self._begun.labels(fault.kind).inc()
        self._say("fault-started", running)
        if not fault.instant:
            self._active[number] = running
            self._active_gauge.labels(fault.kind).inc()
            if for_s is not None:
                running.timer = self._clock.call_at(self._clock.now() + for_s, self.end, number)
        return running

    def end(self, number: int) -> bool:
        """Whether there was one of this number."""
        running = self._active.pop(number, None)
        if running is None:
            return False
        if running.timer is not None:
            running.timer.cancel()
        if running.end is not None:
            running.end()
        self._active_gauge.labels(running.fault.kind).dec()
        self._say("fault-ended", running)
        return True

    def clear(self) -> int:
        """End all; how many there were."""
        numbers = list(self._active)
        for number in numbers:
            self.end(number)
        return len(numbers)

    def tell_failure(self, running: Running, why: str) -> None:
        """A fault that was begun could not be done after all."""
        self._say("fault-failed", running, {"error": why})

    def describe(self) -> dict[str, Any]:
        """As `GET /swarmlet/faults` has it: active ones, and the last events with their numbers and how long ago they
        were (`age_s`). `up_s`, since this list began, tells a reader of a member that was started again."""
        now = self._clock.now()
        return {
            "faults": [running.describe() for running in self],
            "kinds": list(MEMBER_KINDS),
            "events": [{"number": number, "age_s": now - at, **event} for number, at, event in self._told],
            "up_s": now - self._born,
        }

    def _say(self, kind: str, running: Running, more: dict[str, Any] | None = None) -> None:
        event = running.describe()
        del event["started"]
        event.update(kind=kind, fault_kind=running.fault.kind, **(more or {}))
        self._last_told += 1
        self._told.append((self._last_told, self._clock.now(), event))
        self.tell(dict(event))


class Order(msgspec.Struct, forbid_unknown_fields=True, rename={"for_s": "for"}):
    """POST's body; `for_s` in seconds, None without an end."""

    fault: Fault
    for_s: float | None = None


def serve(faults: Faults, exchange: Exchange) -> tuple[int, str, bytes]:
    """The page /swarmlet/faults, as (status, content type, body): GET lists, POST begins, DELETE ends all. What cannot
    be done is one line of text."""
    method = exchange.method
    if method == "GET":
        return _json(faults.describe())
    if method == "DELETE":
        return _json({"ended": faults.clear()})
    if method != "POST":
        return 405, _TEXT, b"faults: use GET, POST or DELETE\n"
    try:
        order = msgspec.json.decode(exchange.body, type=Order)
        return _json(faults.begin(order.fault, order.for_s).describe())
    except (msgspec.DecodeError, ConfigError) as error:
        return 400, _TEXT, f"{error}\n".encode()


def _json(value: Any) -> tuple[int, str, bytes]:
    return 200, "application/json", msgspec.json.encode(value) + b"\n"
