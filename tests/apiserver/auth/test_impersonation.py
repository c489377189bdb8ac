"""Acting as somebody else: who may, who one becomes, and the texts of refusals."""

from __future__ import annotations

from random import Random

import pytest

from harness.apiserver.auth.authentication import UserInfo, account_user, admin_user
from harness.apiserver.auth.authorization import Authorizer
from harness.apiserver.auth.impersonation import Impersonation
from harness.apiserver.auth.nodeauthorizer import NodeAuthorizer
from harness.apiserver.auth.rules import Rule
from harness.apiserver.clock import VirtualClock
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import Costs
from harness.wire.paths import parse_path
from harness.wire.status import StatusError
from tests.apiserver.auth.policies import granting

ADMIN = admin_user()
SOMEONE = UserInfo("someone", ("system:authenticated",))
LIST_PODS = parse_path("/api/v1/pods")


class Setup:
    def __init__(self, *rules: Rule) -> None:
        clock = VirtualClock()
        self.metrics = Metrics()
        node = NodeAuthorizer(clock, Host(clock, None, Costs()), Random(1), self.metrics)
        rbac = granting(*rules)
        self.impersonation = Impersonation(self.metrics, Authorizer(self.metrics, node, rbac))

    def become(self, user: UserInfo = ADMIN, **headers: str) -> UserInfo:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.impersonation.impersonate(user, LIST_PODS, named)

    def refusal(self, user: UserInfo = SOMEONE, **headers: str) -> tuple[int, str]:
        with pytest.raises(StatusError) as caught:
            self.become(user, **headers)
        return caught.value.status.code, caught.value.status.message

    def checks(self) -> dict[tuple[str, ...], float]:
        family = self.metrics.apiserver_impersonation_authorization_attempts_total
        return {key: child.value for key, child in family.children.items()}


def test_without_headers_nothing_changes() -> None:
    assert Setup().become(accept="application/json") is ADMIN


def test_a_node_with_its_group_costs_two_legacy_checks_a_request() -> None:
    setup = Setup()
    for _ in range(3):
        user = setup.become(impersonate_user="system:node:n1", impersonate_group="system:nodes")
    assert user == UserInfo("system:node:n1", ("system:nodes", "system:authenticated"))
    assert user.node_name == "n1"
    assert setup.checks() == {("legacy", "allowed"): 6}
    attempts = setup.metrics.apiserver_impersonation_attempts_total
    assert attempts.labels("legacy", "allowed").value == 3


def test_an_admin_who_names_only_a_node_becomes_one_in_constrained_mode() -> None:
    setup = Setup()
    user = setup.become(impersonate_user="system:node:n1")
    assert user.groups == ("system:nodes", "system:authenticated")
    assert setup.metrics.apiserver_impersonation_attempts_total.labels("arbitrary-node", "allowed").value == 1


def test_with_legacy_rights_only_a_node_without_its_group_is_no_node() -> None:
    setup = Setup(Rule(("impersonate",), ("",), ("users", "groups")))
    user = setup.become(SOMEONE, impersonate_user="system:node:n1")
    assert user.groups == ("system:authenticated",)
    assert user.node_name is None


def test_with_constrained_rights_a_node_gets_its_group() -> None:
    setup = Setup(
        Rule(("impersonate:arbitrary-node",), ("authentication.k8s.io",), ("nodes",)),
        Rule(("impersonate-on:arbitrary-node:list",), ("",), ("pods",)),
    )
    assert setup.become(SOMEONE, impersonate_user="system:node:n1").node_name == "n1"


def test_a_service_account_gets_its_groups() -> None:
    user = Setup().become(impersonate_user="system:serviceaccount:ns:default")
    assert (user.name, user.groups) == (
        account_user("ns", "default").name,
        account_user("ns", "default").groups,
    )


def test_groups_extra_and_uid_are_taken_over() -> None:
    user = Setup().become(
        impersonate_user="jane",
        impersonate_group="dev, system:authenticated",
        impersonate_uid="u1",
        **{"impersonate_extra_acme.com%2Fproject": "x,y"},
    )
    assert user == UserInfo(
        "jane", ("dev", "system:authenticated"), "u1", (("acme.com/project", ("x", "y")),)
    )


@pytest.mark.parametrize(
    ("name", "groups", "expected"),
    [
        ("system:anonymous", None, ("system:unauthenticated",)),
        ("jane", "system:unauthenticated", ("system:unauthenticated",)),
        ("jane", "system:masters", ("system:masters", "system:authenticated")),
    ],
)
def test_everybody_is_in_one_of_the_two_groups(
    name: str, groups: str | None, expected: tuple[str, ...]
) -> None:
    headers = {"impersonate_user": name} | ({"impersonate_group": groups} if groups else {})
    assert Setup().become(**headers).groups == expected


def test_groups_without_a_user_are_a_bad_request() -> None:
    assert Setup().refusal(ADMIN, impersonate_group="system:nodes") == (
        400,
        (
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"system:nodes"}, '
            "Extra:map[string][]string(nil)} without impersonating a user name"
        ),
    )


def test_the_first_refusal_is_the_answer() -> None:
    setup = Setup()
    assert setup.refusal(impersonate_user="jane") == (
        403,
        (
            'pods is forbidden: User "someone" cannot impersonate-on:user-info:list resource "pods" in API group "" '
            "at the cluster scope"
        ),
    )
    assert setup.checks() == {("user-info", "denied"): 1, ("legacy", "denied"): 1}
    assert setup.metrics.apiserver_impersonation_attempts_total.labels("", "denied").value == 1


def test_a_node_with_groups_is_refused_in_legacy_words() -> None:
    assert Setup().refusal(impersonate_user="system:node:n1", impersonate_group="system:nodes") == (
        403,
        (
            'users "system:node:n1" is forbidden: User "someone" cannot impersonate resource "users" in API group "" '
            "at the cluster scope"
        ),
    )


def test_the_right_to_a_user_is_none_to_a_group() -> None:
    setup = Setup(Rule(("impersonate",), ("",), ("users",)))
    code, message = setup.refusal(impersonate_user="system:node:n1", impersonate_group="system:nodes")
    assert code == 403
    assert message.startswith('groups "system:nodes" is forbidden: User "someone" cannot impersonate')


def test_constrained_rights_never_give_the_privileged_group() -> None:
    setup = Setup(Rule(("*",), ("authentication.k8s.io", ""), ("users", "groups", "pods")))
    assert setup.become(SOMEONE, impersonate_user="jane", impersonate_group="system:masters").groups[0] == (
        "system:masters"
    )
    limited = Setup(
        Rule(("impersonate:user-info",), ("authentication.k8s.io",), ("users", "groups")),
        Rule(("impersonate-on:user-info:list",), ("",), ("pods",)),
    )
    assert limited.become(SOMEONE, impersonate_user="jane", impersonate_group="dev").name == "jane"
    code, message = limited.refusal(impersonate_user="jane", impersonate_group="system:masters")
    assert code == 403
    assert message.endswith("impersonating the system:masters group is not allowed")
