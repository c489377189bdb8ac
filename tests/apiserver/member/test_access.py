"""Roles and bindings as objects that count at once; questions about access and identity."""

from __future__ import annotations

from typing import Any

import pytest
from fakemember import ADMIN, FakeExchange, Server

from harness.apiserver.member import Member
from harness.apiserver.options import MemberOptions
from harness.apiserver.store.client import LocalStore

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
IDENTITY = "/apis/authentication.k8s.io/v1"
PODS = "/api/v1/namespaces/ns/pods"
READ_PODS = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}
Object = dict[str, Any]


def role(server: Server, name: str = "r", *rules: Object, user: str = "", **more: Any) -> FakeExchange:
    body = {"metadata": {"name": name}, "rules": list(rules or (READ_PODS,)), **more}
    return server.ask("POST", f"{RBAC}/namespaces/ns/roles", body, user)


def bind(
    server: Server, name: str = "r", kind: str = "Role", subject: str = "jane", user: str = ""
) -> FakeExchange:
    body = {
        "metadata": {"name": f"{name}-{subject}"},
        "subjects": [{"kind": "User", "name": subject}],
        "roleRef": {"kind": kind, "name": name},
    }
    return server.ask("POST", f"{RBAC}/namespaces/ns/rolebindings", body, user)


# ---- roles ---------------------------------------------------------------------------------------------------------
def test_the_bootstrap_policy_is_there_as_objects(server: Server) -> None:
    view = server.ask("GET", f"{RBAC}/clusterroles/view").json
    assert view["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
    assert view["metadata"]["annotations"] == {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    assert view["aggregationRule"]["clusterRoleSelectors"]
    assert view["rules"]
    binding = server.ask("GET", f"{RBAC}/clusterrolebindings/cluster-admin").json
    assert binding["subjects"] == [
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:masters"}
    ]
    names = [item["metadata"]["name"] for item in server.ask("GET", f"{RBAC}/roles").json["items"]]
    assert "extension-apiserver-authentication-reader" in names


def test_members_make_the_policy_once() -> None:
    server = Server(3)
    try:
        roles = [server.ask("GET", f"{RBAC}/clusterroles", member=index).json["items"] for index in range(3)]
        assert len(roles[0]) == 70
        assert [item["metadata"]["uid"] for item in roles[0]] == [
            item["metadata"]["uid"] for item in roles[2]
        ]
        versions = {item["metadata"]["resourceVersion"] for item in roles[1]}
        assert len(versions) == 70
    finally:
        server.close()


def test_a_binding_lets_its_subject_in_and_its_end_locks_them_out(server: Server) -> None:
    assert server.ask("GET", PODS, user="jane").status == 403
    role(server)
    bind(server)
    assert server.ask("GET", PODS, user="jane").status == 200
    assert server.ask("GET", "/api/v1/namespaces/default/pods", user="jane").status == 403
    assert server.ask("DELETE", f"{PODS}/p", user="jane").status == 403
    server.ask("DELETE", f"{RBAC}/namespaces/ns/rolebindings/r-jane")
    server.settle()
    assert server.ask("GET", PODS, user="jane").status == 403


def test_a_role_that_changes_changes_what_its_subjects_may(server: Server) -> None:
    role(server)
    bind(server)
    assert server.ask("GET", PODS, user="jane").status == 200
    server.ask("PUT", f"{RBAC}/namespaces/ns/roles/r", {"metadata": {"name": "r"}, "rules": []})
    server.settle()
    assert server.ask("GET", PODS, user="jane").status == 403


def test_all_members_hear_of_a_binding() -> None:
    server = Server(3)
    try:
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
        server.settle()
        role(server)
        bind(server)
        server.settle()
        statuses = [server.ask("GET", PODS, user="jane", member=index).status for index in range(3)]
        assert statuses == [200, 200, 200]
    finally:
        server.close()


def test_a_bootstrap_binding_can_be_taken_away(server: Server) -> None:
    server.ask("DELETE", f"{RBAC}/clusterrolebindings/system:discovery")
    server.settle()
    assert server.ask("GET", "/api", user="jane").status == 403
    assert server.ask("GET", "/healthz", user="jane").status == 200  # of system:public-info-viewer


def test_a_member_that_starts_later_has_the_policy_as_it_is_then() -> None:
    server = Server(2)
    try:
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
        role(server)
        bind(server)
        server.ask("DELETE", f"{RBAC}/clusterroles/system:kube-dns")
        server.members[1].stop()
        options = MemberOptions(name="member-1", admin_token=ADMIN)
        later = Member(options, server.clock, LocalStore(server.store, "member-1", server.clock))
        server.members[1] = later
        started = later.start()
        server.settle(3)
        started.result()
        assert server.ask("GET", PODS, user="jane", member=1).status == 200
        dns = server.ask("GET", f"{RBAC}/clusterroles/system:kube-dns", member=1)
        assert dns.status == 200  # what a server needs is made again when one starts
    finally:
        server.close()


def test_nobody_grants_more_than_they_have(server: Server) -> None:
    role(server, "manage", {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]})
    bind(server, "manage")
    server.settle()
    # ``*`` includes the verbs escalate and bind; a plain administrator of roles has not got them
    assert role(server, "mine", user="jane").status == 201
    verbs = ["create", "get", "update", "delete"]
    role(server, "plain", {"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]})
    bind(server, "plain", subject="joe")
    server.settle()
    refused = role(server, "more", user="joe")
    assert refused.status == 403
    assert refused.json["message"] == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "joe" (groups=["system:authenticated"]) is '
        'attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], '
        'Verbs:["get" "list"]}'
    )
    assert bind(server, "mine", user="joe", subject="ann").status == 403
    assert bind(server, "none", user="joe", subject="ann").json["message"] == (
        'roles.rbac.authorization.k8s.io "none" not found'
    )


def test_a_role_of_a_wrong_shape_is_a_bad_request(server: Server) -> None:
    answer = server.ask("POST", f"{RBAC}/namespaces/ns/roles", {"metadata": {"name": "r"}, "rules": "all"})
    assert answer.status == 400


# ---- reviews -------------------------------------------------------------------------------------------------------
def asked(verb: str = "list", resource: str = "pods", **more: Any) -> Object:
    return {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": "ns", **more}}


def test_can_i(server: Server) -> None:
    answer = server.ask("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": asked()}, "jane")
    assert answer.status == 201
    assert answer.json == {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {"creationTimestamp": None},
        "spec": asked(),
        "status": {"allowed": False},
    }
    role(server)
    bind(server)
    server.settle()
    for spec, allowed in (
        (asked(), True),
        (asked("get", name="p"), True),
        (asked("delete"), False),
        (asked(namespace=""), False),
        (asked(subresource="log"), False),
        ({"nonResourceAttributes": {"path": "/version", "verb": "get"}}, True),
        ({"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}, False),
    ):
        answer = server.ask("POST", f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec}, "jane")
        assert answer.json["status"]["allowed"] is allowed, spec


def test_may_they(server: Server) -> None:
    role(server)
    bind(server)
    server.settle()
    for spec, allowed in (
        ({"user": "jane", **asked()}, True),
        ({"user": "joe", **asked()}, False),
        ({"user": "joe", "groups": ["system:masters"], **asked("delete")}, True),
    ):
        answer = server.ask("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": spec})
        assert answer.json["status"]["allowed"] is allowed, spec
    local = f"{REVIEWS}/namespaces/ns/localsubjectaccessreviews"
    answer = server.ask("POST", local, {"spec": {"user": "jane", **asked()}})
    assert answer.json["status"]["allowed"] is True
    assert answer.json["metadata"]["namespace"] == "ns"
    assert server.ask("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": asked()}, "jane").status == 403


def test_the_node_authorizer_s_reason_is_in_the_answer(server: Server) -> None:
    spec = {
        "user": "system:node:n1",
        "groups": ["system:nodes"],
        **asked("get", "secrets", name="s"),
    }
    status = server.ask("POST", f"{REVIEWS}/subjectaccessreviews", {"spec": spec}).json["status"]
    reason = "no relationship found between node 'n1' and this object"
    assert status == {"allowed": False, "reason": reason}


BOTH = {**asked(), "nonResourceAttributes": {"path": "/x", "verb": "get"}}
PLAIN = f"{REVIEWS}/subjectaccessreviews"
LOCAL = f"{REVIEWS}/namespaces/ns/localsubjectaccessreviews"
SELF = f"{REVIEWS}/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("path", "body", "field", "text"),
    [
        (SELF, {"spec": {}}, "spec.resourceAttributes", "exactly one of nonResourceAttributes or resource"),
        (SELF, {"spec": BOTH}, "spec.nonResourceAttributes", "cannot be specified in combination with"),
        (SELF, {"metadata": {"name": "x"}, "spec": asked()}, "metadata", "must be empty"),
        (PLAIN, {"spec": asked()}, "spec.user", "at least one of user or group must be specified"),
        (PLAIN, {"metadata": {"name": "x"}, "spec": {"user": "u", **asked()}}, "metadata", "must be empty"),
        (
            LOCAL,
            {"metadata": {"name": "x"}, "spec": {"user": "u", **asked()}},
            "metadata",
            "except for names",
        ),
        (
            LOCAL,
            {"spec": {"user": "u", **asked(namespace="other")}},
            "spec.resourceAttributes.namespace",
            "must match metadata.namespace",
        ),
        (
            LOCAL,
            {"spec": {"user": "u", "nonResourceAttributes": {"path": "/x", "verb": "get"}}},
            "spec.nonResourceAttributes",
            "disallowed on this kind of request",
        ),
    ],
)
def test_faults_of_reviews(server: Server, path: str, body: Object, field: str, text: str) -> None:
    answer = server.ask("POST", path, body)
    assert answer.status == 422
    causes = answer.json["details"]["causes"]
    assert causes[-1]["field"] == field
    assert text in causes[-1]["message"]


def test_a_local_review_is_of_its_path_s_namespace(server: Server) -> None:
    body = {"metadata": {"namespace": "other"}, "spec": {"user": "u", **asked()}}
    assert server.ask("POST", LOCAL, body).status == 400


def test_the_rules_that_one_has_in_a_namespace(server: Server) -> None:
    role(server)
    bind(server)
    server.settle()
    path = f"{REVIEWS}/selfsubjectrulesreviews"
    status = server.ask("POST", path, {"spec": {"namespace": "ns"}}, "jane").json["status"]
    assert READ_PODS in status["resourceRules"]
    assert {
        "verbs": ["get"],
        "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"],
    } in (status["nonResourceRules"])
    assert status["incomplete"] is False
    elsewhere = server.ask("POST", path, {"spec": {"namespace": "default"}}, "jane").json["status"]
    assert READ_PODS not in elsewhere["resourceRules"]
    node = server.ask("POST", path, {"spec": {"namespace": "ns"}}, "system:node:n1").json["status"]
    assert node["evaluationError"] == "node authorizer does not support user rule resolution"
    assert server.ask("POST", path, {"spec": {}}, "jane").status == 400


def test_who_am_i(server: Server) -> None:
    answer = server.ask("POST", f"{IDENTITY}/selfsubjectreviews", {}, "jane")
    assert answer.status == 201
    assert answer.json["status"] == {"userInfo": {"username": "jane", "groups": ["system:authenticated"]}}
    assert server.ask("POST", f"{IDENTITY}/selfsubjectreviews", {}, "anonymous").status == 403


def test_whose_token_is_this(server: Server) -> None:
    path = "/api/v1/namespaces/ns/serviceaccounts/default/token"
    token = server.ask("POST", path, {"spec": {"audiences": ["vault"]}}).json["status"]["token"]
    reviews = f"{IDENTITY}/tokenreviews"
    found = server.ask("POST", reviews, {"spec": {"token": token, "audiences": ["a", "vault"]}}).json[
        "status"
    ]
    assert found["authenticated"] is True
    assert found["audiences"] == ["vault"]
    assert found["user"]["username"] == "system:serviceaccount:ns:default"
    assert "authentication.kubernetes.io/credential-id" in found["user"]["extra"]
    for spec in ({"token": token}, {"token": "nonsense"}, {"token": token, "audiences": ["b"]}):
        status = server.ask("POST", reviews, {"spec": spec}).json["status"]
        assert "authenticated" not in status
        assert status["error"] == "[invalid bearer token, token lookup failed]"
    admin = server.ask("POST", reviews, {"spec": {"token": "secret-token"}}).json["status"]
    assert admin["user"]["username"] == "kubernetes-admin"
    assert server.ask("POST", reviews, {"spec": {}}).status == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{REVIEWS}/selfsubjectaccessreviews", 405),
        ("GET", f"{REVIEWS}/selfsubjectaccessreviews/x", 405),
        ("DELETE", f"{IDENTITY}/tokenreviews", 405),
        ("POST", f"{REVIEWS}/localsubjectaccessreviews", 405),
        ("GET", f"{REVIEWS}/subjectaccessreviews?watch=true", 405),
    ],
)
def test_reviews_are_only_created(server: Server, method: str, path: str, status: int) -> None:
    assert server.ask(method, path).status == status


def test_reviews_are_listed_and_not_stored(server: Server) -> None:
    resources = {item["name"]: item for item in server.ask("GET", REVIEWS).json["resources"]}
    assert resources["selfsubjectaccessreviews"]["verbs"] == ["create"]
    assert "storageVersionHash" not in resources["selfsubjectaccessreviews"]
    assert server.ask("POST", f"{SELF}?dryRun=All", {"spec": asked()}).status == 201


# ---- nobody --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/healthz", 200),
        ("/livez", 200),
        ("/readyz", 200),
        ("/version", 200),
        ("/metrics", 403),
        ("/api", 403),
        ("/apis", 403),
        ("/openapi/v2", 403),
        ("/api/v1/namespaces", 403),
        ("/swarmlet/faults", 403),
    ],
)
def test_what_is_answered_without_credentials(server: Server, path: str, status: int) -> None:
    assert server.ask("GET", path, user="anonymous").status == status
