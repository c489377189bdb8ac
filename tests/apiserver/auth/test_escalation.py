"""Nobody grants more than they have."""

from __future__ import annotations

from typing import Any

import pytest

from harness.apiserver.admission.attributes import Attributes, Operation
from harness.apiserver.auth.authentication import UserInfo, admin_user
from harness.apiserver.auth.bootstrappolicy import GROUP
from harness.apiserver.auth.escalation import EscalationCheck
from harness.apiserver.auth.rbac import Rbac
from harness.apiserver.auth.rules import Rule, decode_binding, decode_role
from harness.apiserver.resources import RESOURCES
from harness.wire.status import StatusError
from tests.apiserver.auth.policies import binding, policy_rule, role

U = UserInfo("u", ("g",))
CREATE, UPDATE, DELETE = Operation
READ_PODS = Rule(("get",), ("",), ("pods",))
ALL_PODS = Rule(("*",), ("",), ("pods",))
WHO = 'user "u" (groups=["g"]) is attempting to grant RBAC permissions not currently held:\n'


def policy(*held: Rule) -> Rbac:
    """A policy in which U holds these rules in all namespaces, and `readers` and `owners` are cluster roles."""
    rbac = Rbac(bootstrap=False)
    for name, rules in (("held", held), ("readers", (READ_PODS,)), ("owners", (ALL_PODS,))):
        rbac.put_role(decode_role(role(name, *rules)))
    rbac.put_binding(decode_binding(binding("held", "held", "User:u")))
    return rbac


def refusal(
    rbac: Rbac,
    kind: str,
    new: dict[str, Any],
    user: UserInfo = U,
    old: dict[str, Any] | None = None,
    operation: Operation = CREATE,
) -> str | None:
    """The message; None if the write may be made."""
    found = next(row for row in RESOURCES if (row.group, row.resource) == (GROUP, kind))
    body = {"metadata": {"name": "x"}, **new}
    namespace = "na" if found.namespaced else ""
    attributes = Attributes(operation, found, "", namespace, "" if old is None else "x", user, body, old)
    try:
        EscalationCheck(rbac, rbac.allows)(attributes)
    except StatusError as error:
        return error.status.message
    return None


def rules(*given: Rule) -> dict[str, Any]:
    return {"rules": [policy_rule(rule) for rule in given]}


def refers(name: str, kind: str = "ClusterRole") -> dict[str, Any]:
    return {"roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}}


@pytest.mark.parametrize("kind", ["roles", "clusterroles"])
def test_a_role_may_hold_what_its_writer_holds(kind: str) -> None:
    assert refusal(policy(READ_PODS), kind, rules(READ_PODS)) is None
    text = f'{kind}.rbac.authorization.k8s.io "x" is forbidden: {WHO}'
    missing = '{APIGroups:[""], Resources:["pods"], Verbs:["*"]}'
    assert refusal(policy(READ_PODS), kind, rules(ALL_PODS)) == text + missing


@pytest.mark.parametrize("kind", ["rolebindings", "clusterrolebindings"])
def test_a_binding_may_give_what_its_writer_holds(kind: str) -> None:
    assert refusal(policy(READ_PODS), kind, refers("readers")) is None
    text = f'{kind}.rbac.authorization.k8s.io "x" is forbidden: {WHO}'
    assert (refusal(policy(READ_PODS), kind, refers("owners")) or "").startswith(text)
    missing = 'clusterroles.rbac.authorization.k8s.io "none" not found'
    assert refusal(policy(READ_PODS), kind, refers("none")) == missing


def test_a_binding_to_a_role_of_its_namespace() -> None:
    rbac = policy(READ_PODS)
    assert (
        refusal(rbac, "rolebindings", refers("r", "Role")) == 'roles.rbac.authorization.k8s.io "r" not found'
    )
    rbac.put_role(decode_role(role("r", READ_PODS, namespace="na")))
    assert refusal(rbac, "rolebindings", refers("r", "Role")) is None


@pytest.mark.parametrize(
    ("held", "kind", "new"),
    [
        (Rule(("escalate",), (GROUP,), ("roles",)), "roles", rules(ALL_PODS)),
        (Rule(("escalate",), (GROUP,), ("clusterroles",), names=("x",)), "clusterroles", rules(ALL_PODS)),
        (Rule(("bind",), (GROUP,), ("clusterroles",)), "rolebindings", refers("owners")),
        (
            Rule(("bind",), (GROUP,), ("clusterroles",), names=("owners",)),
            "clusterrolebindings",
            refers("owners"),
        ),
    ],
)
def test_escalate_and_bind_stand_for_the_rules_themselves(held: Rule, kind: str, new: dict[str, Any]) -> None:
    assert refusal(policy(held), kind, new) is None


def test_masters_may_grant_anything() -> None:
    assert refusal(policy(), "clusterroles", rules(ALL_PODS), admin_user()) is None


def test_aggregation_needs_everything() -> None:
    aggregated = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": []}
    found = refusal(policy(ALL_PODS), "clusterroles", aggregated) or ""
    assert "must have cluster-admin privileges to use an aggregationRule" in found
    everything = (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
    assert refusal(policy(*everything), "clusterroles", aggregated) is None


def test_an_update_that_grants_nothing_new_is_not_asked_about() -> None:
    old = {"metadata": {"name": "x"}, **rules(ALL_PODS)}
    assert refusal(policy(), "clusterroles", rules(ALL_PODS), old=old, operation=UPDATE) is None
    assert refusal(policy(), "clusterroles", rules(ALL_PODS, READ_PODS), old=old, operation=UPDATE)


def test_other_resources_and_deletions_are_not_looked_at() -> None:
    assert refusal(policy(), "roles", rules(ALL_PODS), operation=DELETE) is None
    configmaps = next(row for row in RESOURCES if row.resource == "configmaps")
    attributes = Attributes(CREATE, configmaps, "", "na", "", U, {"metadata": {}, "rules": []})
    EscalationCheck(policy(), policy().allows)(attributes)
