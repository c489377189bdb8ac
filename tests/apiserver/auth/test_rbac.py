"""What roles allow, and to whom, as roles and bindings come and go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.apiserver.auth.authentication import ANONYMOUS_USER, UserInfo, account_user, admin_user
from harness.apiserver.auth.bootstrappolicy import GROUP, bootstrap_objects
from harness.apiserver.auth.rbac import KINDS, Rbac, RoleNotFound
from harness.apiserver.auth.rbacinformer import RbacInformer
from harness.apiserver.auth.rules import RoleRef, Rule, decode_binding, decode_role, uncovered
from harness.apiserver.cache.cachedobject import ObjectReader
from harness.apiserver.clock import VirtualClock
from harness.apiserver.resources import RESOURCES
from harness.wire.paths import parse_path
from tests.apiserver.auth.policies import binding, granting, role

SOMEONE = UserInfo("someone", ("system:authenticated",))
SCHEDULER = UserInfo("system:kube-scheduler", ("system:authenticated",))
MANAGER = UserInfo("system:kube-controller-manager", ("system:authenticated",))
PROXY = UserInfo("system:kube-proxy", ("system:authenticated",))
ACCOUNTS = account_user("kube-system", "service-account-controller")
PUBLISHER = account_user("kube-system", "root-ca-cert-publisher")
NAMESPACES = account_user("kube-system", "namespace-controller")
JOBS = account_user("kube-system", "job-controller")
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
BOOTSTRAP = Rbac()


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
        (SOMEONE, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", True),
        (SOMEONE, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", False),
        (ANONYMOUS_USER, "GET", "/readyz", True),
        (ANONYMOUS_USER, "GET", "/livez", True),
        (ANONYMOUS_USER, "GET", "/version", True),
        (ANONYMOUS_USER, "GET", "/api", False),
        (ANONYMOUS_USER, "GET", "/metrics", False),
        (ANONYMOUS_USER, "POST", REVIEW, False),
        (ANONYMOUS_USER, "GET", "/api/v1/namespaces", False),
        (UserInfo("p", ("system:monitoring",)), "GET", "/metrics", True),
        (UserInfo("p", ("system:monitoring",)), "GET", "/readyz/etcd", True),
        (SCHEDULER, "POST", "/api/v1/namespaces/a/pods/p/binding", True),
        (SCHEDULER, "PATCH", "/api/v1/namespaces/a/pods/p/status", True),
        (SCHEDULER, "GET", "/api/v1/pods?watch=true", True),
        (SCHEDULER, "GET", "/api/v1/nodes?limit=500", True),
        (SCHEDULER, "POST", "/api/v1/namespaces/a/events", True),
        (SCHEDULER, "POST", "/apis/events.k8s.io/v1/namespaces/a/events", True),
        (SCHEDULER, "PATCH", "/api/v1/persistentvolumes/v", True),
        (SCHEDULER, "PUT", f"{LEASES}/kube-scheduler", True),
        (SCHEDULER, "PUT", f"{LEASES}/kube-controller-manager", False),
        (SCHEDULER, "GET", "/api/v1/namespaces/a/secrets/s", False),
        (SCHEDULER, "GET", "/api/v1/namespaces/kube-system/configmaps/kube-scheduler", True),
        (SCHEDULER, "GET", "/api/v1/namespaces/a/configmaps/kube-scheduler", False),
        (SCHEDULER, "POST", "/api/v1/namespaces/a/pods", False),
        (MANAGER, "POST", "/api/v1/namespaces/a/serviceaccounts", True),
        (MANAGER, "POST", "/api/v1/namespaces/a/serviceaccounts/x/token", True),
        (MANAGER, "PUT", "/api/v1/namespaces/a/finalize", False),
        (MANAGER, "GET", "/api/v1/configmaps?watch=true", True),
        (MANAGER, "GET", "/apis/anything.example.com/v1/widgets?watch=true", True),
        (ACCOUNTS, "POST", "/api/v1/namespaces/a/serviceaccounts", True),
        (ACCOUNTS, "GET", "/api/v1/namespaces?watch=true", True),
        (ACCOUNTS, "POST", "/api/v1/namespaces/a/configmaps", False),
        (PUBLISHER, "POST", "/api/v1/namespaces/a/configmaps", True),
        (PUBLISHER, "GET", "/api/v1/namespaces?watch=true", True),
        (NAMESPACES, "DELETE", "/api/v1/namespaces/a/pods", True),
        (NAMESPACES, "PUT", "/api/v1/namespaces/a/finalize", True),
        (NAMESPACES, "POST", "/api/v1/namespaces/a/pods", False),
        (JOBS, "POST", "/api/v1/namespaces/a/pods", True),
        (JOBS, "PUT", "/apis/batch/v1/namespaces/a/jobs/j/status", True),
        (PROXY, "GET", "/apis/discovery.k8s.io/v1/endpointslices?watch=true", True),
        (account_user("a", "default"), "GET", "/api/v1/namespaces/a/pods", False),
    ],
)
def test_bootstrap_roles(user: UserInfo, method: str, path: str, allowed: bool) -> None:
    assert BOOTSTRAP.allows(user, parse_path(path, method)) == allowed
    assert BOOTSTRAP.allows(user, parse_path(path, method)) == allowed  # from memory


def test_edit_is_view_and_more_and_admin_may_grant() -> None:
    rules = {
        item.name: decode_role(item.body).compiled()
        for item in bootstrap_objects()
        if item.resource.endswith("roles")
    }
    assert not uncovered(rules["edit"], rules["view"])
    assert not uncovered(rules["admin"], rules["edit"])
    assert uncovered(rules["edit"], rules["admin"])
    assert not uncovered(rules["cluster-admin"], rules["admin"])


def test_every_bootstrap_binding_refers_to_a_role() -> None:
    rbac = Rbac()
    for item in bootstrap_objects():
        if item.resource.endswith("bindings"):
            rbac.role_rules(decode_binding(item.body).role_ref, item.namespace)


PODS = Rule(("get", "list"), ("",), ("pods",))
STATUS = Rule(("update",), ("apps", "batch"), ("jobs/status",))
SCALE = Rule(("get",), ("*",), ("*/scale",))
NAMED = Rule(("*",), ("",), ("configmaps",), names=("a", "b"))
URLS = Rule(("get", "post"), urls=("/logs/*", "/exact", "/many**"))


@pytest.mark.parametrize(
    ("rule", "method", "path", "allowed"),
    [
        (PODS, "GET", "/api/v1/namespaces/n/pods/p", True),
        (PODS, "GET", "/api/v1/pods", True),
        (PODS, "GET", "/api/v1/pods?watch=1", False),
        (PODS, "GET", "/api/v1/namespaces/n/pods/p/status", False),
        (PODS, "GET", "/apis/apps/v1/namespaces/n/pods/p", False),
        (STATUS, "PUT", "/apis/batch/v1/namespaces/n/jobs/j/status", True),
        (STATUS, "PUT", "/apis/batch/v1/namespaces/n/jobs/j", False),
        (SCALE, "GET", "/apis/apps/v1/namespaces/n/deployments/d/scale", True),
        (SCALE, "GET", "/apis/apps/v1/namespaces/n/deployments/d/status", False),
        (SCALE, "GET", "/apis/apps/v1/namespaces/n/deployments/d", False),
        (NAMED, "GET", "/api/v1/namespaces/n/configmaps/a", True),
        (NAMED, "DELETE", "/api/v1/namespaces/n/configmaps/b", True),
        (NAMED, "GET", "/api/v1/namespaces/n/configmaps/c", False),
        (NAMED, "GET", "/api/v1/namespaces/n/configmaps", False),
        (NAMED, "POST", "/api/v1/namespaces/n/configmaps", False),
        (URLS, "GET", "/logs/x", True),
        (URLS, "POST", "/logs/", True),
        (URLS, "GET", "/logs", False),
        (URLS, "GET", "/exact", True),
        (URLS, "GET", "/exact/", False),
        (URLS, "GET", "/many/x", True),
        (URLS, "PUT", "/exact", False),
        (URLS, "GET", "/api/v1/pods", False),
        (Rule(("*",), ("*",), ("*",)), "DELETE", "/apis/a.b/v1/namespaces/n/widgets/w/status", True),
        (Rule(("*",), ("*",), ("*",)), "GET", "/metrics", False),
        (Rule(("*",), urls=("*",)), "GET", "/metrics", True),
        (Rule(("*",), urls=("*",)), "GET", "/api/v1/pods", False),
    ],
)
def test_rules(rule: Rule, method: str, path: str, allowed: bool) -> None:
    info = parse_path(path, method)
    assert rule.allows(info) == allowed
    assert granting(rule).allows(SOMEONE, info) == allowed


@pytest.mark.parametrize(
    ("subject", "user", "bound"),
    [
        ("User:u", UserInfo("u"), True),
        ("User:u", UserInfo("v", ("u",)), False),
        ("Group:g", UserInfo("v", ("f", "g")), True),
        ("Group:g", UserInfo("g"), False),
        ("ServiceAccount:na/s", account_user("na", "s"), True),
        ("ServiceAccount:nb/s", account_user("na", "s"), False),
        ("User:system:serviceaccount:na:s", account_user("na", "s"), True),
        ("Group:system:serviceaccounts:na", account_user("na", "s"), True),
        ("Robot:u", UserInfo("u", ("u",)), False),
    ],
)
def test_subjects(subject: str, user: UserInfo, bound: bool) -> None:
    assert granting(PODS, subject=subject).allows(user, parse_path("/api/v1/pods")) == bound


def test_a_role_binding_is_good_in_its_namespace_alone() -> None:
    rbac = Rbac(bootstrap=False)
    rbac.put_role(decode_role(role("mine", PODS, namespace="na")))
    rbac.put_role(decode_role(role("everybodys", NAMED)))
    rbac.put_binding(decode_binding(binding("b", "mine", "User:u", namespace="na", kind="Role")))
    rbac.put_binding(decode_binding(binding("c", "everybodys", "ServiceAccount:s", namespace="na")))
    user = UserInfo("u")
    assert rbac.allows(user, parse_path("/api/v1/namespaces/na/pods"))
    assert not rbac.allows(user, parse_path("/api/v1/namespaces/nb/pods"))
    assert not rbac.allows(user, parse_path("/api/v1/pods"))
    account = account_user("na", "s")  # a subject without a namespace is of the binding's
    assert rbac.allows(account, parse_path("/api/v1/namespaces/na/configmaps/a"))
    assert not rbac.allows(account, parse_path("/api/v1/namespaces/nb/configmaps/a"))


def test_changes_count_at_once() -> None:
    rbac = Rbac(bootstrap=False)
    user, pods = UserInfo("u", ("g",)), parse_path("/api/v1/pods")
    assert not rbac.allows(user, pods)
    rbac.put_binding(decode_binding(binding("b", "r", "Group:g", "Group:g")))
    assert not rbac.allows(user, pods)  # the role is not there yet
    with pytest.raises(RoleNotFound, match="not found"):
        rbac.role_rules(RoleRef("ClusterRole", "r"), "")
    rbac.put_role(decode_role(role("r", PODS)))
    assert rbac.allows(user, pods)
    rbac.put_role(decode_role(role("r", NAMED)))
    assert not rbac.allows(user, pods)
    rbac.put_role(decode_role(role("r", PODS)))
    rbac.put_binding(decode_binding(binding("b", "r", "User:v")))
    assert not rbac.allows(user, pods)
    assert rbac.allows(UserInfo("v"), pods)
    rbac.drop_role(("", "r"))
    assert not rbac.allows(UserInfo("v"), pods)
    rbac.put_role(decode_role(role("r", PODS)))
    rbac.drop_binding(("", "b"))
    rbac.drop_binding(("", "b"))
    assert not rbac.allows(UserInfo("v"), pods)
    assert rbac.keys() == ({("", "r")}, set())


def test_names_of_several_rules_add_up() -> None:
    rbac = granting(NAMED, Rule(("get",), ("",), ("configmaps",), names=("c",)))
    assert rbac.allows(SOMEONE, parse_path("/api/v1/namespaces/n/configmaps/c"))
    assert not rbac.allows(SOMEONE, parse_path("/api/v1/namespaces/n/configmaps/c", "DELETE"))


def test_what_is_remembered_is_bounded() -> None:
    rbac = granting(PODS)
    for number in range(2_100):
        assert rbac.allows(SOMEONE, parse_path(f"/api/v1/namespaces/n{number}/pods"))
    assert len(rbac._known[SOMEONE.name, SOMEONE.groups]) <= 2_000
    for number in range(20_010):
        rbac.allows(UserInfo(f"u{number}"), parse_path("/api/v1/pods"))
    assert len(rbac._known) <= 20_000


@pytest.mark.parametrize(
    ("owned", "wanted", "missing"),
    [
        ([PODS], [PODS], ""),
        ([PODS], [Rule(("get",), ("",), ("pods",), names=("p",))], ""),
        (
            [PODS],
            [Rule(("get", "delete"), ("",), ("pods",))],
            '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}',
        ),
        ([], [PODS], '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'),
        ([Rule(("*",), ("*",), ("*",))], [PODS, STATUS, SCALE, NAMED], ""),
        (
            [NAMED],
            [Rule(("get",), ("",), ("configmaps",))],
            '{APIGroups:[""], Resources:["configmaps"], Verbs:["get"]}',
        ),
        (
            [NAMED],
            [Rule(("get",), ("",), ("configmaps",), names=("a", "c"))],
            '{APIGroups:[""], Resources:["configmaps"], ResourceNames:["c"], Verbs:["get"]}',
        ),
        ([URLS], [Rule(("get",), urls=("/logs/a", "/logs/*"))], ""),
        ([URLS], [Rule(("get",), urls=("/logs",))], '{NonResourceURLs:["/logs"], Verbs:["get"]}'),
        ([Rule(("get",), ("",), ("*",))], [Rule(("get",), ("",), ("pods/log",))], ""),
    ],
)
def test_what_rules_do_not_cover(owned: list[Rule], wanted: list[Rule], missing: str) -> None:
    assert "\n".join(str(rule) for rule in uncovered(owned, wanted)) == missing


class Cached:
    """A watch cache of one kind whose events are told by hand."""

    def __init__(self, kind: str) -> None:
        self.resource = next(row for row in RESOURCES if (row.group, row.resource) == (GROUP, kind))
        self.callback: Any = None
        self.on_synced: Any = None
        self.on_ended: Any = None

    def subscribe(self, callback: Any, on_synced: Any = None, on_ended: Any = None) -> Any:
        self.callback, self.on_synced, self.on_ended = callback, on_synced, on_ended
        return self

    def unsubscribe(self, informer: Any) -> None: ...
    def told(self, informer: Any) -> int:
        return 0

    def changed_after(self, revision: int) -> float | None:
        return None

    def tell(self, event: str, body: bytes) -> None:
        meta = json.loads(body)["metadata"]
        key = self.resource.key(meta["namespace"], meta["name"])
        self.callback(event, ObjectReader(self.resource).read(key, body, 1), None)


def test_the_policy_follows_its_four_informers_and_their_lists() -> None:
    rbac = Rbac()
    informer = RbacInformer(VirtualClock(), rbac)
    caches = {f"{kind}.{GROUP}": Cached(kind) for kind in KINDS}
    roles, bindings = caches[f"clusterroles.{GROUP}"], caches[f"clusterrolebindings.{GROUP}"]
    informer.follow(caches)
    assert not informer.synced
    roles.tell("ADDED", role("r", PODS))
    bindings.tell("ADDED", binding("b", "r", "User:u"))
    for cache in caches.values():
        cache.on_synced()
    assert informer.synced
    assert rbac.keys() == ({("", "r")}, {("", "b")})  # of the bootstrap policy nothing was listed
    user, pods = UserInfo("u"), parse_path("/api/v1/pods")
    assert rbac.allows(user, pods)
    roles.tell("MODIFIED", role("r", NAMED))
    assert not rbac.allows(user, pods)
    roles.tell("MODIFIED", role("r", PODS))
    roles.on_ended()  # the store was lost; the new list has another role
    roles.tell("ADDED", role("s", PODS))
    roles.on_synced()
    assert rbac.keys()[0] == {("", "s")}
    assert not rbac.allows(user, pods)
    bindings.tell("DELETED", binding("b", "r", "User:u"))
    roles.tell("DELETED", role("s", PODS))
    assert rbac.keys() == (set(), set())
    informer.stop()
