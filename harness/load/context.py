"""What all users of one worker process share."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import gevent
import msgspec
from gevent.event import AsyncResult

from harness.fleet.options import KubeletOptions
from harness.load.connect import Connections, Connector
from harness.load.delivery import Deliveries, follow_one_of
from harness.load.executors import Executors, Send
from harness.load.heap import Heap
from harness.load.identity.shown import Identities, Shown
from harness.load.labels import labels_of
from harness.load.looplag import LoopLag
from harness.load.plan import Plan
from harness.load.statistics import NO_ANSWER, Statistics
from harness.load.turns import Turns
from harness.load.workers.nodes import NODES_WANTED, NodeNames
from harness.transport.credentials import Credentials
from harness.transport.pool import Transport
from harness.transport.sinks import Answer
from harness.transport.timers import Timers
from harness.wire.draws import SmallDraws
from harness.wire.request import Request, TransportError

VERSION = "v1.36.2"  # of the components that are imitated
NODE_GROUP = "system:nodes"
ASKED_WITHIN_S = 30.0
REFUSED_TOLD_EVERY_S = 10.0
"""A thousand nodes see the same refused credentials at once; the master fetches fresh ones for all."""


INFORMER_HEARS = 10
"""As many kubelets as hear of that part of a fleet's writes which an informer of a whole resource hears of."""


class WorkerContext:
    """One worker's part of a run: made when the test starts, closed when it stops.

    `tell(kind, fields)` reaches the master's session, `send` its desk. Node names hold the worker's index, so no two
    workers ever make the same one, whatever joins or leaves.
    """

    def __init__(
        self,
        plan: Plan,
        worker_index: int,
        fire: Callable[..., Any],
        tell: Callable[[str, dict[str, Any]], None],
        send: Send = lambda to, body: None,
    ) -> None:
        self.plan = plan
        self.tell = tell
        self.executors = Executors(self, send)
        pace = plan.pace
        self.timers = Timers(pace)
        wall = pace.stamps(time.time)
        self.epoch_s = wall() - self.timers.now()
        informers = plan.informers.informers if plan.informers is not None else 0
        self.kubelet_options = KubeletOptions(
            **{
                "follow_one_of": follow_one_of(plan.kubelets + INFORMER_HEARS * informers),
                "wait_for_attach": plan.target.has_controllers,
                "close_on_heartbeat_failure": plan.http == "http/1.1",  # where DISABLE_HTTP2 is set
                **plan.fleet,
                "labels": (*map(tuple, plan.fleet.get("labels", ())), *labels_of(plan.run).items()),
            }
        )
        deliveries = Deliveries(self.kubelet_options.follow_one_of, pace.seconds(time.monotonic))
        self.statistics = Statistics(fire, deliveries, wall)
        self.nodes_by_members: dict[int, int] = {}
        self.counted: dict[str, Callable[[], Mapping[str, float]]] = {}
        """What else is reported: by its name in the record's results, what gives the counts since it was last asked."""
        self.shared: dict[str, Any] = {}
        """What users of one kind have in common in this process."""
        self.lag = LoopLag(self.timers)
        self.heap = Heap(self.timers)
        self.turns = Turns(self.timers.now, self.sleep)
        self._worker = worker_index
        self.nodes = NodeNames(
            worker_index, lambda count: self.tell(NODES_WANTED, {"index": worker_index, "count": count})
        )
        self.nodes.settled = plan.settled
        self._reports = 0
        self._closed = False
        self._drawn: Counter[str] = Counter()
        self._bootstrap: Transport | None = None
        self._told_refused = -REFUSED_TOLD_EVERY_S
        connections = Connections(plan.http, plan.policy, plan.streams)
        self.connector = Connector(plan.target, self.timers, connections, self._refused)
        self._identities = Identities(
            plan.identity,
            self.connector,
            plan.run,
            self.ask,
            self.kubelet_options.certificate_life_s,
            wall=wall,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        """The calling greenlet alone, so many seconds of the model."""
        gevent.sleep(self.plan.pace.real_s(seconds))

    def rng(self, name: str) -> random.Random:
        """A random source of its own for each part, the same for a seed whatever else draws."""
        return random.Random(f"{self.plan.seed}/{self._worker}/{name}")

    def draws(self, name: str) -> SmallDraws:
        """As `rng`, for parts that come in thousands and draw little."""
        return SmallDraws(f"{self.plan.seed}/{self._worker}/{name}")

    def transport(
        self,
        name: str,
        user: str = "",
        groups: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Transport:
        """A connection of its own for one client, who shows that it is `user` in the way of the plan's identity;
        without one it is the run's own credentials that count. `name` begins with the agent's; `headers` go with
        every request besides.

        May wait for a certificate, the calling greenlet alone. Raises SwarmletError where there is nothing to show.
        """
        agent = f"{name}/{VERSION} (linux/amd64) swarmlet"
        shown = self._identities.of(user, groups) if user else Shown(self.plan.target.headers)
        who = user or name
        self._drawn[who] += 1
        key = who if self._drawn[who] == 1 else f"{who}#{self._drawn[who]}"
        rng = self.draws(f"endpoints/{key}")
        told = {**shown.headers, **headers} if headers else shown.headers
        return self.connector.transport(agent, rng, told, tls=shown.tls, bearer=shown.bearer, source=key)

    def ask(self, request: Request) -> Answer:
        """Send a request on the run's own account and wait, the calling greenlet alone."""
        if self._bootstrap is None:
            self._bootstrap = self.transport("bootstrap")
        result: AsyncResult = AsyncResult()
        began = self.timers.now()
        self._bootstrap.unary(msgspec.structs.replace(request, timeout_s=ASKED_WITHIN_S), result.set)
        answer: Answer = result.get()
        seconds = self.timers.now() - began
        if isinstance(answer, TransportError):
            error = answer.failure.value
            self.statistics.request("bootstrap", request, NO_ANSWER, answer.member, seconds, 0, error)
        else:
            size = len(answer.body)
            self.statistics.request("bootstrap", request, answer.status, answer.member, seconds, size)
        return answer

    def refresh(self, credentials: Credentials) -> None:
        """The master has fresh ones for the run's own account."""
        self.connector.replace(credentials)

    def _refused(self) -> None:
        """The run's own credentials were answered by 401: the master is told, now and then."""
        now = self.timers.now()
        if now - self._told_refused >= REFUSED_TOLD_EVERY_S:
            self._told_refused = now
            self.tell("credentials-refused", {})

    def count_members(self, transport: Transport) -> None:
        """Note to how many members a node's connections went; reported with the next statistics."""
        talked_to = len(transport.members_talked_to)
        self.nodes_by_members[talked_to] = self.nodes_by_members.get(talked_to, 0) + 1

    def report(self) -> dict[str, Any]:
        """Everything counted since the last call, in plain values that Locust's messages can carry."""
        nodes = {str(members): nodes for members, nodes in self.nodes_by_members.items()}
        self.nodes_by_members.clear()
        counts: dict[str, Mapping[str, float]] = {"nodes_by_members": nodes, "loop": self.lag.take()}
        counts.update((name, take()) for name, take in self.counted.items())
        self._reports += 1
        return {
            "number": self._reports,
            "last": self._closed,
            "nodes": self.nodes.made,
            "sent": time.time(),
            "requests": self.statistics.take(),
            "samples": self.statistics.take_samples(),
            "deliveries": self.statistics.deliveries.take(),
            "counts": {name: values for name, values in counts.items() if values},
            "connections": self.connector.tally.take(),
        }

    def close(self) -> None:
        self._closed = True
        self.executors.close()
        if self._bootstrap is not None:
            self._bootstrap.close()
        self.timers.close()
