"""The priority levels and flow schemas that every kube-apiserver starts with.

k8s.io/apiserver v1.36 pkg/apis/flowcontrol/bootstrap/default.go:85-440. Their uids are made from their names, so that
all members of a pool answer with the same ones, as they do where the objects are in etcd.
"""

from __future__ import annotations

import uuid
from enum import Enum

import msgspec

_UIDS = uuid.UUID("6f1c2a34-8a0e-5d8f-9c55-3b0c61d7a9e2")


def _uid(kind: str, name: str) -> str:
    return str(uuid.uuid5(_UIDS, f"{kind}/{name}"))


class Response(Enum):
    """What a level does with a request for which it has no seat."""

    QUEUE = "Queue"
    REJECT = "Reject"
    EXEMPT = "Exempt"


class Distinguisher(Enum):
    """What makes two requests of one flow schema different flows."""

    NONE = ""
    USER = "ByUser"
    NAMESPACE = "ByNamespace"


class PriorityLevel(msgspec.Struct, frozen=True):
    """`shares` of the server's seats; `lendable_percent` of those may be lent; queues only where it queues."""

    name: str
    shares: int
    lendable_percent: int
    response: Response = Response.QUEUE
    queues: int = 0
    hand_size: int = 0
    queue_length: int = 0

    @property
    def uid(self) -> str:
        return _uid("prioritylevelconfigurations", self.name)


class ResourceRule(msgspec.Struct, frozen=True):
    """("*",) matches all. Namespaces are always all of them; `cluster_scope` admits requests without one."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...]
    resources: tuple[str, ...]
    cluster_scope: bool


class FlowSchema(msgspec.Struct, frozen=True):
    """A request matches if one of `users`, `groups` or the namespaces of `service_accounts_in` is its user's, and one
    of the rules matches it. `urls` are rules for what is not a resource, with `url_verbs`."""

    name: str
    level: str
    precedence: int
    distinguisher: Distinguisher = Distinguisher.USER
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    service_accounts_in: tuple[str, ...] = ()
    resources: tuple[ResourceRule, ...] = ()
    urls: tuple[str, ...] = ()
    url_verbs: tuple[str, ...] = ("*",)

    @property
    def uid(self) -> str:
        return _uid("flowschemas", self.name)


PRIORITY_LEVELS: tuple[PriorityLevel, ...] = (
    PriorityLevel("exempt", 0, 0, Response.EXEMPT),
    PriorityLevel("catch-all", 5, 0, Response.REJECT),
    PriorityLevel("system", 30, 33, queues=64, hand_size=6, queue_length=50),
    PriorityLevel("node-high", 40, 25, queues=64, hand_size=6, queue_length=50),
    PriorityLevel("leader-election", 10, 0, queues=16, hand_size=4, queue_length=50),
    PriorityLevel("workload-high", 40, 50, queues=128, hand_size=6, queue_length=50),
    PriorityLevel("workload-low", 100, 90, queues=128, hand_size=6, queue_length=50),
    PriorityLevel("global-default", 20, 50, queues=128, hand_size=6, queue_length=50),
)

_ANY = ("*",)
_EVERYTHING = (ResourceRule(_ANY, _ANY, _ANY, True),)
_EVERYBODY = ("system:unauthenticated", "system:authenticated")
_LEASES = ("coordination.k8s.io",)

# In order of precedence, then of name, as the controller sorts them.
FLOW_SCHEMAS: tuple[FlowSchema, ...] = (
    FlowSchema(
        "exempt",
        "exempt",
        1,
        Distinguisher.NONE,
        groups=("system:masters",),
        resources=_EVERYTHING,
        urls=_ANY,
    ),
    FlowSchema(
        "probes",
        "exempt",
        2,
        Distinguisher.NONE,
        groups=_EVERYBODY,
        urls=("/healthz", "/readyz", "/livez"),
        url_verbs=("get",),
    ),
    FlowSchema(
        "system-leader-election",
        "leader-election",
        100,
        users=("system:kube-controller-manager", "system:kube-scheduler"),
        service_accounts_in=("kube-system",),
        resources=(ResourceRule(("get", "create", "update"), _LEASES, ("leases",), False),),
    ),
    FlowSchema(
        "system-node-high",
        "node-high",
        400,
        groups=("system:nodes",),
        resources=(
            ResourceRule(_ANY, ("",), ("nodes", "nodes/status"), True),
            ResourceRule(_ANY, _LEASES, ("leases",), False),
        ),
    ),
    FlowSchema(
        "system-nodes",
        "system",
        500,
        groups=("system:nodes",),
        resources=_EVERYTHING,
        urls=_ANY,
    ),
    FlowSchema(
        "kube-controller-manager",
        "workload-high",
        800,
        Distinguisher.NAMESPACE,
        users=("system:kube-controller-manager",),
        resources=_EVERYTHING,
        urls=_ANY,
    ),
    FlowSchema(
        "kube-scheduler",
        "workload-high",
        800,
        Distinguisher.NAMESPACE,
        users=("system:kube-scheduler",),
        resources=_EVERYTHING,
        urls=_ANY,
    ),
    FlowSchema(
        "kube-system-service-accounts",
        "workload-high",
        900,
        Distinguisher.NAMESPACE,
        service_accounts_in=("kube-system",),
        resources=_EVERYTHING,
        urls=_ANY,
    ),
    FlowSchema(
        "service-accounts",
        "workload-low",
        9000,
        groups=("system:serviceaccounts",),
        resources=_EVERYTHING,
        urls=_ANY,
    ),
    FlowSchema(
        "global-default",
        "global-default",
        9900,
        groups=_EVERYBODY,
        resources=_EVERYTHING,
        urls=_ANY,
    ),
    FlowSchema(
        "catch-all",
        "catch-all",
        10000,
        groups=_EVERYBODY,
        resources=_EVERYTHING,
        urls=_ANY,
    ),
)
