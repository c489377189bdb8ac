"""What a Table shows of bindings, signing requests and flow control (kk/pkg/printers/internalversion/printers.go).

Roles have no columns of their own.
"""

from __future__ import annotations

from typing import Any

from harness.apiserver.views.ages import human
from harness.apiserver.views.printer import AGE, NAME, NONE, Cells, Object, Printer, age, column


def _binding(obj: Object, now: float) -> Cells:
    reference, subjects = obj.get("roleRef") or {}, obj.get("subjects") or []
    users = [item["name"] for item in subjects if item.get("kind") == "User"]
    groups = [item["name"] for item in subjects if item.get("kind") == "Group"]
    accounts = [
        f"{item.get('namespace', '')}/{item['name']}"
        for item in subjects
        if item.get("kind") == "ServiceAccount"
    ]
    return [
        obj["metadata"]["name"],
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        age(obj, now),
        ", ".join(users),
        ", ".join(groups),
        ", ".join(accounts),
    ]


def _request(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    seconds = spec.get("expirationSeconds")
    return [
        obj["metadata"]["name"],
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human(seconds),
        _condition(status),
    ]


def _condition(status: Object) -> str:
    kinds = {item.get("type") for item in status.get("conditions") or ()}
    shown = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    return shown + (",Failed" if "Failed" in kinds else "") + (",Issued" if status.get("certificate") else "")


def _flow_schema(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    dangling = [
        item.get("status", "")
        for item in (obj.get("status") or {}).get("conditions") or ()
        if item.get("type") == "Dangling"
    ]
    return [
        obj["metadata"]["name"],
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        (spec.get("distinguisherMethod") or {}).get("type", NONE),
        age(obj, now),
        dangling[0] if dangling else "?",
    ]


def _priority_level(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    shares: Any = (spec.get("limited") or spec.get("exempt") or {}).get("nominalConcurrencyShares", NONE)
    queuing = ((spec.get("limited") or {}).get("limitResponse") or {}).get("queuing") or {}
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        shares,
        *(queuing.get(key, NONE) for key in ("queues", "handSize", "queueLengthLimit")),
        age(obj, now),
    ]


_BINDING_COLUMNS = [
    NAME,
    column("Role", text="The role that is given."),
    AGE,
    column("Users", priority=1, text="The users whom it is given to."),
    column("Groups", priority=1, text="The groups that it is given to."),
    column("ServiceAccounts", priority=1, text="The accounts that it is given to."),
]
ACCESS: dict[str, Printer] = {
    "rolebindings.rbac.authorization.k8s.io": Printer(_BINDING_COLUMNS, _binding),
    "clusterrolebindings.rbac.authorization.k8s.io": Printer(_BINDING_COLUMNS, _binding),
    "certificatesigningrequests.certificates.k8s.io": Printer(
        [
            NAME,
            AGE,
            column("SignerName", text="Who is to sign."),
            column("Requestor", text="Who asks."),
            column("RequestedDuration", text="How long the certificate is to be good."),
            column("Condition", text="Whether it is approved and issued."),
        ],
        _request,
    ),
    "flowschemas.flowcontrol.apiserver.k8s.io": Printer(
        [
            NAME,
            column("PriorityLevel", text="The priority level that its requests belong to."),
            column("MatchingPrecedence", "integer", text="The lowest that matches a request is taken."),
            column("DistinguisherMethod", text="What makes two requests belong to one flow."),
            AGE,
            column("MissingPL", text="Whether its priority level is missing."),
        ],
        _flow_schema,
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": Printer(
        [
            NAME,
            column("Type", text="Whether its requests are limited."),
            column("NominalConcurrencyShares", text="Its part of the server's seats."),
            column("Queues", text="How many queues it has."),
            column("HandSize", text="How many of them a flow may use."),
            column("QueueLengthLimit", text="How many requests one queue takes."),
            AGE,
        ],
        _priority_level,
    ),
}
