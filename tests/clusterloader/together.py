"""Several machines of one test in one virtual world: a leader and its executors, with messages between them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harness.client.machine import Action, Arm, Cancel, Disarm, Event, Fired, Machine, Send, Tell, Told
from harness.client.rest import Rest
from harness.clusterloader import ClusterLoader, ClusterLoaderOptions, Config
from harness.clusterloader.follower import Follower
from harness.clusterloader.messages import MASTER, AnyMessage, Recruit, Recruits, decode, encode
from tests.clusterloader.fake import EPOCH_S

LEADER = "worker-0"
Master = Callable[[str, AnyMessage], AnyMessage | None]


class Together:
    """A `Machine` made of several, the first of which leads. Each has a clock of its own, `ahead_s` of the world's, and
    a message takes `trip_s` from one to another. `master` answers what is said to it; `deaf` hear nothing more.

    `sent` has every request with the name of the machine that sent it.
    """

    def __init__(
        self,
        machines: dict[str, Machine],
        ahead_s: Sequence[float] = (),
        trip_s: float = 0.002,
        master: Master | None = None,
    ) -> None:
        self.machines = machines
        self.ahead_s = dict(zip(machines, [*ahead_s, *[0.0] * len(machines)], strict=False))
        self.trip_s = trip_s
        self.master = master or self.recruit
        self.deaf: set[str] = set()
        self.sent: list[tuple[str, Send]] = []
        self.told: list[tuple[str, str, AnyMessage]] = []
        self._mail: dict[int, tuple[str, Told]] = {}

    def start(self, now: float) -> list[Action]:
        return [
            action
            for name, machine in self.machines.items()
            for action in self._out(name, machine.start(now + self.ahead_s[name]), now)
        ]

    def handle(self, event: Event, now: float) -> list[Action]:
        name, *rest = event.key
        if name == "mail":
            assert isinstance(event, Fired)
            to, told = self._mail.pop(rest[0])  # type: ignore[arg-type]
            return self._give(to, told, now)
        return self._give(str(name), msgspec.structs.replace(event, key=tuple(rest)), now)

    def stop(self, now: float) -> list[Action]:
        return []

    def recruit(self, by: str, message: AnyMessage) -> AnyMessage | None:
        """What the master does: every other machine is at hand."""
        assert isinstance(message, Recruit), message
        others = [name for name in self.machines if name != by]
        return Recruits(number=message.number, you=by, members=tuple(others[: message.most]))

    def _give(self, name: str, event: Event, now: float) -> list[Action]:
        if name in self.deaf:
            return []
        return self._out(name, self.machines[name].handle(event, now + self.ahead_s[name]), now)

    def _out(self, name: str, actions: list[Action], now: float) -> list[Action]:
        out: list[Action] = []
        for action in actions:
            if isinstance(action, Arm):
                out.append(Arm((name, *action.key), action.at - self.ahead_s[name]))
            elif isinstance(action, Tell):
                out += self._tell(name, action, now)
            elif isinstance(action, (Send, Cancel, Disarm)):
                if isinstance(action, Send):
                    self.sent.append((name, action))
                out.append(msgspec.structs.replace(action, key=(name, *action.key)))
            else:
                out.append(action)
        return out

    def _tell(self, by: str, action: Tell, now: float) -> list[Action]:
        message = decode(encode(action.message))  # as it travels
        self.told.append((by, action.to, message))
        if action.to == MASTER:
            answer = self.master(by, message)
            return [] if answer is None else self._post(by, MASTER, answer, now)
        return self._post(action.to, by, message, now)

    def _post(self, to: str, by: str, message: AnyMessage, now: float) -> list[Action]:
        number = len(self._mail) + 1_000_000 * len(self.told)
        self._mail[number] = (to, Told(("told",), by, message))
        return [Arm(("mail", number), now + self.trip_s)]


def crew(
    config: Config, others: int, *, ahead_s: Sequence[float] = (), trip_s: float = 0.002, **options: Any
) -> Together:
    """A test on 1 + `others` executors, with a seed of its own for each worker but the leader's always the same."""
    of = ClusterLoaderOptions(executors=others + 1, **options)
    leader = ClusterLoader(config, of, random.Random(1), EPOCH_S)
    machines: dict[str, Machine] = {LEADER: Rest(leader, leader.limiters())}
    for index in range(1, others + 1):
        follower = Follower(config, len(leader.limiters()), of.labels, random.Random(index), EPOCH_S)
        machines[f"worker-{index}"] = Rest(follower, follower.limiters())
    return Together(machines, ahead_s, trip_s)
