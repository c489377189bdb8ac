"""Roles, bindings, certificate signing requests and flow control's objects: what is filled in, refused and kept."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest

from harness.apiserver.resources import RESOURCES
from harness.apiserver.strategies import Context, strategy_for
from tests.apiserver.certificates import request

BY_NAME = {resource.resource: strategy_for(resource) for resource in RESOURCES if resource.hub is None}
CONTEXT = Context("2026-01-01T00:00:00Z", random.Random(1))
LATER = Context("2026-01-02T00:00:00Z", random.Random(1))
GROUP = "rbac.authorization.k8s.io"
Object = dict[str, Any]


def created(resource: str, new: Object) -> Object:
    strategy = BY_NAME[resource]
    body = {"metadata": {"name": "x"}, **new}
    strategy.default(body)
    strategy.fill_create(body, "ns", CONTEXT)
    return strategy.ordered(body)


def faults(resource: str, new: Object) -> list[str]:
    body = created(resource, new)
    strategy = BY_NAME[resource]
    return [
        f"{error.field}: {error.message}"
        for error in strategy.metadata_errors(body["metadata"]) + strategy.validate(body)
    ]


def ref(kind: str = "ClusterRole", name: str = "r") -> Object:
    return {"apiGroup": GROUP, "kind": kind, "name": name}


# ---- roles and bindings --------------------------------------------------------------------------------------------
def test_a_role_without_rules_has_null() -> None:
    assert created("roles", {})["rules"] is None


def test_references_and_subjects_are_of_rbac_s_group() -> None:
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]
    found = created("rolebindings", {"subjects": subjects, "roleRef": {"kind": "Role", "name": "r"}})
    assert found["roleRef"] == ref("Role")
    assert [item.get("apiGroup") for item in found["subjects"]] == [GROUP, GROUP, None]
    assert "subjects" not in created("rolebindings", {"subjects": [], "roleRef": ref()})


def rules(**rule: Any) -> Object:
    return {"rules": [rule]}


FULL = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


@pytest.mark.parametrize(
    ("resource", "new", "wanted"),
    [
        ("roles", rules(**FULL), []),
        ("roles", rules(**FULL, resourceNames=["a"]), []),
        (
            "roles",
            rules(),
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
        ),
        (
            "roles",
            rules(verbs=["get"], nonResourceURLs=["/x"]),
            [
                (
                    'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource '
                    "URLs"
                )
            ],
        ),
        ("clusterroles", rules(verbs=["get"], nonResourceURLs=["/x"]), []),
        (
            "clusterroles",
            rules(**FULL, nonResourceURLs=["/x"]),
            [
                (
                    'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and '
                    "non-resource URLs"
                )
            ],
        ),
        (
            "clusterroles",
            {"aggregationRule": {}},
            [
                (
                    "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required "
                    "if aggregationRule is non-nil"
                )
            ],
        ),
        ("clusterroles", {"metadata": {"name": "system:x:Y"}}, []),
        (
            "clusterroles",
            {"metadata": {"name": "a/b%c"}},
            [
                """metadata.name: Invalid value: "a/b%c": may not contain '/'""",
                """metadata.name: Invalid value: "a/b%c": may not contain '%'""",
            ],
        ),
        (
            "clusterroles",
            {"metadata": {"name": ".."}},
            ["""metadata.name: Invalid value: "..": may not be '..'"""],
        ),
        ("rolebindings", {"roleRef": ref("Role")}, []),
        (
            "clusterrolebindings",
            {"roleRef": ref("Role")},
            ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
        ),
        (
            "rolebindings",
            {"roleRef": {"apiGroup": "x", "kind": "Robot"}},
            [
                f'roleRef.apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
                'roleRef.kind: Unsupported value: "Robot": supported values: "Role", "ClusterRole"',
                "roleRef.name: Required value",
            ],
        ),
        (
            "rolebindings",
            {"roleRef": ref(name="a/b")},
            ["""roleRef.name: Invalid value: "a/b": may not contain '/'"""],
        ),
        (
            "rolebindings",
            {"roleRef": ref(), "subjects": [{"kind": "User"}, {"kind": "Robot", "name": "r"}]},
            [
                "subjects[0].name: Required value",
                'subjects[0].name: Invalid value: "": user name cannot be empty',
                (
                    'subjects[1].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'
                ),
            ],
        ),
        (
            "clusterrolebindings",
            {"roleRef": ref(), "subjects": [{"kind": "ServiceAccount", "name": "s", "apiGroup": "x"}]},
            [
                'subjects[0].apiGroup: Unsupported value: "x": supported values: ""',
                "subjects[0].namespace: Required value",
            ],
        ),
        (
            "rolebindings",
            {"roleRef": ref(), "subjects": [{"kind": "Group", "name": "g", "apiGroup": "x"}]},
            [f'subjects[0].apiGroup: Unsupported value: "x": supported values: "{GROUP}"'],
        ),
    ],
)
def test_faults_of_roles_and_bindings(resource: str, new: Object, wanted: list[str]) -> None:
    assert faults(resource, new) == wanted


def test_a_binding_s_role_is_for_ever() -> None:
    strategy = BY_NAME["rolebindings"]
    old, new = (
        created("rolebindings", {"roleRef": ref()}),
        created("rolebindings", {"roleRef": ref(name="s")}),
    )
    (error,) = strategy.validate_update(new, old)
    assert error.field == "roleRef"
    assert error.message.endswith("cannot change roleRef")
    assert strategy.validate_update(old, old) == []


# ---- certificates --------------------------------------------------------------------------------------------------
SIGNER = "kubernetes.io/kube-apiserver-client"
APPROVED = {"type": "Approved", "status": "True"}


def signing_request(**spec: Any) -> Object:
    return {"spec": {"request": request("u"), "signerName": SIGNER, "usages": ["client auth"], **spec}}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, []),
        ({"signerName": "example.com/mine"}, []),
        ({"usages": []}, ["spec.usages: Required value"]),
        ({"usages": ["client auth", "client auth"]}, ['spec.usages[1]: Duplicate value: "client auth"']),
        ({"signerName": ""}, ["spec.signerName: Required value"]),
        (
            {"signerName": "mine"},
            [
                (
                    'spec.signerName: Invalid value: "mine": must be a fully qualified domain and path of the form '
                    '"example.com/signer-name"'
                )
            ],
        ),
        (
            {"signerName": "local/mine"},
            [
                (
                    'spec.signerName: Invalid value: "local": should be a domain with at least two segments separated '
                    "by dots"
                )
            ],
        ),
        (
            {"signerName": "kubernetes.io/legacy-unknown"},
            [
                (
                    'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not '
                    "allowed via this API version"
                )
            ],
        ),
        (
            {"expirationSeconds": 599},
            [
                (
                    "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 "
                    "minutes)"
                )
            ],
        ),
        ({"expirationSeconds": 600}, []),
        (
            {"request": "eA=="},
            ['spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST'],
        ),
        ({"request": "%"}, ['spec.request: Invalid value: "%": illegal base64 data']),
    ],
)
def test_faults_of_signing_requests(spec: Object, wanted: list[str]) -> None:
    assert faults("certificatesigningrequests", signing_request(**spec)) == wanted


def test_an_unknown_usage_is_not_supported() -> None:
    (fault,) = faults("certificatesigningrequests", signing_request(usages=["fun"]))
    assert fault.startswith('spec.usages[0]: Unsupported value: "fun": supported values: "any", "cert sign"')


def test_a_signed_request_that_was_changed_is_refused() -> None:
    pem = base64.b64decode(request("u")).decode()
    broken = pem.replace(pem.splitlines()[2][:4], "AAAA", 1)
    encoded = base64.b64encode(broken.encode()).decode()
    (fault,) = faults("certificatesigningrequests", signing_request(request=encoded))
    assert "x509: " in fault


def after(subresource: str, old: Object, status: Object) -> tuple[Object, list[str]]:
    """The request's status once a client has written `status` to a subresource, and what is wrong with it."""
    strategy = BY_NAME["certificatesigningrequests"]
    new = {"metadata": dict(old["metadata"]), "spec": {"request": "other"}, "status": status}
    strategy.default_status(new)
    strategy.fill_update(new, old, LATER, subresource)
    assert new["spec"] == old["spec"]
    errors = strategy.validate_subresource(subresource, new, old)
    return new["status"], [f"{error.field}: {error.message}" for error in errors]


def test_nothing_is_approved_from_the_start() -> None:
    found = created("certificatesigningrequests", {**signing_request(), "status": {"conditions": [APPROVED]}})
    assert found["status"] == {}


def test_approval_sets_conditions_with_their_times_and_no_certificate() -> None:
    old = created("certificatesigningrequests", signing_request())
    status, errors = after("approval", old, {"conditions": [{"type": "Approved"}], "certificate": "eA=="})
    assert status == {
        "conditions": [{**APPROVED, "lastUpdateTime": LATER.now, "lastTransitionTime": LATER.now}]
    }
    assert errors == []
    assert after("", old, {"conditions": [APPROVED]})[0] == {}


def test_status_sets_the_certificate_and_no_approval() -> None:
    old = created("certificatesigningrequests", signing_request())
    pem = base64.b64encode(b"no certificate").decode()
    status, errors = after("status", old, {"conditions": [APPROVED, {"type": "Failed"}], "certificate": pem})
    assert [item["type"] for item in status["conditions"]] == ["Failed"]
    assert errors == [
        (
            'status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block'
        )
    ]


@pytest.mark.parametrize(
    ("before", "written", "wanted"),
    [
        ([APPROVED], [APPROVED], []),
        (
            [APPROVED],
            [],
            ['status.conditions: Forbidden: updates may not remove a condition of type "Approved"'],
        ),
        (
            [],
            [APPROVED, {"type": "Denied"}],
            [
                (
                    'status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually '
                    "exclusive"
                )
            ],
        ),
        ([], [APPROVED, APPROVED], ['status.conditions[1].type: Duplicate value: "Approved"']),
        (
            [],
            [{"type": "Approved", "status": "False"}],
            ['status.conditions[0].status: Unsupported value: "False": supported values: "True"'],
        ),
        ([], [{"status": "True"}], ["status.conditions[0].type: Required value"]),
        ([], [{"type": "Mine", "status": "Unknown"}], []),
    ],
)
def test_faults_of_approvals(before: list[Object], written: list[Object], wanted: list[str]) -> None:
    old = created("certificatesigningrequests", signing_request())
    old["status"] = {"conditions": before} if before else {}
    assert after("approval", old, {"conditions": [dict(item) for item in written]})[1] == wanted


def test_a_certificate_is_not_replaced() -> None:
    old = created("certificatesigningrequests", signing_request())
    old["status"] = {"certificate": "eA=="}
    wanted = ["status.certificate: Forbidden: updates may not modify existing certificate content"]
    assert after("status", old, {"certificate": "eQ=="})[1] == wanted


# ---- flow control --------------------------------------------------------------------------------------------------
SUBJECT = {"kind": "User", "user": {"name": "u"}}
RESOURCE_RULE = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}


def schema(*rule: Object, **spec: Any) -> Object:
    return {"spec": {"priorityLevelConfiguration": {"name": "l"}, "rules": list(rule), **spec}}


def rule(**more: Any) -> Object:
    return {"subjects": [SUBJECT], "resourceRules": [RESOURCE_RULE], **more}


def level(kind: str = "Limited", **part: Any) -> Object:
    return {"spec": {"type": kind, **part}}


def test_defaults_of_flow_control() -> None:
    assert created("flowschemas", schema())["spec"]["matchingPrecedence"] == 1000
    assert created("flowschemas", schema())["metadata"]["generation"] == 1
    queue = {"type": "Queue", "queuing": {"queues": 1}}
    found = created("prioritylevelconfigurations", level(limited={"limitResponse": queue}))["spec"]["limited"]
    assert (found["nominalConcurrencyShares"], found["lendablePercent"]) == (30, 0)
    assert found["limitResponse"]["queuing"] == {"queues": 1, "handSize": 8, "queueLengthLimit": 50}
    exempt = created("prioritylevelconfigurations", level("Exempt"))["spec"]["exempt"]
    assert exempt == {"nominalConcurrencyShares": 0, "lendablePercent": 0}


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        (schema(rule()), []),
        (schema(rule(), distinguisherMethod={"type": "ByUser"}), []),
        (
            schema(distinguisherMethod={"type": "ByHat"}),
            [
                (
                    'spec.distinguisherMethod.type: Unsupported value: "ByHat": supported values: "ByNamespace", '
                    '"ByUser"'
                )
            ],
        ),
        (
            schema(matchingPrecedence=-1),
            ["spec.matchingPrecedence: Invalid value: -1: must be a positive value"],
        ),
        (schema(matchingPrecedence=10000), []),
        (
            schema(matchingPrecedence=10001),
            ["spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000"],
        ),
        (
            schema(matchingPrecedence=1),
            [
                (
                    "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have "
                    "matchingPrecedence 1"
                )
            ],
        ),
        (
            schema(priorityLevelConfiguration={}),
            ["spec.priorityLevelConfiguration.name: Required value: must reference a priority level"],
        ),
        (
            schema({}),
            [
                "spec.rules[0].subjects: Required value: subjects must contain at least one value",
                "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty",
            ],
        ),
        (
            schema(rule(subjects=[{"kind": "Robot"}])),
            [
                (
                    'spec.rules[0].subjects[0].kind: Unsupported value: "Robot": supported values: "Group", '
                    '"ServiceAccount", "User"'
                )
            ],
        ),
        (
            schema(rule(subjects=[{"kind": "User", "group": {"name": "g"}}])),
            ["spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'"],
        ),
        (
            schema(rule(subjects=[{**SUBJECT, "group": {"name": "g"}}])),
            [
                "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'"
            ],
        ),
        (
            schema(rule(subjects=[{"kind": "ServiceAccount", "serviceAccount": {"name": "*"}}])),
            [
                (
                    "spec.rules[0].subjects[0].serviceAccount.namespace: Required value: must specify namespace for "
                    "service account"
                )
            ],
        ),
        (
            schema(
                rule(resourceRules=[{"verbs": ["fly"], "apiGroups": ["*", "a"], "namespaces": ["*", "b"]}])
            ),
            [
                (
                    'spec.rules[0].resourceRules[0].verbs: Unsupported value: ["fly"]: supported values: "create", '
                    '"delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"'
                ),
                (
                    'spec.rules[0].resourceRules[0].apiGroups: Invalid value: ["*","a"]: if \'*\' is present, must not '
                    "specify other api groups"
                ),
                (
                    "spec.rules[0].resourceRules[0].resources: Required value: resource rules must supply at least one "
                    "resource"
                ),
                (
                    'spec.rules[0].resourceRules[0].namespaces: Invalid value: ["*","b"]: if \'*\' is present, must '
                    "not specify other namespaces"
                ),
            ],
        ),
        (
            schema(rule(resourceRules=[{**RESOURCE_RULE, "namespaces": []}])),
            [
                (
                    "spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster "
                    "scoped must supply at least one namespace"
                )
            ],
        ),
        (schema(rule(resourceRules=[{**RESOURCE_RULE, "namespaces": [], "clusterScope": True}])), []),
        (
            schema(rule(nonResourceRules=[{"verbs": ["*", "get"]}])),
            [
                (
                    'spec.rules[0].nonResourceRules[0].verbs: Invalid value: ["*","get"]: if \'*\' is present, must '
                    "not specify other verbs"
                ),
                (
                    "spec.rules[0].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain "
                    "at least one value"
                ),
            ],
        ),
    ],
)
def test_faults_of_flow_schemas(new: Object, wanted: list[str]) -> None:
    assert faults("flowschemas", new) == wanted


def test_the_exempt_schema_may_come_first() -> None:
    assert faults("flowschemas", {"metadata": {"name": "exempt"}, **schema(matchingPrecedence=1)}) == []


QUEUE = {"limitResponse": {"type": "Queue", "queuing": {}}}


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        (level(limited=QUEUE), []),
        (level(limited={"limitResponse": {"type": "Reject"}}), []),
        (level("Exempt"), []),
        (level("Some"), ['spec.type: Unsupported value: "Some": supported values: "Exempt", "Limited"']),
        (level("Exempt", limited=QUEUE), ["spec.limited: Forbidden: must be nil if the type is Exempt"]),
        (level(limited=QUEUE, exempt={}), ["spec.exempt: Forbidden: must be nil if the type is Limited"]),
        (
            level(limited={**QUEUE, "nominalConcurrencyShares": -1, "lendablePercent": 101}),
            [
                "spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
            ],
        ),
        (
            level(limited={**QUEUE, "borrowingLimitPercent": -1}),
            [
                (
                    "spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative "
                    "integer"
                )
            ],
        ),
        (
            level(limited={"limitResponse": {"type": "Reject", "queuing": {}}}),
            [
                (
                    "spec.limited.limitResponse.queuing: Forbidden: must be nil if limited.limitResponse.type is not "
                    "Limited"
                )
            ],
        ),
        (
            level(limited={"limitResponse": {"type": "Queue"}}),
            [
                (
                    "spec.limited.limitResponse.queuing: Required value: must not be empty if "
                    "limited.limitResponse.type is Limited"
                )
            ],
        ),
        (
            level(limited={}),
            ['spec.limited.limitResponse.type: Unsupported value: "": supported values: "Queue", "Reject"'],
        ),
        (
            level(limited={"limitResponse": {"type": "Queue", "queuing": {"queues": 2, "handSize": 3}}}),
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 3: should not be greater than queues (2)"
            ],
        ),
        (
            level(
                limited={
                    "limitResponse": {
                        "type": "Queue",
                        "queuing": {"queues": 10_000_001, "handSize": -1, "queueLengthLimit": -1},
                    }
                }
            ),
            [
                "spec.limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
                (
                    "spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than "
                    "10000000"
                ),
                "spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive",
            ],
        ),
    ],
)
def test_faults_of_priority_levels(new: Object, wanted: list[str]) -> None:
    assert faults("prioritylevelconfigurations", new) == wanted
