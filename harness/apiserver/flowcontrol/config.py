"""Priority levels and flow schemas: as flow control uses them, and as their API objects state them.

k8s.io/api flowcontrol/v1 (types.go); what makes a level unusable: k8s.io/apiserver v1.36
pkg/util/flowcontrol/apf_controller.go:905-945 (queueSetCompleterForPL) and pkg/util/shufflesharding/dealer.go.
"""

from __future__ import annotations

import math
from enum import Enum

import msgspec

EXEMPT = "exempt"
CATCH_ALL = "catch-all"
ALL = ("*",)
MAX_ENTROPY_BITS = 60  # shufflesharding.go:31: what a hand may use of a flow's 64 bits


class BrokenLevel(ValueError):
    """A PriorityLevelConfiguration that flow control pretends not to see."""


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
    """`shares` of the server's seats; `lendable_percent` of those may be lent, and `borrowing_percent` of them borrowed
    (None: as many as there are); queues only where it queues. `uid` is "" of one that is no object."""

    name: str
    shares: int
    lendable_percent: int = 0
    response: Response = Response.QUEUE
    queues: int = 0
    hand_size: int = 0
    queue_length: int = 0
    borrowing_percent: int | None = None
    uid: str = ""


class ResourceRule(msgspec.Struct, frozen=True):
    """("*",) matches all; `cluster_scope` admits requests without a namespace."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...]
    resources: tuple[str, ...]
    namespaces: tuple[str, ...] = ALL
    cluster_scope: bool = False


class UrlRule(msgspec.Struct, frozen=True):
    """For what is no resource: ("*",) matches all, ``/healthz`` whatever is below it too."""

    verbs: tuple[str, ...]
    urls: tuple[str, ...]


class Rule(msgspec.Struct, frozen=True):
    """Matches where one of its subjects is the user's and one of its rules the request's. "*" is every user or group;
    `accounts` are (namespace, name), the name "*" being all of the namespace."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    accounts: tuple[tuple[str, str], ...] = ()
    resources: tuple[ResourceRule, ...] = ()
    urls: tuple[UrlRule, ...] = ()


class FlowSchema(msgspec.Struct, frozen=True):
    """Requests that one of `rules` matches go to `level`; of several schemas the one of least `precedence` counts."""

    name: str
    level: str
    precedence: int
    distinguisher: Distinguisher = Distinguisher.NONE
    rules: tuple[Rule, ...] = ()
    uid: str = ""


class _Metadata(msgspec.Struct):
    name: str
    uid: str = ""


class _Queuing(msgspec.Struct, rename="camel"):
    queues: int = 64
    hand_size: int = 8
    queue_length_limit: int = 50


class _LimitResponse(msgspec.Struct):
    type: str = ""
    queuing: _Queuing | None = None


class _Limited(msgspec.Struct, rename="camel"):
    nominal_concurrency_shares: int | None = None
    lendable_percent: int | None = None
    borrowing_limit_percent: int | None = None
    limit_response: _LimitResponse = msgspec.field(default_factory=_LimitResponse)


class _Exempt(msgspec.Struct, rename="camel"):
    nominal_concurrency_shares: int | None = None
    lendable_percent: int | None = None


class _LevelSpec(msgspec.Struct):
    type: str = ""
    limited: _Limited | None = None
    exempt: _Exempt | None = None


class _LevelObject(msgspec.Struct):
    metadata: _Metadata
    spec: _LevelSpec = msgspec.field(default_factory=_LevelSpec)


class _Name(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Subject(msgspec.Struct, rename="camel"):
    kind: str = ""
    user: _Name | None = None
    group: _Name | None = None
    service_account: _Name | None = None


class _ResourceRule(msgspec.Struct, rename="camel"):
    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    cluster_scope: bool = False


class _UrlRule(msgspec.Struct):
    verbs: tuple[str, ...] = ()
    urls: tuple[str, ...] = msgspec.field(name="nonResourceURLs", default=())


class _Rule(msgspec.Struct, rename="camel"):
    subjects: tuple[_Subject, ...] = ()
    resource_rules: tuple[_ResourceRule, ...] = ()
    non_resource_rules: tuple[_UrlRule, ...] = ()


class _Distinguisher(msgspec.Struct):
    type: Distinguisher = Distinguisher.NONE


class _SchemaSpec(msgspec.Struct, rename="camel"):
    priority_level_configuration: _Name = msgspec.field(default_factory=_Name)
    matching_precedence: int = 1000
    distinguisher_method: _Distinguisher | None = None
    rules: tuple[_Rule, ...] | None = None


class Condition(msgspec.Struct, rename="camel", omit_defaults=True):
    """One of a flow schema's status."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct):
    conditions: list[Condition] | None = None


class _SchemaObject(msgspec.Struct):
    metadata: _Metadata
    spec: _SchemaSpec = msgspec.field(default_factory=_SchemaSpec)
    status: _Status = msgspec.field(default_factory=_Status)


_decode_level = msgspec.json.Decoder(_LevelObject).decode
_decode_schema = msgspec.json.Decoder(_SchemaObject).decode


def read_level(body: bytes) -> PriorityLevel:
    """Of a PriorityLevelConfiguration's JSON. Raises BrokenLevel."""
    try:
        found = _decode_level(body)
    except msgspec.ValidationError as error:
        raise BrokenLevel(str(error)) from None
    name, spec = found.metadata.name, found.spec
    if (spec.type == "Limited") != (spec.limited is not None):
        raise BrokenLevel("broken union structure at the top, for Limited")
    if (spec.type == "Exempt") != (spec.exempt is not None):
        raise BrokenLevel("broken union structure at the top, for Exempt")
    if (spec.type == "Exempt") != (name == EXEMPT):
        raise BrokenLevel("non-alignment between name and type")
    if spec.limited is None:
        exempt = spec.exempt or _Exempt()
        shares, lendable = exempt.nominal_concurrency_shares or 0, exempt.lendable_percent or 0
        return PriorityLevel(name, shares, lendable, Response.EXEMPT, uid=found.metadata.uid)
    return _limited(name, spec.limited, found.metadata.uid)


def _limited(name: str, limited: _Limited, uid: str) -> PriorityLevel:
    queuing = limited.limit_response.queuing
    if (limited.limit_response.type == "Reject") != (queuing is None):
        raise BrokenLevel("broken union structure for limit response")
    shares = 30 if limited.nominal_concurrency_shares is None else limited.nominal_concurrency_shares
    lendable, borrowing = limited.lendable_percent or 0, limited.borrowing_limit_percent
    if queuing is None:
        return PriorityLevel(name, shares, lendable, Response.REJECT, borrowing_percent=borrowing, uid=uid)
    _check_hand(queuing.queues, queuing.hand_size)
    return PriorityLevel(
        name,
        shares,
        lendable,
        Response.QUEUE,
        queuing.queues,
        queuing.hand_size,
        queuing.queue_length_limit,
        borrowing,
        uid,
    )


def _check_hand(queues: int, hand_size: int) -> None:
    if queues <= 0:
        return
    if not 0 < hand_size <= queues:
        raise BrokenLevel(f"a hand of {hand_size} cannot be dealt from {queues} queues")
    if math.ceil(math.log2(queues) * hand_size) > MAX_ENTROPY_BITS:
        raise BrokenLevel(f"a hand of {hand_size} of {queues} queues takes more than {MAX_ENTROPY_BITS} bits")


class SchemaObject(msgspec.Struct, frozen=True):
    """A flow schema, and what its object's status says of its level (None: nothing)."""

    schema: FlowSchema
    dangling: Condition | None


def read_schema(body: bytes) -> SchemaObject:
    """Of a FlowSchema's JSON. Raises msgspec.ValidationError where it has the wrong shape."""
    found = _decode_schema(body)
    spec = found.spec
    method = spec.distinguisher_method
    schema = FlowSchema(
        found.metadata.name,
        spec.priority_level_configuration.name,
        spec.matching_precedence,
        Distinguisher.NONE if method is None else method.type,
        tuple(_rule(rule) for rule in spec.rules or ()),
        found.metadata.uid,
    )
    said = [c for c in found.status.conditions or () if c.type == "Dangling"]
    return SchemaObject(schema, said[0] if said else None)


def _rule(rule: _Rule) -> Rule:
    users, groups, accounts = [], [], []
    for subject in rule.subjects:
        if subject.kind == "User" and subject.user is not None:
            users.append(subject.user.name)
        elif subject.kind == "Group" and subject.group is not None:
            groups.append(subject.group.name)
        elif subject.kind == "ServiceAccount" and subject.service_account is not None:
            accounts.append((subject.service_account.namespace, subject.service_account.name))
    return Rule(
        tuple(users),
        tuple(groups),
        tuple(accounts),
        tuple(
            ResourceRule(r.verbs, r.api_groups, r.resources, r.namespaces, r.cluster_scope)
            for r in rule.resource_rules
        ),
        tuple(UrlRule(r.verbs, r.urls) for r in rule.non_resource_rules),
    )
