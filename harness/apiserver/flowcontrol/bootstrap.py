"""The priority levels and flow schemas that every kube-apiserver starts with, and their API objects.

k8s.io/apiserver v1.36 pkg/apis/flowcontrol/bootstrap/default.go:85-440. The mandatory ones hold whatever the objects
say; the suggested ones are made once and kept up to date for as long as nobody changes them (ensurer.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.apiserver.flowcontrol.config import (
    ALL,
    CATCH_ALL,
    EXEMPT,
    Distinguisher,
    FlowSchema,
    PriorityLevel,
    ResourceRule,
    Response,
    Rule,
    UrlRule,
)

Object = dict[str, Any]
AUTO_UPDATE = "apf.kubernetes.io/autoupdate-spec"
MANDATORY = frozenset({EXEMPT, CATCH_ALL})  # of both kinds, as it happens

PRIORITY_LEVELS: tuple[PriorityLevel, ...] = (
    PriorityLevel(EXEMPT, 0, 0, Response.EXEMPT),
    PriorityLevel(CATCH_ALL, 5, 0, Response.REJECT),
    PriorityLevel("system", 30, 33, queues=64, hand_size=6, queue_length=50),
    PriorityLevel("node-high", 40, 25, queues=64, hand_size=6, queue_length=50),
    PriorityLevel("leader-election", 10, 0, queues=16, hand_size=4, queue_length=50),
    PriorityLevel("workload-high", 40, 50, queues=128, hand_size=6, queue_length=50),
    PriorityLevel("workload-low", 100, 90, queues=128, hand_size=6, queue_length=50),
    PriorityLevel("global-default", 20, 50, queues=128, hand_size=6, queue_length=50),
)

_USER, _NAMESPACE, _NONE = Distinguisher.USER, Distinguisher.NAMESPACE, Distinguisher.NONE
_EVERYTHING = (ResourceRule(ALL, ALL, ALL, cluster_scope=True),)
_EVERY_URL = (UrlRule(ALL, ALL),)
_EVERYBODY = ("system:unauthenticated", "system:authenticated")
_NODES = ("system:nodes",)
_LEASES = ("coordination.k8s.io",)
_KUBE_SYSTEM = (("kube-system", "*"),)
_CONTROLLERS, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
_PROBES = UrlRule(("get",), ("/healthz", "/readyz", "/livez"))
_HOLD_LEASES = ResourceRule(("get", "create", "update"), _LEASES, ("leases",))
_OWN_NODE = (
    ResourceRule(ALL, ("",), ("nodes", "nodes/status"), cluster_scope=True),
    ResourceRule(ALL, _LEASES, ("leases",)),
)


def _all_of(
    users: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
    accounts: tuple[tuple[str, str], ...] = (),
) -> tuple[Rule, ...]:
    """Whatever these ask."""
    return (Rule(users, groups, accounts, _EVERYTHING, _EVERY_URL),)


# In order of precedence, then of name, as the controller sorts them.
FLOW_SCHEMAS: tuple[FlowSchema, ...] = (
    FlowSchema("exempt", EXEMPT, 1, _NONE, _all_of(groups=("system:masters",))),
    FlowSchema("probes", EXEMPT, 2, _NONE, (Rule(groups=_EVERYBODY, urls=(_PROBES,)),)),
    FlowSchema(
        "system-leader-election",
        "leader-election",
        100,
        _USER,
        (Rule((_CONTROLLERS, _SCHEDULER), accounts=_KUBE_SYSTEM, resources=(_HOLD_LEASES,)),),
    ),
    FlowSchema("system-node-high", "node-high", 400, _USER, (Rule(groups=_NODES, resources=_OWN_NODE),)),
    FlowSchema("system-nodes", "system", 500, _USER, _all_of(groups=_NODES)),
    FlowSchema("kube-controller-manager", "workload-high", 800, _NAMESPACE, _all_of((_CONTROLLERS,))),
    FlowSchema("kube-scheduler", "workload-high", 800, _NAMESPACE, _all_of((_SCHEDULER,))),
    FlowSchema(
        "kube-system-service-accounts", "workload-high", 900, _NAMESPACE, _all_of(accounts=_KUBE_SYSTEM)
    ),
    FlowSchema("service-accounts", "workload-low", 9000, _USER, _all_of(groups=("system:serviceaccounts",))),
    FlowSchema("global-default", "global-default", 9900, _USER, _all_of(groups=_EVERYBODY)),
    FlowSchema(CATCH_ALL, CATCH_ALL, 10000, _USER, _all_of(groups=_EVERYBODY)),
)


def level_object(level: PriorityLevel) -> Object:
    """The PriorityLevelConfiguration that a server makes of a bootstrap level."""
    return {"metadata": _metadata(level.name), "spec": level_spec(level)}


def level_spec(level: PriorityLevel) -> Object:
    """The object's spec; one that borrows without limit says nothing of it."""
    common = {"nominalConcurrencyShares": level.shares, "lendablePercent": level.lendable_percent}
    if level.response is Response.EXEMPT:
        return {"type": "Exempt", "exempt": common}
    response: Object = {"type": level.response.value}
    if level.response is Response.QUEUE:
        response["queuing"] = {
            "queues": level.queues,
            "handSize": level.hand_size,
            "queueLengthLimit": level.queue_length,
        }
    return {"type": "Limited", "limited": {**common, "limitResponse": response}}


def schema_object(schema: FlowSchema) -> Object:
    """The FlowSchema that a server makes of a bootstrap schema."""
    return {"metadata": _metadata(schema.name), "spec": schema_spec(schema)}


def schema_spec(schema: FlowSchema) -> Object:
    spec: Object = {
        "priorityLevelConfiguration": {"name": schema.level},
        "matchingPrecedence": schema.precedence,
    }
    if schema.distinguisher is not Distinguisher.NONE:
        spec["distinguisherMethod"] = {"type": schema.distinguisher.value}
    spec["rules"] = [_rule(rule) for rule in schema.rules]
    return spec


def _metadata(name: str) -> Object:
    return {"name": name, "annotations": {AUTO_UPDATE: "true"}}


def _rule(rule: Rule) -> Object:
    subjects: list[Object] = [{"kind": "User", "user": {"name": name}} for name in rule.users]
    subjects += [{"kind": "Group", "group": {"name": name}} for name in rule.groups]
    subjects += [
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}
        for namespace, name in rule.accounts
    ]
    found: Object = {"subjects": subjects}
    if rule.resources:
        found["resourceRules"] = [_resource_rule(each) for each in rule.resources]
    if rule.urls:
        found["nonResourceRules"] = [
            {"verbs": list(each.verbs), "nonResourceURLs": list(each.urls)} for each in rule.urls
        ]
    return found


def _resource_rule(rule: ResourceRule) -> Object:
    found: Object = {"verbs": list(rule.verbs), "apiGroups": list(rule.groups)}
    found["resources"] = list(rule.resources)
    if rule.cluster_scope:
        found["clusterScope"] = True
    found["namespaces"] = list(rule.namespaces)
    return found


def mandatory(levels: Sequence[PriorityLevel] = PRIORITY_LEVELS) -> dict[str, PriorityLevel]:
    """Those of the levels that hold without an object."""
    return {level.name: level for level in levels if level.name in MANDATORY}
