"""What a node may do: its own objects, and what its pods use.

kubernetes v1.36 plugin/pkg/auth/authorizer/node/node_authorizer.go:95-420. The graph is fed by informers of the
member's own (nodeinformer.py): until they have heard of a pod, the pod's node is refused the pod's secrets. That race
is where a control plane's transient 403s come from; what a member may do about it is in nodemisses.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.auth.nodegraph import Graph
from harness.apiserver.auth.nodeinformer import PODS, GraphInformer
from harness.apiserver.auth.nodelag import MEASURED, Lag
from harness.apiserver.auth.nodemisses import Misses, OnMiss, RevisionSource
from harness.apiserver.auth.nodereferences import Vertex
from harness.apiserver.auth.rules import Rule
from harness.apiserver.clock import Clock
from harness.apiserver.flowcontrol.classify import Info
from harness.apiserver.informer import Followed
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.wire.errors import ConfigError
from harness.wire.selectors import SelectorError, parse_fields

LEASE_NAMESPACE = "kube-node-lease"
_READ = ("get", "list", "watch")

# What every node may do whatever its pods are (bootstrappolicy/policy.go, NodeRules), less what is decided below.
NODE_RULES: tuple[Rule, ...] = (
    Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
    Rule(("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews", "subjectaccessreviews")),
    Rule(_READ, ("",), ("services",)),
    Rule(("create", "patch", "update"), ("",), ("events",)),
    Rule(("get",), ("",), ("endpoints",)),
    Rule(("create", *_READ), ("certificates.k8s.io",), ("certificatesigningrequests",)),
    Rule(_READ, ("node.k8s.io",), ("runtimeclasses",)),
    Rule(_READ, ("storage.k8s.io",), ("csidrivers",)),
)


@dataclass(frozen=True, slots=True)
class NodeAuthorizerOptions:
    """How far the authorizer's informers are behind the watch cache, beyond what the modelled host makes them wait, and
    what the member does about a node that the graph does not know to be concerned: OnMiss.WAIT waits `wait_s` at most.
    """

    lag: Lag = MEASURED
    on_miss: OnMiss = OnMiss.DENY
    wait_s: float = 0.1

    @classmethod
    def parse(cls, settings: Mapping[str, str], member: str = "") -> NodeAuthorizerOptions:
        """``lag`` (nodelag.FORMS) and ``on-miss`` (deny, wait, retry); for one member only where its name stands
        before: ``member-1.lag``. Raises ConfigError."""
        own: dict[str, str] = {}
        for key in sorted(settings, key=lambda key: "." in key):  # what is said of one member counts for more
            of, _, name = key.rpartition(".")
            if name not in _SETTINGS:
                known = ", ".join([*_SETTINGS, *(f"MEMBER.{each}" for each in _SETTINGS)])
                raise ConfigError(f"node-authorizer: {key!r} is none of {known}")
            _SETTINGS[name](settings[key])  # whomever it is for, it must be right
            if of in ("", member):
                own[name] = settings[key]
        lag = Lag.parse(own["lag"]) if "lag" in own else MEASURED
        return cls(lag, _on_miss(own.get("on-miss", OnMiss.DENY.value)))


def _on_miss(text: str) -> OnMiss:
    try:
        return OnMiss(text)
    except ValueError:
        modes = ", ".join(mode.value for mode in OnMiss)
        raise ConfigError(f"node-authorizer: on-miss: {text!r} is none of {modes}") from None


_SETTINGS: dict[str, Callable[[str], object]] = {"lag": Lag.parse, "on-miss": _on_miss}


class Denial(NamedTuple):
    """Why not: `reason` goes into the answer ("" where upstream gives none), `label` is it without names. `missed`: the
    graph does not lead there, which a newer one might."""

    reason: str
    label: str = ""
    missed: bool = False


NO_NODE = Denial("")
"""To somebody who is no node this authorizer has nothing to say."""


class NodeAuthorizer:
    """The graph, its informers and its rules. `store` tells the store's revision, None where nobody asks for it."""

    def __init__(
        self,
        clock: Clock,
        host: Host,
        rng: Random,
        metrics: Metrics,
        options: NodeAuthorizerOptions | None = None,
        store: RevisionSource | None = None,
    ) -> None:
        self.options = options or NodeAuthorizerOptions()
        self.graph = Graph()
        self.informer = GraphInformer(clock, host, rng, metrics, self.graph, self.options.lag)
        self.misses = Misses(
            clock, host, metrics, self.informer, store, self.options.on_miss, self.options.wait_s
        )
        self._denials = metrics.swarmlet_authorizer_denials_total

    # ---- faults --------------------------------------------------------------------------------------------------
    def stall(self, seconds: float, relist: bool = False) -> None:
        """The informers deliver nothing for so long; see `GraphInformer.stall`. 0 ends it."""
        self.informer.stall(seconds, relist)

    def set_lag(self, lag: Lag | None) -> None:
        """Lag from now on; None is what the member began with."""
        self.informer.set_lag(self.options.lag if lag is None else lag)

    def follow(self, cachers: Mapping[str, Followed]) -> None:
        """Begin to follow what the graph is made of, as far as it is served."""
        self.informer.follow(cachers)
        self.misses.resource = cachers[PODS].resource

    def stop(self) -> None:
        self.informer.stop()

    # ---- decisions -----------------------------------------------------------------------------------------------
    def authorize(self, user: UserInfo, info: Info) -> Denial | None:
        """None for "allowed". A denial that is `missed` and not the last word is not counted: `ask_again` decides."""
        denial = self.decide(user, info)
        if denial is None or denial is NO_NODE:
            return denial
        if denial.missed:
            self.misses.note()
            if self.misses.asks_again:
                return denial
        self._count(info, denial)
        return denial._replace(missed=False) if denial.missed else denial

    async def ask_again(self, user: UserInfo, info: Info) -> Denial | None:
        """Settle what `authorize` left open. Raises StatusError 429 where the client is to try again."""
        denial = await self.misses.decide_again(lambda: self.decide(user, info))
        if denial is not None:
            self._count(info, denial)
        return denial

    def decide(self, user: UserInfo, info: Info) -> Denial | None:
        """As the graph is now; counts nothing."""
        node = user.node_name
        if node is None:
            return NO_NODE
        if not node:
            return Denial(f'unknown node for user "{user.name}"', "unknown node")
        decide = _DECISIONS.get((info.group, info.resource)) if info.is_resource else None
        if decide is not None:
            return decide(self, node, info)
        return None if any(rule.allows(info) for rule in NODE_RULES) else _NO_RULE

    def _count(self, info: Info, denial: Denial) -> None:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        self._denials.labels("node", resource, info.verb, denial.label).inc()

    def _by_graph(self, kind: Vertex, node: str, info: Info) -> Denial | None:
        name = info.name
        if name and self.graph.leads_to(kind, info.namespace, name, node):
            return None
        return _unrelated(node) if name else _said("No Object name found")

    def _secret(self, node: str, info: Info) -> Denial | None:
        return self._readable(Vertex.SECRET, node, info)

    def _configmap(self, node: str, info: Info) -> Denial | None:
        return self._readable(Vertex.CONFIGMAP, node, info)

    def _readable(self, kind: Vertex, node: str, info: Info) -> Denial | None:
        if info.verb not in _READ:
            return _said("can only read resources of this type")
        if info.subresource:
            return _said("cannot read subresource")
        if not info.namespace:
            return _said("can only read namespaced object of this type")
        return self._by_graph(kind, node, info)

    def _claim(self, node: str, info: Info) -> Denial | None:
        if info.subresource == "status":
            if info.verb not in ("update", "patch"):
                return _said("can only get/update/patch this type")
            return self._by_graph(Vertex.CLAIM, node, info)
        return self._gettable(info) or self._by_graph(Vertex.CLAIM, node, info)

    def _gettable(self, info: Info) -> Denial | None:
        if info.verb != "get":
            return _said("can only get individual resources of this type")
        return _said("cannot get subresource") if info.subresource else None

    def _account(self, node: str, info: Info) -> Denial | None:
        if info.verb == "get" and not info.subresource:
            return self._by_graph(Vertex.SERVICE_ACCOUNT, node, info)
        if info.verb != "create" or not info.name:
            return _said("can only create tokens for individual service accounts")
        if info.subresource != "token":
            return _said("can only create token subresource of serviceaccount")
        return self._by_graph(Vertex.SERVICE_ACCOUNT, node, info)

    def _volume(self, node: str, info: Info) -> Denial | None:
        return self._gettable(info) or self._by_graph(Vertex.VOLUME, node, info)

    def _attachment(self, node: str, info: Info) -> Denial | None:
        return self._gettable(info) or self._by_graph(Vertex.ATTACHMENT, node, info)

    def _resource_claim(self, node: str, info: Info) -> Denial | None:
        return self._gettable(info) or self._by_graph(Vertex.RESOURCE_CLAIM, node, info)

    def _lease(self, node: str, info: Info) -> Denial | None:
        if info.verb not in ("get", "create", "update", "patch", "delete"):
            return _said("can only get, create, update, patch, or delete a node lease")
        if info.namespace != LEASE_NAMESPACE:
            return _said(f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
        if info.verb != "create" and info.name != node:
            return _said("can only access node lease with the same name as the requesting node")
        return None

    def _csinode(self, node: str, info: Info) -> Denial | None:
        if info.verb not in ("get", "create", "update", "patch", "delete"):
            return _said("can only get, create, update, patch, or delete a CSINode")
        if info.subresource:
            return _said("cannot authorize CSINode subresources")
        if info.verb != "create" and info.name != node:
            return _said("can only access CSINode with the same name as the requesting node")
        return None

    def _node(self, node: str, info: Info) -> Denial | None:
        if info.subresource == "status":
            return None if info.verb in ("update", "patch") else _NO_RULE
        if not info.subresource:
            if info.verb in ("create", "update", "patch"):
                return None
            if info.verb in _READ:
                return self._own_node(node, info)
        return _NO_RULE

    def _own_node(self, node: str, info: Info) -> Denial | None:
        if info.name == node:
            return None
        other = f"'{info.name}'" if info.name else "all nodes"
        reason = f"node '{node}' cannot read {other}, only its own Node object"
        return Denial(reason, "not its own Node object")

    def _pod(self, node: str, info: Info) -> Denial | None:
        verb, subresource = info.verb, info.subresource
        if not subresource:
            if verb in ("create", "delete"):
                return None
            if verb == "get":
                return self._own_pod(node, info)
            if verb in ("list", "watch"):
                if _selects(info, "spec.nodeName", node):
                    return None
                if info.name:
                    return self._own_pod(node, info)
                return _said("can only list/watch pods with spec.nodeName field selector")
        elif (subresource == "status" and verb in ("update", "patch")) or (
            subresource == "eviction" and verb == "create"
        ):
            return None
        return _NO_RULE

    def _own_pod(self, node: str, info: Info) -> Denial | None:
        return None if self.graph.pod_on(f"{info.namespace}/{info.name}", node) else _unrelated(node)

    def _slice(self, node: str, info: Info) -> Denial | None:
        if info.subresource:
            return _said("cannot authorize ResourceSlice subresources")
        verb = info.verb
        if verb == "create":  # admission sees whose it is
            return None
        if verb in ("get", "update", "patch", "delete"):
            return self._by_graph(Vertex.SLICE, node, info)
        if verb in ("watch", "list", "deletecollection"):
            if _selects(info, "nodeName", node):
                return None
            return _said("can only list/watch/deletecollection resourceslices with nodeName field selector")
        allowed = "get, watch, list, create, update, patch, delete, deletecollection"
        return _said(f"only the following verbs are allowed for a ResourceSlice: {allowed}")


def _said(reason: str) -> Denial:
    """A reason without names is its own label."""
    return Denial(reason, reason)


def _unrelated(node: str) -> Denial:
    reason = f"no relationship found between node '{node}' and this object"
    return Denial(reason, "no relationship found", missed=True)


_NO_RULE = Denial("", "no rule")


def _selects(info: Info, field: str, node: str) -> bool:
    """Whether a list is of the node's own objects by its field selector."""
    selector = info.query.get("fieldSelector", "")
    if selector == f"{field}={node}":
        return True
    if field not in selector:
        return False
    try:
        terms = parse_fields(selector).terms
    except SelectorError:
        return False
    return any(term.equal and term.field == field and term.value == node for term in terms)


_DECISIONS: dict[tuple[str, str], Callable[[NodeAuthorizer, str, Info], Denial | None]] = {
    ("", "secrets"): NodeAuthorizer._secret,
    ("", "configmaps"): NodeAuthorizer._configmap,
    ("", "persistentvolumeclaims"): NodeAuthorizer._claim,
    ("", "persistentvolumes"): NodeAuthorizer._volume,
    ("", "serviceaccounts"): NodeAuthorizer._account,
    ("resource.k8s.io", "resourceclaims"): NodeAuthorizer._resource_claim,
    ("resource.k8s.io", "resourceslices"): NodeAuthorizer._slice,
    ("storage.k8s.io", "volumeattachments"): NodeAuthorizer._attachment,
    ("coordination.k8s.io", "leases"): NodeAuthorizer._lease,
    ("storage.k8s.io", "csinodes"): NodeAuthorizer._csinode,
    ("", "nodes"): NodeAuthorizer._node,
    ("", "pods"): NodeAuthorizer._pod,
}
