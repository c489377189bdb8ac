"""A scheduler, for targets that have none: the node with the fewest pods gets the next one.

What it sends is what kube-scheduler v1.36 sends: watch-lists of all pods that have not ended and of all nodes, a POST
of each binding, an events.k8s.io event for each pod bound, a status patch and an event for a pod that fits nowhere. A
node fits where it is ready, its taints (a cordon is one) are tolerated, spec.nodeSelector and the required node
affinity match, and there is room: for one more pod, and for its requests of cpu and memory. Pods of a higher priority
go first. Not looked at: preferences, affinity between pods, topology spread, volumes, other resources; and nothing is
preempted. There is no node lifecycle controller beside it, so readiness is read from the node's condition and the
not-ready taint, which only that controller would take away, is ignored.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Answered, Arm, Disarm, Event, Failed, Sample, Send
from harness.client.reflector import Output, Reflector
from harness.client.requests import NODES, PODS, ResourceRef, create_, patch_
from harness.client.store import Change, Changed
from harness.fleet.context import Out
from harness.fleet.nodepool import NodePool
from harness.fleet.schedulable import Demand, NodeView, PodView, decode_node, decode_pod
from harness.wire import rfc3339

_EVENTS = ResourceRef("events.k8s.io", "v1", "events")
_UNENDED = "status.phase!=Succeeded,status.phase!=Failed"  # kk/pkg/scheduler/scheduler.go, newPodInformer


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Defaults are kube-scheduler's unless said."""

    qps: float = 50.0
    """Requests a second of the client that binds; clientConnection.qps."""
    burst: int = 100
    """Tokens that its bucket holds; clientConnection.burst."""
    event_qps: float = 50.0
    """Requests a second of the client that posts events: it has a bucket of its own with the same settings."""
    event_burst: int = 100
    """Tokens that the events bucket holds."""
    name: str = "default-scheduler"
    """Pods with another spec.schedulerName are left alone."""
    cycle_s: float = 0.002
    """Time of one scheduling cycle; cycles are serial. 2 ms, 500 pods a second, is what the default plugins reach on a
    few thousand nodes; 0 makes the client's limit the only one."""
    backoff_s: float = 1.0
    """First wait of a pod that could not be bound, doubling; podInitialBackoffSeconds."""
    backoff_cap_s: float = 10.0
    """Largest such wait; podMaxBackoffSeconds."""
    flush_s: float = 300.0
    """How long a pod that fits nowhere waits for a change before it is tried anyway
    (podMaxInUnschedulablePodsDuration)."""


def scheduler_limiters(options: SchedulerOptions) -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around a `Scheduler`."""
    return {
        "main": TokenBucket(options.qps, options.burst),
        "events": TokenBucket(options.event_qps, options.event_burst),
    }


class _Pending:
    """A pod without a node. `node` is where it is assumed to be while its binding is under way."""

    __slots__ = ("attempts", "failed_at", "heard_at", "node", "pod", "told")

    def __init__(self, pod: PodView, now: float) -> None:
        self.pod = pod
        self.heard_at = now
        self.attempts = 0
        self.node = ""
        self.failed_at = 0.0
        self.told = ""  # what its status says of why it is unschedulable


class Scheduler:
    """A machine. Samples: ``schedule_ms``, from hearing of a pod to its binding answered."""

    __slots__ = (
        "_active",
        "_backoff",
        "_bound",
        "_cycling",
        "_epoch_s",
        "_nodes",
        "_options",
        "_pending",
        "_pods",
        "_pool",
        "_serial",
        "_unfit",
    )

    def __init__(self, options: SchedulerOptions, rng: Random, epoch_s: float) -> None:
        self._options = options
        self._epoch_s = epoch_s
        self._pool = NodePool(rng)
        self._pods = Reflector("pods", PODS, None, _UNENDED, "", rng, decode=decode_pod)
        self._nodes = Reflector("nodes", NODES, None, "", "", rng, decode=decode_node)
        self._pending: dict[str, _Pending] = {}
        self._bound: dict[str, tuple[str, Demand]] = {}  # by uid, as counted in the pool
        self._active: list[tuple[int, int, str]] = []  # heap of (-priority, order, uid)
        self._backoff: list[tuple[float, str]] = []  # heap of (due, uid)
        self._unfit: dict[str, None] = {}  # uids that fit nowhere, oldest first
        self._cycling = False
        self._serial = 0

    def __repr__(self) -> str:
        return (
            f"Scheduler(nodes={len(self._pool)}, pending={len(self._pending)}, active={len(self._active)}, "
            f"unfit={len(self._unfit)})"
        )

    @property
    def pending(self) -> int:
        """Pods that wait for a node, those whose binding is under way included."""
        return len(self._pending)

    def counts(self) -> dict[str, int]:
        """Pods counted on each node that has any, assumed ones included."""
        return dict(Counter(node for node, _ in self._bound.values()))

    def validate(self) -> None:
        """Check what must hold between two events; for tests."""
        self._pool.validate()
        assert self._pool.counts() == self.counts()

    # ---- the machine -------------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Action]:
        out: Out = []
        self._take(self._nodes.start(now), now, out)
        self._take(self._pods.start(now), now, out)
        return out

    def handle(self, event: Event, now: float) -> list[Action]:
        out: Out = []
        part = event.key[0]
        if part == "pods":
            self._take(self._pods.handle(event, now), now, out)
        elif part == "nodes":
            self._take(self._nodes.handle(event, now), now, out)
        elif part == "cycle":
            self._cycling = False
            self._cycle(now, out)
        elif part == "backoff":
            self._wake(now, out)
        elif part == "flush":
            self._retry_unfit(now, out)
            self._go_on(now, out)
        elif part == "bind" and isinstance(event, Answered | Failed):
            self._answered(str(event.key[1]), event, now, out)
        return out

    def stop(self, now: float) -> list[Action]:
        out: Out = []
        self._take(self._pods.stop(now), now, out)
        self._take(self._nodes.stop(now), now, out)
        out += [Disarm(("cycle",)), Disarm(("backoff",)), Disarm(("flush",))]
        return out

    # ---- informers ---------------------------------------------------------------------------------------------------
    def _take(self, outputs: list[Output], now: float, out: Out) -> None:
        for output in outputs:
            if not isinstance(output, Changed):
                out.append(output)
            elif isinstance(output.object, PodView):
                self._pod(output.object, output.change is Change.DELETED, now, out)
            elif isinstance(output.object, NodeView):
                self._node(output.object, output.change is Change.DELETED, now, out)
        self._go_on(now, out)

    def _pod(self, pod: PodView, gone: bool, now: float, out: Out) -> None:
        uid, node = pod.uid, pod.node
        if gone or node:
            self._settle(pod, "" if gone else node)
            if gone:
                self._retry_unfit(now, out)
        elif uid in self._pending:
            self._pending[uid].pod = pod
        elif pod.scheduler == self._options.name and not pod.deleted:
            self._pending[uid] = _Pending(pod, now)
            self._activate(uid)

    def _activate(self, uid: str) -> None:
        """By priority, then in the order of coming (PrioritySort)."""
        self._serial += 1
        heapq.heappush(self._active, (-self._pending[uid].pod.priority, self._serial, uid))

    def _settle(self, pod: PodView, node: str) -> None:
        """The API server says where the pod is; "" for gone. That replaces what was counted or assumed."""
        uid = pod.uid
        pending = self._pending.get(uid)
        if pending is not None and not pending.node:
            del self._pending[uid]  # one whose binding is under way stays until that is answered
            self._unfit.pop(uid, None)
        if node and self._bound.get(uid, ("",))[0] == node:
            return
        self._release(uid)
        if node:
            self._occupy(uid, node, pod.demand)

    def _occupy(self, uid: str, node: str, demand: Demand) -> None:
        self._bound[uid] = (node, demand)
        self._pool.count(node, 1, demand)

    def _release(self, uid: str) -> None:
        counted = self._bound.pop(uid, None)
        if counted is not None:
            self._pool.count(counted[0], -1, counted[1])

    def _node(self, node: NodeView, gone: bool, now: float, out: Out) -> None:
        name = node.metadata.name
        if gone:
            self._pool.remove(name)
        elif self._pool.update(name, node.state()):
            self._retry_unfit(now, out)

    # ---- cycles ------------------------------------------------------------------------------------------------------
    def _go_on(self, now: float, out: Out) -> None:
        """Nothing is scheduled before both informers have synced."""
        if self._active and not self._cycling and self._pods.synced and self._nodes.synced:
            self._cycling = True
            out.append(Arm(("cycle",), now + self._options.cycle_s))

    def _cycle(self, now: float, out: Out) -> None:
        while self._active:
            _, _, uid = heapq.heappop(self._active)
            pending = self._pending.get(uid)
            if pending is None or pending.pod.deleted:
                self._pending.pop(uid, None)
                continue
            pending.attempts += 1
            node = self._pool.choose(pending.pod.demand)
            if node is None:
                self._fits_nowhere(pending, now, out)
            else:
                self._bind(pending, node, out)
            break
        self._go_on(now, out)

    def _bind(self, pending: _Pending, node: str, out: Out) -> None:
        """Assume the pod on its node, then say so; bindings are not waited for."""
        metadata = pending.pod.metadata
        pending.node = node
        self._occupy(metadata.uid, node, pending.pod.demand)
        body = (
            f'{{"kind":"Binding","apiVersion":"v1","metadata":{{"name":"{metadata.name}",'
            f'"namespace":"{metadata.namespace}","uid":"{metadata.uid}"}},'
            f'"target":{{"kind":"Node","name":"{node}"}}}}'
        )
        request = create_(PODS, metadata.namespace, body.encode(), name=metadata.name, subresource="binding")
        out.append(Send(("bind", metadata.uid), request))

    def _answered(self, uid: str, event: Answered | Failed, now: float, out: Out) -> None:
        pending = self._pending.get(uid)
        if pending is None:
            return
        node, pending.node = pending.node, ""
        metadata = pending.pod.metadata
        key = f"{metadata.namespace}/{metadata.name}"
        if isinstance(event, Answered) and event.response.ok:
            del self._pending[uid]
            out.append(Sample("schedule_ms", (now - pending.heard_at) * 1000.0))
            text = f"Successfully assigned {key} to {node}"
            self._event(pending.pod, "Normal", "Scheduled", "Binding", text, now, out)
            return
        stored = self._pods.store.get(key)
        if stored is None or stored.uid != uid or stored.node:
            del self._pending[uid]  # gone, or bound by another: the watch has put the count right
            return
        self._release(uid)
        pending.failed_at = now
        self._back_off(pending, now, out)
        self._go_on(now, out)

    # ---- pods that wait ----------------------------------------------------------------------------------------------
    def _fits_nowhere(self, pending: _Pending, now: float, out: Out) -> None:
        if not self._unfit:
            out.append(Arm(("flush",), now + self._options.flush_s))
        self._unfit[pending.pod.metadata.uid] = None
        pending.failed_at = now
        text = self._pool.explain(pending.pod.demand)
        self._event(pending.pod, "Warning", "FailedScheduling", "Scheduling", text, now, out)
        if pending.told != text:
            pending.told = text
            self._mark_unschedulable(pending.pod, text, now, out)

    def _retry_unfit(self, now: float, out: Out) -> None:
        """Something changed for the better: what fitted nowhere gets another try, after its backoff."""
        unfit, self._unfit = self._unfit, {}
        for uid in unfit:
            if uid in self._pending:
                self._back_off(self._pending[uid], now, out)

    def _back_off(self, pending: _Pending, now: float, out: Out) -> None:
        uid = pending.pod.metadata.uid
        wait_s = min(self._options.backoff_s * 2.0 ** (pending.attempts - 1), self._options.backoff_cap_s)
        due = pending.failed_at + wait_s
        if due <= now:
            self._activate(uid)
            return
        heapq.heappush(self._backoff, (due, uid))
        if self._backoff[0][1] == uid:
            out.append(Arm(("backoff",), due))

    def _wake(self, now: float, out: Out) -> None:
        while self._backoff and self._backoff[0][0] <= now:
            _, uid = heapq.heappop(self._backoff)
            if uid in self._pending:
                self._activate(uid)
        if self._backoff:
            out.append(Arm(("backoff",), self._backoff[0][0]))
        self._go_on(now, out)

    # ---- what is said about pods -------------------------------------------------------------------------------------
    def _mark_unschedulable(self, pod: PodView, text: str, now: float, out: Out) -> None:
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": text,
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339.seconds(self._epoch_s + now),
        }
        body = {
            "status": {"$setElementOrder/conditions": [{"type": "PodScheduled"}], "conditions": [condition]}
        }
        metadata = pod.metadata
        encoded = msgspec.json.encode(body)
        request = patch_(PODS, metadata.namespace, metadata.name, encoded, subresource="status")
        self._serial += 1
        out.append(Send(("status", self._serial), request))

    def _event(
        self, pod: PodView, kind: str, reason: str, action: str, text: str, now: float, out: Out
    ) -> None:
        metadata = pod.metadata
        self._serial += 1
        nanoseconds = int((self._epoch_s + now) * 1e9) + self._serial
        body = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": f"{metadata.name}.{nanoseconds:x}", "namespace": metadata.namespace},
            "eventTime": rfc3339.micro(self._epoch_s + now),
            "reportingController": self._options.name,
            "reportingInstance": f"{self._options.name}-0",
            "action": action,
            "reason": reason,
            "regarding": {
                "kind": "Pod",
                "namespace": metadata.namespace,
                "name": metadata.name,
                "uid": metadata.uid,
                "apiVersion": "v1",
                "resourceVersion": metadata.resource_version,
            },
            "note": text,
            "type": kind,
        }
        request = create_(_EVENTS, metadata.namespace, msgspec.json.encode(body), client="events")
        out.append(Send(("event", self._serial), request))
