"""Nodes that fail at random while a test goes on, and come back.

Mirrors pkg/chaos/nodes.go (NodeKiller) and what holds it: a share of the usable nodes fails at once, all are down for
`simulatedDowntime`, and the next interval begins when they are back. A node fails once in a test, whatever comes of it
(killedNodes keeps its name); nodes with a pod of Prometheus never do. Upstream stops a machine's kubelet and container
runtime over SSH, and reboots it. Here the machines are those of the run's own kubelets, told by the run's label: a node
without it is none of ours, and is passed over.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection
from typing import NamedTuple

import msgspec

from harness.client.requests import NODES, PODS
from harness.clusterloader.measurements.nodes import NodeView
from harness.clusterloader.messages import MASTER, FailNodes, RebootNodes
from harness.clusterloader.runtime import Runtime
from harness.clusterloader.schema import NodeFailure
from harness.clusterloader.tasks import Future

FAULT = "node-failure"
"""The kind of fault that the record has of it."""
NOT_OURS = "no node of the cluster is simulated by this run"
_PROMETHEUS = ("monitoring", "prometheus=k8s")  # pkg/chaos/nodes.go:38


class Broken(NamedTuple):
    """A value that may not be, its key, and what may be there."""

    key: str
    value: float
    allowed: str


def broken_rule(failure: NodeFailure) -> Broken | None:
    """The first value with which nothing sensible would happen; upstream looks at none of them."""
    rate, interval_s = failure.failure_rate, float(failure.interval)
    jitter, down_s = failure.jitter_factor, float(failure.simulated_downtime)
    if not 0 <= rate <= 1:
        return Broken("failureRate", rate, "a share of the nodes, from 0 to 1")
    if not interval_s > 0:
        return Broken("interval", interval_s, "a duration above 0")
    if not 0 <= jitter < math.inf:
        return Broken("jitterFactor", jitter, "a number from 0")
    return None if down_s >= 0 else Broken("simulatedDowntime", down_s, "a duration from 0")


class NodeKiller:
    """Begins at once, and goes on until `stop` or `dispose`. Names of nodes that fail are added to `killed`, of which
    none is chosen; `skip` is told why nothing can fail here."""

    def __init__(
        self, runtime: Runtime, failure: NodeFailure, killed: Collection[str], skip: Callable[[str], None]
    ) -> None:
        self._runtime = runtime
        self._failure = failure
        self._skip = skip
        self._rng = random.Random(runtime.rng.getrandbits(64))
        self._stopping: Future[None] = Future()
        self.killed = set(killed)
        self._down: tuple[str, ...] = ()
        self._failed_at = 0.0
        self._running = runtime.tasks.spawn(self._run())

    async def stop(self) -> None:
        """Whatever is down comes back at once, and nothing fails any more."""
        self._stopping.set(None)
        await self._running

    def dispose(self) -> None:
        """The same where nobody can wait: the test is over, or was given up."""
        self._stopping.set(None)
        self._reboot()

    # ---- its own time ----------------------------------------------------------------------------------------------
    async def _run(self) -> None:
        interval_s, jitter = float(self._failure.interval), self._failure.jitter_factor
        # wait.Jitter takes a factor of 0 for 1 (am/pkg/util/wait/backoff.go), wait.JitterUntil takes it for none.
        over = await self._rest(self._jittered(interval_s, jitter or 1.0))
        while not over:
            nodes = await self._pick()
            if nodes is None:
                return
            if nodes and not self._stopping.done:
                await self._fail(nodes)
            over = await self._rest(self._jittered(interval_s, jitter))

    def _jittered(self, seconds: float, factor: float) -> float:
        return seconds * (1.0 + factor * self._rng.random())

    async def _rest(self, seconds: float) -> bool:
        """Whether it is to stop."""
        return await self._runtime.tasks.either(self._stopping, self._runtime.now + seconds)

    async def _fail(self, nodes: list[str]) -> None:
        self.killed.update(nodes)
        self._down, self._failed_at = tuple(nodes), self._runtime.now
        self._tell("fault-started", nodes, float(self._failure.simulated_downtime))
        post = self._runtime.post
        post.tell(MASTER, FailNodes(number=post.number(), names=self._down))
        await self._rest(float(self._failure.simulated_downtime))
        self._reboot()

    def _reboot(self) -> None:
        nodes, self._down = self._down, ()
        if not nodes:
            return
        post = self._runtime.post
        post.tell(MASTER, RebootNodes(number=post.number(), names=nodes))
        self._tell("fault-ended", nodes, self._runtime.now - self._failed_at)

    def _tell(self, kind: str, nodes: Collection[str], seconds: float) -> None:
        """As every fault is told, with the nodes besides."""
        whom = f"{len(nodes)} nodes" if len(nodes) > 1 else next(iter(nodes))
        fields = {"member": whom, "fault": FAULT, "fault_kind": FAULT, "seconds": seconds}
        self._runtime.note(kind, **fields, nodes=list(nodes))

    # ---- whom ------------------------------------------------------------------------------------------------------
    async def _pick(self) -> list[str] | None:
        """The nodes that are to fail next; None where no node ever can."""
        api = self._runtime.api
        nodes = await api.list(NODES)
        pods = await api.list(PODS, _PROMETHEUS[0], labels=_PROMETHEUS[1]) if nodes.ok else nodes
        if not pods.ok:
            return self._unable(pods.failure)
        try:
            every = msgspec.json.decode(nodes.body, type=_Nodes).items or []
            spared = {pod.spec.node_name for pod in msgspec.json.decode(pods.body, type=_Pods).items or ()}
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._unable(str(error))
        wanted = api.labels.items()
        ours = [node for node in every if wanted <= (node.metadata.labels or {}).items()]
        if not ours:
            self._skip(NOT_OURS)
            return None
        spared |= self.killed
        left = [node.metadata.name for node in ours if node.usable and node.metadata.name not in spared]
        self._rng.shuffle(left)
        return left[: math.ceil(self._failure.failure_rate * len(left))]

    def _unable(self, why: str) -> list[str]:
        """Nobody fails this time."""
        self._runtime.note("warning", message=f"no node was chosen to fail: {why}")
        return []


class _Nodes(msgspec.Struct, gc=False):
    items: list[NodeView] | None = None


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Pods(msgspec.Struct, gc=False):
    items: list[_Pod] | None = None
