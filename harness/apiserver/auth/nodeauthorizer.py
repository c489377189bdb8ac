"""What a node may do: its own objects, and what its pods use.

kubernetes v1.36 plugin/pkg/auth/authorizer/node/node_authorizer.go:95-420, graph_populator.go:60-110. The graph is fed
by an informer of the member's own, behind the watch cache like any client: until it has heard of a pod, the pod's node
is refused the pod's secrets. That race is where a control plane's transient 403s come from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import exp
from random import Random
from sys import intern

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.auth.nodegraph import Graph, Vertex, decode_pod, decode_pod_head, references
from harness.apiserver.auth.rbac import Rule
from harness.apiserver.clock import Clock
from harness.apiserver.flowcontrol.classify import Info
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import WATCH, Host
from harness.wire.selectors import SelectorError, parse_fields

LEASE_NAMESPACE = "kube-node-lease"
_READ = ("get", "list", "watch")

# What every node may do whatever its pods are (bootstrappolicy/policy.go, NodeRules), less what is decided below.
NODE_RULES: tuple[Rule, ...] = (
    Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
    Rule(("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews", "subjectaccessreviews")),
    Rule(_READ, ("",), ("services",)),
    Rule(("create", "patch", "update"), ("",), ("events",)),
    Rule(("create", *_READ), ("certificates.k8s.io",), ("certificatesigningrequests",)),
    Rule(_READ, ("node.k8s.io",), ("runtimeclasses",)),
    Rule(_READ, ("storage.k8s.io",), ("csidrivers",)),
)


@dataclass(frozen=True, slots=True)
class NodeAuthorizerOptions:
    """How far the authorizer's informer is behind the watch cache, beyond what the modelled host makes it wait.

    Lognormal. At rest, 2 to 3 of 100 reads sent as soon as a binding had been answered were refused by a real server,
    and those within 6 ms (p99) no longer; a read reached authorization about 0.8 ms after the informer's event. Median
    50 us and sigma 1.4 give 2.4 in 100 beyond 0.8 ms, and of these 1 in 100 beyond 6.6 ms. Under load, queueing on the
    host adds to it: that part is caused, not drawn.
    """

    lag_median_s: float = 50e-6
    lag_sigma: float = 1.4


class NodeAuthorizer:
    """The graph, its informer and its rules.

    `on_pod` takes the informer's events; `authorize` returns None for "allowed", else the reason why not ("" for
    somebody who is no node, or where upstream gives none).
    """

    def __init__(
        self,
        clock: Clock,
        host: Host,
        rng: Random,
        metrics: Metrics,
        options: NodeAuthorizerOptions | None = None,
    ) -> None:
        self.graph = Graph()
        self._clock = clock
        self._host = host
        self._gauss = rng.gauss
        self._options = options or NodeAuthorizerOptions()
        self._denials = metrics.swarmlet_authorizer_denials_total
        durations = metrics.node_authorizer_graph_actions_duration_seconds
        self._durations = {action: durations.labels(action) for action in ("AddPod", "DeletePod")}
        # What the informer's store has of each pod that is bound: (uid, node).
        self._bound: dict[str, tuple[str, str]] = {}
        self._queue: deque[tuple[float, str, Callable[[], object]]] = deque()
        self._armed = False
        self._stalled_until = 0.0

    # ---- the informer --------------------------------------------------------------------------------------------
    def on_pod(self, kind: str, body: bytes) -> None:
        """One event of the pods watch (ADDED, MODIFIED, DELETED) with the pod's JSON; bookmarks are ignored."""
        if kind == "BOOKMARK":
            return
        head = decode_pod_head(body)
        pod = f"{head.metadata.namespace}/{head.metadata.name}"
        if kind == "DELETED":
            if self._bound.pop(pod, None) is not None:
                self._later("DeletePod", partial(self.graph.delete_pod, pod))
            return
        node = head.spec.node_name
        if not node:
            return
        # All references of a bound pod are immutable (graph_populator.go:83-93).
        if self._bound.get(pod) == (head.metadata.uid, node):
            return
        self._bound[pod] = (head.metadata.uid, intern(node))
        keys = references(decode_pod(body))
        self._later("AddPod", partial(self.graph.add_pod, pod, node, keys))

    def stall(self, seconds: float) -> None:
        """A fault: the informer delivers nothing for so long, then everything."""
        self._stalled_until = max(self._stalled_until, self._clock.now() + seconds)

    @property
    def backlog(self) -> int:
        """Changes that the informer has not delivered yet."""
        return len(self._queue)

    def _later(self, action: str, change: Callable[[], object]) -> None:
        """Deliver in order, each after a lag of its own."""
        options = self._options
        due = self._clock.now() + options.lag_median_s * exp(options.lag_sigma * self._gauss(0.0, 1.0))
        if self._queue:
            due = max(due, self._queue[-1][0])
        self._queue.append((due, action, change))
        if not self._armed:
            self._arm(due)

    def _arm(self, due: float) -> None:
        self._armed = True
        self._clock.call_at(max(due, self._stalled_until), self._deliver)

    def _deliver(self) -> None:
        until = self._clock.now() + self._host.slack_s
        self._armed = False
        queue = self._queue
        if until >= self._stalled_until:
            while queue and queue[0][0] <= until:
                _, action, change = queue.popleft()
                self._host.run(self._host.costs.graph_update_us, partial(self._apply, action, change), WATCH)
        if queue:
            self._arm(queue[0][0])

    def _apply(self, action: str, change: Callable[[], object]) -> None:
        change()
        self._durations[action].observe(self._host.costs.graph_update_us * 1e-6)

    # ---- decisions -----------------------------------------------------------------------------------------------
    def authorize(self, user: UserInfo, info: Info) -> str | None:
        node = user.node_name
        if node is None:
            return ""
        if not node:
            return self._denied(info, "unknown node", f'unknown node for user "{user.name}"')
        decide = _DECISIONS.get((info.group, info.resource)) if info.is_resource else None
        if decide is not None:
            return decide(self, node, info)
        if any(rule.allows(info) for rule in NODE_RULES):
            return None
        return self._denied(info, "no rule", "")

    def _denied(self, info: Info, label: str, reason: str) -> str:
        """Count under `label`, one of few; `reason` goes into the answer."""
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        self._denials.labels("node", resource, info.verb, label).inc()
        return reason

    def _said(self, info: Info, reason: str) -> str:
        """A reason without names is its own label."""
        return self._denied(info, reason, reason)

    def _by_graph(self, kind: Vertex, node: str, info: Info) -> str | None:
        if not info.name:
            return self._said(info, "No Object name found")
        if self.graph.leads_to(kind, info.namespace, info.name, node):
            return None
        return self._unrelated(node, info)

    def _unrelated(self, node: str, info: Info) -> str:
        reason = f"no relationship found between node '{node}' and this object"
        return self._denied(info, "no relationship found", reason)

    def _secret(self, node: str, info: Info) -> str | None:
        return self._readable(Vertex.SECRET, node, info)

    def _configmap(self, node: str, info: Info) -> str | None:
        return self._readable(Vertex.CONFIGMAP, node, info)

    def _readable(self, kind: Vertex, node: str, info: Info) -> str | None:
        if info.verb not in _READ:
            return self._said(info, "can only read resources of this type")
        if info.subresource:
            return self._said(info, "cannot read subresource")
        if not info.namespace:
            return self._said(info, "can only read namespaced object of this type")
        return self._by_graph(kind, node, info)

    def _claim(self, node: str, info: Info) -> str | None:
        if info.subresource == "status":
            if info.verb not in ("update", "patch"):
                return self._said(info, "can only get/update/patch this type")
            return self._by_graph(Vertex.CLAIM, node, info)
        return self._gettable(info) or self._by_graph(Vertex.CLAIM, node, info)

    def _gettable(self, info: Info) -> str | None:
        if info.verb != "get":
            return self._said(info, "can only get individual resources of this type")
        return self._said(info, "cannot get subresource") if info.subresource else None

    def _account(self, node: str, info: Info) -> str | None:
        if info.verb == "get" and not info.subresource:
            return self._by_graph(Vertex.SERVICE_ACCOUNT, node, info)
        if info.verb != "create" or not info.name:
            return self._said(info, "can only create tokens for individual service accounts")
        if info.subresource != "token":
            return self._said(info, "can only create token subresource of serviceaccount")
        return self._by_graph(Vertex.SERVICE_ACCOUNT, node, info)

    def _lease(self, node: str, info: Info) -> str | None:
        if info.verb not in ("get", "create", "update", "patch", "delete"):
            return self._said(info, "can only get, create, update, patch, or delete a node lease")
        if info.namespace != LEASE_NAMESPACE:
            return self._said(info, f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
        if info.verb != "create" and info.name != node:
            return self._said(info, "can only access node lease with the same name as the requesting node")
        return None

    def _csinode(self, node: str, info: Info) -> str | None:
        if info.verb not in ("get", "create", "update", "patch", "delete"):
            return self._said(info, "can only get, create, update, patch, or delete a CSINode")
        if info.subresource:
            return self._said(info, "cannot authorize CSINode subresources")
        if info.verb != "create" and info.name != node:
            return self._said(info, "can only access CSINode with the same name as the requesting node")
        return None

    def _node(self, node: str, info: Info) -> str | None:
        if info.subresource == "status":
            return None if info.verb in ("update", "patch") else self._denied(info, "no rule", "")
        if not info.subresource:
            if info.verb in ("create", "update", "patch"):
                return None
            if info.verb in _READ:
                return self._own_node(node, info)
        return self._denied(info, "no rule", "")

    def _own_node(self, node: str, info: Info) -> str | None:
        if info.name == node:
            return None
        other = f"'{info.name}'" if info.name else "all nodes"
        reason = f"node '{node}' cannot read {other}, only its own Node object"
        return self._denied(info, "not its own Node object", reason)

    def _pod(self, node: str, info: Info) -> str | None:
        verb, subresource = info.verb, info.subresource
        if not subresource:
            if verb in ("create", "delete"):
                return None
            if verb == "get":
                return self._own_pod(node, info)
            if verb in ("list", "watch"):
                if _selects_node(info, node):
                    return None
                if info.name:
                    return self._own_pod(node, info)
                return self._said(info, "can only list/watch pods with spec.nodeName field selector")
        elif (subresource == "status" and verb in ("update", "patch")) or (
            subresource == "eviction" and verb == "create"
        ):
            return None
        return self._denied(info, "no rule", "")

    def _own_pod(self, node: str, info: Info) -> str | None:
        return (
            None if self.graph.pod_on(f"{info.namespace}/{info.name}", node) else self._unrelated(node, info)
        )


def _selects_node(info: Info, node: str) -> bool:
    selector = info.query.get("fieldSelector", "")
    if selector == f"spec.nodeName={node}":
        return True
    if "spec.nodeName" not in selector:
        return False
    try:
        terms = parse_fields(selector).terms
    except SelectorError:
        return False
    return any(term.equal and term.field == "spec.nodeName" and term.value == node for term in terms)


_DECISIONS: dict[tuple[str, str], Callable[[NodeAuthorizer, str, Info], str | None]] = {
    ("", "secrets"): NodeAuthorizer._secret,
    ("", "configmaps"): NodeAuthorizer._configmap,
    ("", "persistentvolumeclaims"): NodeAuthorizer._claim,
    ("", "serviceaccounts"): NodeAuthorizer._account,
    ("coordination.k8s.io", "leases"): NodeAuthorizer._lease,
    ("storage.k8s.io", "csinodes"): NodeAuthorizer._csinode,
    ("", "nodes"): NodeAuthorizer._node,
    ("", "pods"): NodeAuthorizer._pod,
}
