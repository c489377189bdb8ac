"""What all users of one worker process share."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any

from harness.load.looplag import LoopLag
from harness.load.plan import Plan
from harness.load.statistics import Statistics
from harness.transport.endpoints import Endpoint, Endpoints
from harness.transport.pool import Transport
from harness.transport.timers import Timers
from harness.transport.tls import client_context

VERSION = "v1.36.2"  # of the components that are imitated
NODE_GROUP = "system:nodes"


class WorkerContext:
    """One worker's part of a run: made when the test starts, closed when it stops.

    `tell(kind, fields)` reaches the master's session. Node names hold the worker's index, so no two workers ever make
    the same one, whatever joins or leaves.
    """

    def __init__(
        self,
        plan: Plan,
        worker_index: int,
        fire: Callable[..., Any],
        tell: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self.plan = plan
        self.tell = tell
        self.timers = Timers()
        self.epoch_s = time.time() - self.timers.now()
        self.statistics = Statistics(fire)
        self.nodes_by_members: dict[int, int] = {}
        self.lag = LoopLag(self.timers)
        self._worker = worker_index
        self._made = 0
        self._tls = _tls(plan)

    def next_node_name(self) -> str:
        name = f"swarmlet-{self._worker}-{self._made}"
        self._made += 1
        return name

    def rng(self, name: str) -> random.Random:
        """A random source of its own for each part, the same for a seed whatever else draws."""
        return random.Random(f"{self.plan.seed}/{self._worker}/{name}")

    def transport(self, name: str, user: str = "", groups: tuple[str, ...] = ()) -> Transport:
        """A connection of its own for one client, impersonating `user` where given. `name` begins with the agent's."""
        target = self.plan.target
        headers: dict[str, str | Sequence[str]] = {"user-agent": f"{name}/{VERSION} (linux/amd64) swarmlet"}
        if target.token:
            headers["authorization"] = f"Bearer {target.token}"
        if user:
            headers["impersonate-user"] = user
            if groups:
                headers["impersonate-group"] = groups
        members = [Endpoint(member.host, member.port, member.name) for member in target.members]
        return Transport(
            Endpoints(members, self.rng(f"endpoints/{user or name}")),
            self._tls,
            self.timers,
            server_name=target.server_name,
            http=self.plan.http,
            headers=headers,
            rng=self.rng(f"transport/{user or name}"),
        )

    def count_members(self, transport: Transport) -> None:
        """Note to how many members a node's connections went; reported with the next statistics."""
        talked_to = len(transport.members_talked_to)
        self.nodes_by_members[talked_to] = self.nodes_by_members.get(talked_to, 0) + 1

    def report(self) -> dict[str, Any]:
        """Everything counted since the last call, in plain values that Locust's messages can carry."""
        nodes = {str(members): nodes for members, nodes in self.nodes_by_members.items()}
        self.nodes_by_members.clear()
        counts = {"nodes_by_members": nodes, "loop": self.lag.take()}
        return {
            "requests": self.statistics.take(),
            "samples": self.statistics.take_samples(),
            "counts": {name: values for name, values in counts.items() if values},
        }

    def close(self) -> None:
        self.timers.close()


def _tls(plan: Plan) -> ssl.SSLContext | None:
    """One context for the whole process: a fresh one costs 15 ms."""
    target = plan.target
    if not target.tls:
        return None
    return client_context(
        target.ca.encode() or None,
        target.cert.encode() or None,
        target.key.encode() or None,
        insecure=target.insecure,
        http=plan.http,
        source="the target's TLS files",
    )
