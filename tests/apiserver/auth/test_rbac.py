"""What the bootstrap roles allow."""

from __future__ import annotations

import pytest

from harness.apiserver.auth.authentication import ANONYMOUS_USER, UserInfo, account_user, admin_user
from harness.apiserver.auth.rbac import Binding, Rbac, Rule
from harness.wire.paths import parse_path

SOMEONE = UserInfo("someone", ("system:authenticated",))
SCHEDULER = UserInfo("system:kube-scheduler", ("system:authenticated",))
MANAGER = UserInfo("system:kube-controller-manager", ("system:authenticated",))
ACCOUNTS = account_user("kube-system", "service-account-controller")
PUBLISHER = account_user("kube-system", "root-ca-cert-publisher")
NAMESPACES = account_user("kube-system", "namespace-controller")
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("user", "method", "path", "allowed"),
    [
        (admin_user(), "DELETE", "/api/v1/nodes", True),
        (admin_user(), "GET", "/metrics", True),
        (SOMEONE, "GET", "/api", True),
        (SOMEONE, "GET", "/apis/apps/v1", True),
        (SOMEONE, "GET", "/openapi/v2", True),
        (SOMEONE, "GET", "/version", True),
        (SOMEONE, "GET", "/healthz", True),
        (SOMEONE, "GET", "/metrics", False),
        (SOMEONE, "POST", "/api", False),
        (SOMEONE, "GET", "/api/v1/namespaces", False),
        (SOMEONE, "POST", REVIEW, True),
        (ANONYMOUS_USER, "GET", "/readyz", True),
        (ANONYMOUS_USER, "GET", "/version", True),
        (ANONYMOUS_USER, "GET", "/api", False),
        (ANONYMOUS_USER, "GET", "/api/v1/namespaces", False),
        (UserInfo("p", ("system:monitoring",)), "GET", "/metrics", True),
        (SCHEDULER, "POST", "/api/v1/namespaces/a/pods/p/binding", True),
        (SCHEDULER, "PATCH", "/api/v1/namespaces/a/pods/p/status", True),
        (SCHEDULER, "GET", "/api/v1/pods?watch=true", True),
        (SCHEDULER, "GET", "/api/v1/nodes?limit=500", True),
        (SCHEDULER, "POST", "/api/v1/namespaces/a/events", True),
        (SCHEDULER, "GET", "/api/v1/namespaces/a/secrets/s", False),
        (SCHEDULER, "POST", "/api/v1/namespaces/a/pods", False),
        (MANAGER, "POST", "/api/v1/namespaces/a/serviceaccounts", True),
        (MANAGER, "PUT", "/api/v1/namespaces/a/finalize", True),
        (MANAGER, "GET", "/api/v1/configmaps?watch=true", True),
        (ACCOUNTS, "POST", "/api/v1/namespaces/a/serviceaccounts", True),
        (ACCOUNTS, "POST", "/api/v1/namespaces/a/configmaps", False),
        (PUBLISHER, "POST", "/api/v1/namespaces/a/configmaps", True),
        (PUBLISHER, "GET", "/api/v1/namespaces?watch=true", True),
        (NAMESPACES, "DELETE", "/api/v1/namespaces/a/pods", True),
        (NAMESPACES, "PUT", "/api/v1/namespaces/a/finalize", True),
        (NAMESPACES, "POST", "/api/v1/namespaces/a/pods", False),
        (account_user("a", "default"), "GET", "/api/v1/namespaces/a/pods", False),
    ],
)
def test_bootstrap_roles(user: UserInfo, method: str, path: str, allowed: bool) -> None:
    assert Rbac().allows(user, parse_path(path, method)) == allowed


def test_rules_can_name_objects_and_urls() -> None:
    rules = (Rule(("get",), ("",), ("configmaps",), names=("c",)), Rule(("get",), urls=("/logs/*",)))
    rbac = Rbac([Binding("r", rules, users=("u",))])
    user = UserInfo("u")
    assert rbac.allows(user, parse_path("/api/v1/namespaces/a/configmaps/c"))
    assert not rbac.allows(user, parse_path("/api/v1/namespaces/a/configmaps/d"))
    assert not rbac.allows(user, parse_path("/apis/x/v1/namespaces/a/configmaps/c"))
    assert rbac.allows(user, parse_path("/logs/a"))
    assert not rbac.allows(user, parse_path("/logs"))


def test_a_rule_for_a_resource_is_none_for_its_subresources() -> None:
    rbac = Rbac([Binding("r", (Rule(("*",), ("",), ("pods",)),), groups=("g",))])
    user = UserInfo("u", ("g",))
    assert rbac.allows(user, parse_path("/api/v1/namespaces/a/pods/p", "PUT"))
    assert not rbac.allows(user, parse_path("/api/v1/namespaces/a/pods/p/status", "PUT"))
