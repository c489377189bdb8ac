"""A runner in virtual time: answers come after a latency that a rule gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.apiserver.clock import Timer, VirtualClock
from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Closed,
    Disarm,
    Event,
    Failed,
    Finished,
    Fired,
    Key,
    Note,
    Opened,
    Received,
    Sample,
    Send,
)
from harness.kperf import LoadProfile, Runner, RunnerOptions, load_profile
from harness.kperf.observations import Observations
from harness.kperf.runner import OBSERVED
from harness.wire.request import Request, Response, TransportError

EPOCH_S = 1_800_000_000.0

Rule = Callable[[Request, int], tuple[float, Response | TransportError]]
"""(request, its number from 0) -> seconds until the answer, and the answer."""

OK = Response(200, {}, b"", "member-0", discarded_bytes=100)


class Play:
    """Runs one runner. `sent` has (time, request) of each; a watch is opened and left to the test (`feed`)."""

    def __init__(self, runner: Runner, rule: Rule | None = None) -> None:
        self.clock = VirtualClock()
        self.runner = runner
        self.rule: Rule = rule or (lambda request, number: (0.01, OK))
        self.sent: list[tuple[float, Request]] = []
        self.keys: list[Key] = []
        self.seen = Observations()
        self.spans: list[dict[str, float]] = []
        self.samples: list[Sample] = []
        self.finished = False
        self.cancelled: set[Key] = set()
        self._timers: dict[Key, Timer] = {}

    def start(self) -> Play:
        self.carry_out(self.runner.start(self.clock.now()))
        return self

    def run(self, until: float = 1e5) -> Play:
        self.start().clock.run_until(until)
        return self

    def stop(self) -> Play:
        self.carry_out(self.runner.stop(self.clock.now()))
        return self

    def feed(self, event: Event) -> None:
        self.carry_out(self.runner.handle(event, self.clock.now()))

    def carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send():
                    self._send(action)
                case Arm():
                    self._arm(action)
                case Disarm():
                    self._disarm(action.key)
                case Cancel():
                    self.cancelled.add(action.key)
                case Note(kind, fields):
                    assert kind == OBSERVED
                    self.seen.put(fields["columns"])  # type: ignore[arg-type]
                    self.spans += fields["spans"]  # type: ignore[operator]
                case Sample():
                    self.samples.append(action)
                case Finished():
                    self.finished = True
                case _:
                    raise AssertionError(action)

    def _send(self, action: Send) -> None:
        number = len(self.sent)
        self.sent.append((self.clock.now(), action.request))
        self.keys.append(action.key)
        after_s, answer = self.rule(action.request, number)
        key = action.key
        event: Event
        if isinstance(answer, TransportError):
            event = Failed(key, answer)
        elif action.request.is_stream and answer.ok:
            event = Opened(key, answer.member)
        else:
            event = Answered(key, answer)
        self.clock.call_at(self.clock.now() + after_s, self._answer, event)

    def _answer(self, event: Event) -> None:
        if event.key not in self.cancelled:
            self.feed(event)

    def _arm(self, action: Arm) -> None:
        self._disarm(action.key)
        self._timers[action.key] = self.clock.call_at(action.at, self._fire, action.key)

    def _disarm(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _fire(self, key: Key) -> None:
        del self._timers[key]
        self.feed(Fired(key))

    @property
    def latencies(self) -> list[float]:
        return [round(value, 6) for column in self.seen.columns.values() for value in column.latencies]

    @property
    def lateness(self) -> list[float]:
        return [round(value, 6) for column in self.seen.columns.values() for value in column.lateness]

    @property
    def failures(self) -> dict[str, int]:
        return {key.failure: len(column) for key, column in self.seen.columns.items() if key.failure}


def stream(play: Play, number: int, data: bytes) -> None:
    play.feed(Received(play.keys[number], data))


def close(play: Play, number: int, error: TransportError | None = None) -> None:
    play.feed(Closed(play.keys[number], error))


GET_DEFAULT = "      - shares: 1\n        quorumGet: {version: v1, resource: namespaces, name: default}\n"


def write(folder: Path, text: str) -> LoadProfile:
    path = folder / "profile.yaml"
    path.write_text(text)
    return load_profile(path)


def spec(requests: str = GET_DEFAULT, **values: object) -> str:
    """One spec of a profile, in YAML; `values` replace the defaults here."""
    given = {"rate": 10, "total": 20, "conns": 2, "client": 4, "contentType": "json", **values}
    lines = [f"    {key}: {value}" for key, value in given.items() if value is not None]
    return "  -" + "\n".join(lines)[3:] + f"\n    requests:\n{requests}"


def profile(folder: Path, *specs: str) -> LoadProfile:
    return write(folder, "version: 1\ndescription: a test\nspecs:\n" + "".join(specs or (spec(),)))


def play(
    loaded: LoadProfile, rule: Rule | None = None, *, until: float = 1e5, options: RunnerOptions | None = None
) -> Play:
    """Run a profile's runner to its end, or to `until`."""
    return Play(Runner(loaded, options or RunnerOptions(), EPOCH_S), rule).run(until)
