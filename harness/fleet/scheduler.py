"""A scheduler, for targets that have none: the node with the fewest pods gets the next one.

What it sends is what kube-scheduler v1.36 sends: watch-lists of all pods that have not ended, of nodes, claims and
storage classes, a POST of each binding, an events.k8s.io event for each pod bound, a status patch and an event for a
pod that fits nowhere. A node fits where it is ready, its taints (a cordon is one) are tolerated, spec.nodeSelector and
the required node affinity match, and there is room: for one more pod, and for its requests of cpu and memory. Before
that a pod's claims are looked at (`volumebinding`). Pods of a higher priority go first. Not looked at: preferences,
affinity between pods, topology spread, where a volume can be reached from, other resources; and nothing is preempted.
There is no node lifecycle controller beside it, so readiness is read from the node's condition and the not-ready taint,
which only that controller would take away, is ignored.
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
from harness.fleet.volumebinding import VolumeBinding, select_node
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
    bind_s: float = 600.0
    """How long a pod with a node waits for its claims to be bound; bindTimeoutSeconds of VolumeBinding."""


def scheduler_limiters(options: SchedulerOptions) -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around a `Scheduler`."""
    return {
        "main": TokenBucket(options.qps, options.burst),
        "events": TokenBucket(options.event_qps, options.event_burst),
    }


class _Pending:
    """A pod without a node. `node` is where it is assumed to be while it is being bound; `claims`, as part of that,
    that its claims are, and `claims_told` that they all have been seen to know the node."""

    __slots__ = ("attempts", "claims", "claims_told", "failed_at", "heard_at", "node", "pod", "told")

    def __init__(self, pod: PodView, now: float) -> None:
        self.pod = pod
        self.heard_at = now
        self.attempts = 0
        self.node = ""
        self.failed_at = 0.0
        self.told = ""  # what its status says of why it is unschedulable
        self.claims = self.claims_told = False


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
        "_volumes",
        "_without_claims",
    )

    def __init__(self, options: SchedulerOptions, rng: Random, epoch_s: float) -> None:
        self._options = options
        self._epoch_s = epoch_s
        self._pool = NodePool(rng)
        self._pods = Reflector("pods", PODS, None, _UNENDED, "", rng, decode=decode_pod)
        self._nodes = Reflector("nodes", NODES, None, "", "", rng, decode=decode_node)
        self._volumes = VolumeBinding(rng)
        self._pending: dict[str, _Pending] = {}
        self._bound: dict[str, tuple[str, Demand]] = {}  # by uid, as counted in the pool
        self._active: list[tuple[int, int, str]] = []  # heap of (-priority, order, uid)
        self._backoff: list[tuple[float, str]] = []  # heap of (due, uid)
        self._unfit: dict[str, None] = {}  # uids that fit nowhere, oldest first
        self._without_claims: dict[str, None] = {}  # uids that no node helps: their claims are not bound
        self._cycling = False
        self._serial = 0

    def __repr__(self) -> str:
        return (
            f"Scheduler(nodes={len(self._pool)}, pending={len(self._pending)}, active={len(self._active)}, "
            f"unfit={len(self._unfit)}, without_claims={len(self._without_claims)})"
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
        self._take(self._volumes.start(now), now, out)
        self._take(self._pods.start(now), now, out)
        return out

    def handle(self, event: Event, now: float) -> list[Action]:
        out: Out = []
        part = event.key[0]
        if part == "pods":
            self._take(self._pods.handle(event, now), now, out)
        elif part == "nodes":
            self._take(self._nodes.handle(event, now), now, out)
        elif part in ("claims", "classes"):
            self._take(self._volumes.handle(event, now), now, out)
        elif part == "cycle":
            self._cycling = False
            self._cycle(now, out)
        elif part == "backoff":
            self._wake(now, out)
        elif part == "flush":
            self._retry_unfit(now, out)
            self._retry(self._without_claims, now, out)
            self._go_on(now, out)
        elif part == "bind" and isinstance(event, Answered | Failed):
            self._answered(str(event.key[1]), event, now, out)
        elif part == "select":
            self._selected(str(event.key[1]), event, now, out)
        return out

    def stop(self, now: float) -> list[Action]:
        out: Out = []
        self._take(self._pods.stop(now), now, out)
        self._take(self._nodes.stop(now), now, out)
        self._take(self._volumes.stop(now), now, out)
        out += [Disarm(("select", uid)) for uid, each in self._pending.items() if each.claims]
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
            else:
                for uid in self._volumes.concerned(output):
                    self._claim(uid, now, out)
        self._go_on(now, out)

    def _pod(self, pod: PodView, gone: bool, now: float, out: Out) -> None:
        uid, node = pod.uid, pod.node
        if gone or node:
            self._settle(pod, "" if gone else node, out)
            if gone:
                self._retry_unfit(now, out)
        elif uid in self._pending:
            self._pending[uid].pod = pod
        elif pod.scheduler == self._options.name and not pod.deleted:
            self._pending[uid] = _Pending(pod, now)
            self._volumes.wanted(pod)
            self._activate(uid)

    def _activate(self, uid: str) -> None:
        """By priority, then in the order of coming (PrioritySort)."""
        self._serial += 1
        heapq.heappush(self._active, (-self._pending[uid].pod.priority, self._serial, uid))

    def _settle(self, pod: PodView, node: str, out: Out) -> None:
        """The API server says where the pod is; "" for gone. That replaces what was counted or assumed."""
        uid = pod.uid
        pending = self._pending.get(uid)
        if pending is not None and (pending.claims or not pending.node):
            self._drop(pending, out)  # one whose binding is under way stays until that is answered
        if node and self._bound.get(uid, ("",))[0] == node:
            return
        self._release(uid)
        if node:
            self._occupy(uid, node, pod.demand)

    def _drop(self, pending: _Pending, out: Out) -> None:
        """It waits no longer."""
        uid = pending.pod.uid
        del self._pending[uid]
        self._unfit.pop(uid, None)
        self._without_claims.pop(uid, None)
        self._volumes.forget(pending.pod)
        if pending.claims:
            out.append(Disarm(("select", uid)))

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
        """Nothing is scheduled before all informers have synced."""
        synced = self._pods.synced and self._nodes.synced and self._volumes.synced
        if self._active and not self._cycling and synced:
            self._cycling = True
            out.append(Arm(("cycle",), now + self._options.cycle_s))

    def _cycle(self, now: float, out: Out) -> None:
        while self._active:
            _, _, uid = heapq.heappop(self._active)
            pending = self._pending.get(uid)
            if pending is None:
                continue
            pod = pending.pod
            if pod.deleted:
                self._drop(pending, out)
                continue
            pending.attempts += 1
            obstacle = self._volumes.obstacle(pod) if pod.claims else ""
            node = None if obstacle else self._pool.choose(pod.demand)
            if obstacle:
                text = f"0/{len(self._pool)} nodes are available: {obstacle}."
                self._set_aside(pending, self._without_claims, text, now, out)
            elif node is None:
                self._set_aside(pending, self._unfit, self._pool.explain(pod.demand), now, out)
            else:
                self._assume(pending, node, now, out)
            break
        self._go_on(now, out)

    def _assume(self, pending: _Pending, node: str, now: float, out: Out) -> None:
        """Count the pod on its node, then say so; what is said is not waited for."""
        pod = pending.pod
        pending.node = node
        self._occupy(pod.uid, node, pod.demand)
        late = self._volumes.unbound(pod) if pod.claims else []
        if not late:
            self._bind(pending, out)
            return
        pending.claims, pending.claims_told = True, False
        out.append(Arm(("select", pod.uid), now + self._options.bind_s))
        for claim in late:
            if claim.node != node:
                out.append(Send(("select", pod.uid, claim.metadata.name), select_node(claim, node)))

    def _bind(self, pending: _Pending, out: Out) -> None:
        metadata, node = pending.pod.metadata, pending.node
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
            self._drop(pending, out)
            out.append(Sample("schedule_ms", (now - pending.heard_at) * 1000.0))
            text = f"Successfully assigned {key} to {node}"
            self._event(pending.pod, "Normal", "Scheduled", "Binding", text, now, out)
            return
        stored = self._pods.store.get(key)
        if stored is None or stored.uid != uid or stored.node:
            self._drop(pending, out)  # gone, or bound by another: the watch has put the count right
            return
        self._unassume(pending, now, out)

    def _unassume(self, pending: _Pending, now: float, out: Out) -> None:
        """It could not be bound."""
        uid = pending.pod.uid
        self._release(uid)
        pending.node = ""
        if pending.claims:
            pending.claims = False
            out.append(Disarm(("select", uid)))
        pending.failed_at = now
        self._back_off(pending, now, out)
        self._go_on(now, out)

    # ---- pods whose claims are not bound -----------------------------------------------------------------------------
    def _claim(self, uid: str, now: float, out: Out) -> None:
        """Something that the pod waits for may have come. What a claim was told may be taken back: its provisioner has
        given up on that node."""
        pending = self._pending[uid]
        if uid in self._without_claims:
            del self._without_claims[uid]
            self._back_off(pending, now, out)
        elif pending.claims and self._volumes.bound(pending.pod):
            pending.claims = False
            out.append(Disarm(("select", uid)))
            self._bind(pending, out)
        elif pending.claims:
            told = self._volumes.told(pending.pod, pending.node)
            taken_back = pending.claims_told and not told
            pending.claims_told = told
            if taken_back:
                self._unassume(pending, now, out)

    def _selected(self, uid: str, event: Event, now: float, out: Out) -> None:
        """A claim was told the node or refuses it, or the time to be bound in is over."""
        pending = self._pending.get(uid)
        refused = not (isinstance(event, Answered) and event.response.ok)
        if pending is not None and pending.claims and refused:
            self._unassume(pending, now, out)

    # ---- pods that wait ----------------------------------------------------------------------------------------------
    def _set_aside(self, pending: _Pending, among: dict[str, None], text: str, now: float, out: Out) -> None:
        """It cannot be scheduled, for the reason in `text`, until something changes for those `among` which it is."""
        if not self._unfit and not self._without_claims:
            out.append(Arm(("flush",), now + self._options.flush_s))
        among[pending.pod.metadata.uid] = None
        pending.failed_at = now
        self._event(pending.pod, "Warning", "FailedScheduling", "Scheduling", text, now, out)
        if pending.told != text:
            pending.told = text
            self._mark_unschedulable(pending.pod, text, now, out)

    def _retry_unfit(self, now: float, out: Out) -> None:
        """Something changed for the better: what fitted nowhere gets another try, after its backoff."""
        self._retry(self._unfit, now, out)

    def _retry(self, unfit: dict[str, None], now: float, out: Out) -> None:
        uids = list(unfit)
        unfit.clear()
        for uid in uids:
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
