"""Pods that nothing will take away: those of nodes that are gone, and unscheduled ones that are to end.
kk/pkg/controller/podgc. Ended pods are only counted when there are more than 12,500."""

from __future__ import annotations

from harness.client.requests import NODES, PODS
from harness.client.store import Change
from harness.fleet.controllers.api import Steps, call, call_all
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.views import NodeView, PodView

_THRESHOLD = 12500  # terminated-pod-gc-threshold
_QUARANTINE_S = 40.0  # quarantineTime


class PodGarbageCollector(Controller):
    """Keys are pods (namespace/name) that go."""

    name = "pod-garbage-collector"
    period_s = 20.0  # gcCheckPeriod
    workers = 1

    def subscribe(self) -> None:
        self.nodes = self.watch(NODES, self.node_changed)
        self.pods = self.watch_pods(self.pod_changed)
        self._gone: dict[str, float] = {}  # nodes that are missing, since when
        self._ended: dict[str, str] = {}  # ended pods to their creation
        self._unscheduled: set[str] = set()

    def node_changed(self, change: Change, new: NodeView, old: NodeView | None) -> None:
        if change is Change.DELETED:
            self._gone[new.name] = self.hub.now
        else:
            self._gone.pop(new.name, None)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        if change is Change.DELETED:
            self._ended.pop(new.key, None)
            self._unscheduled.discard(new.key)
            return
        if new.ended:
            self._ended[new.key] = new.created
        if not new.node and new.deleted is not None:
            self._unscheduled.add(new.key)

    def tick(self) -> None:
        excess = len(self._ended) - _THRESHOLD
        if excess > 0:
            for key in sorted(self._ended, key=lambda each: self._ended[each])[:excess]:
                self.queue.add(key)
        for key in self._unscheduled:
            self.queue.add(key)
        due = {node for node, since in self._gone.items() if self.hub.now - since >= _QUARANTINE_S}
        if due:
            for pod in self.pods.all():
                if pod.node in due:
                    self.queue.add(pod.key)
            for node in due:
                del self._gone[node]

    def sync(self, key: str) -> Steps[None]:
        """markFailedAndDeletePod."""
        pod: PodView | None = self.pods.get(key)
        if pod is None:
            return
        if not pod.ended:
            body = {"metadata": {"uid": pod.uid}, "status": {"phase": "Failed"}}
            yield from call(self.patch(PODS, pod.namespace, pod.name, body, subresource="status"))
        (error,) = yield from call_all(
            [self.delete(PODS, pod.namespace, pod.name, grace_period_s=0, uid=pod.uid)]
        )
        if error is not None and not error.not_found:
            raise error
