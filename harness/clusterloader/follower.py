"""An executor beside the leader: the machine that does the shares of phases that it is ordered to do."""

from __future__ import annotations

import random
from collections import Counter

from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Event, Told
from harness.clusterloader.bundles import Replicas
from harness.clusterloader.config import Config
from harness.clusterloader.messages import Dismiss, Order, Ping, Pong, Report
from harness.clusterloader.objects import CLIENT_BURST, CLIENT_QPS, ObjectApi, client_names
from harness.clusterloader.runtime import FailureLog, Runtime
from harness.clusterloader.shares import Share, digest, limit_clients
from harness.clusterloader.tasks import Tasks
from harness.clusterloader.work import Piece, Work
from harness.wire.errors import ConfigError

REPORT_EVERY_S = 1.0


class Follower:
    """A `Machine`. It knows the same test as the leader, with as many clients, and does nothing by itself."""

    def __init__(
        self,
        config: Config,
        clients: int,
        labels: tuple[tuple[str, str], ...],
        rng: random.Random,
        epoch_s: float,
    ) -> None:
        self._config = config
        self._tasks = Tasks()
        names = client_names(clients)
        self._limiters = {name: TokenBucket(CLIENT_QPS, CLIENT_BURST) for name in names}
        self._api = ObjectApi(self._tasks, names, labels)
        self._runtime = Runtime(self._tasks, self._api, rng, epoch_s)
        self._post = self._runtime.post
        self._work = Work(self._runtime, config, {})
        self._executors = 1

    def __repr__(self) -> str:
        return f"Follower({self._config.name!r}, executors={self._executors})"

    def limiters(self) -> dict[str, TokenBucket]:
        """As the leader's: what `Rest` around this machine needs."""
        return self._limiters

    def start(self, now: float) -> list[Action]:
        self._tasks.now = now
        return []

    def handle(self, event: Event, now: float) -> list[Action]:
        self._tasks.now = now
        if isinstance(event, Told):
            self._told(event)
        else:
            self._tasks.handle(event)
        self._tasks.run()
        return self._tasks.take()

    def stop(self, now: float) -> list[Action]:
        self._tasks.now = now
        self._tasks.cancel_all()
        return self._tasks.take()

    def _told(self, event: Told) -> None:
        message = event.message
        if isinstance(message, Ping):
            self._post.tell(event.by, Pong(number=message.number, at_s=self._tasks.now))
        elif isinstance(message, Order):
            self._tasks.spawn(self._carry_out(event.by, message))
        elif isinstance(message, Dismiss):
            self._tasks.cancel_all()

    async def _carry_out(self, leader: str, order: Order) -> None:
        """One order, with a report every second and one at the end."""
        try:
            piece = self._piece(order)
        except ConfigError as error:
            refused = Report(number=order.number, done=0, total=0, ended=True, error=str(error))
            self._post.tell(leader, refused)
            return
        if order.executors != self._executors:
            self._executors = order.executors
            limit_clients(self._limiters, order.executors, self._tasks.now)
        failures, done, total = FailureLog(), 0, len(piece.numbered())

        def ended() -> None:
            nonlocal done
            done += 1

        work = self._tasks.spawn(self._work.run(piece, failures, ended))
        while not work.done:
            self._post.tell(leader, Report(number=order.number, done=done, total=total))
            await self._tasks.either(work, self._tasks.now + REPORT_EVERY_S)
        last = Report(
            number=order.number,
            done=done,
            total=total,
            ended=True,
            failures=failures.kept,
            more=dict(failures.more),
            operations=_taken(self._api.operations),
            retries=_taken(self._api.retries),
        )
        self._post.tell(leader, last)

    def _piece(self, order: Order) -> Piece:
        """Raises ConfigError where the order is for another test than ours."""
        steps = self._config.steps
        phases = steps[order.step].phases if order.step < len(steps) else []
        if order.phase >= len(phases) or digest(phases[order.phase]) != order.digest:
            raise ConfigError(f"step {order.step + 1}, phase {order.phase + 1} is not the leader's")
        replicas = tuple(Replicas(*item) for item in order.replicas)
        return Piece(phases[order.phase], replicas, order.seed, order.start_s, Share(order.share, order.of))


def _taken(counter: Counter[str]) -> dict[str, int]:
    """What was counted since the last time, by whichever order ended first."""
    counts = dict(counter)
    counter.clear()
    return counts
