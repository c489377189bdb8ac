"""Before load is put on a cluster: whose nodes are there, and what we may."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from harness.clusterloader import load_config
from harness.load.cluster.errands import Errands
from harness.load.cluster.permissions import Rule, manifest, needed, policy_rules, questions
from harness.load.cluster.preflight import check_nodes, check_rights
from harness.load.controllerarguments import NAMES
from harness.load.labels import RUN_LABEL
from harness.load.plan import Target, TargetMember
from harness.wire.errors import ConfigError
from harness.wire.request import Request, Response
from tests.load.cluster.conftest import Api
from tests.load.plays import TINY

NODES = "/api/v1/nodes"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def nodes(api: Api, others: list[str], ours: list[str] | None = None) -> None:
    def answer(method: str, path: str, query: str, body: Any) -> tuple[int, Any] | None:
        if path != NODES:
            return None
        names = others if "%21" in query else ours or []
        labels = {} if "%21" in query else {RUN_LABEL: "r1"}
        return 200, {"items": [{"metadata": {"name": name, "labels": labels}} for name in names]}

    api.answer = answer


def test_an_empty_cluster_is_free(api: Api, errands: Errands) -> None:
    nodes(api, [])
    check_nodes(errands, "")


def test_nodes_of_others_need_the_contexts_name(api: Api, errands: Errands) -> None:
    nodes(api, ["worker-1", "worker-2"])
    text = r"prod: has nodes that are no run's \(2, 'worker-1' is one\); if it may be put .*: --i-know prod"
    with pytest.raises(ConfigError, match=text):
        check_nodes(errands, "")
    check_nodes(errands, "prod")


def test_another_contexts_name_is_refused_even_where_none_is_needed(api: Api, errands: Errands) -> None:
    nodes(api, [])
    with pytest.raises(ConfigError, match="--i-know staging: the target's context is prod"):
        check_nodes(errands, "staging")


def test_nodes_that_a_run_left_are_to_be_removed_first(api: Api, errands: Errands) -> None:
    nodes(api, [], ["swarmlet-0-0"])
    with pytest.raises(ConfigError, match=r"prod: nodes of an earlier run are left \(1\); .* --run r1"):
        check_nodes(errands, "prod")


def test_nodes_that_may_not_be_listed_are_said(errands: Errands) -> None:
    with pytest.raises(ConfigError, match="prod: its nodes cannot be listed: HTTP 404: not found"):
        check_nodes(errands, "")


# ---- rights ----------------------------------------------------------------------------------------------------------
def granting(api: Api, *denied: str) -> None:
    """Everything but what is denied, as ``verb resource/subresource name``."""

    def answer(method: str, path: str, query: str, body: Any) -> tuple[int, Any] | None:
        if path != REVIEWS:
            return None
        spec = body["spec"]
        if "nonResourceAttributes" in spec:
            what = f"{spec['nonResourceAttributes']['verb']} {spec['nonResourceAttributes']['path']}"
        else:
            given = spec["resourceAttributes"]
            parts = [given["resource"], given.get("subresource")]
            what = f"{given['verb']} {'/'.join(filter(None, parts))} {given.get('name', '')}".strip()
        return 201, {"status": {"allowed": what not in denied}}

    api.answer = answer


def test_every_right_is_asked_for_once(api: Api, errands: Errands) -> None:
    granting(api)
    rules = needed("impersonate", scheduler=True, controllers=NAMES)
    check_rights(errands, rules)
    assert len(api.asked) == len(questions(rules)) == len({str(asked) for asked in api.asked})
    specs = [body["spec"] for _, body in api.of("POST")]
    groups = {"resource": "groups", "verb": "impersonate", "name": "system:nodes"}
    assert {"resourceAttributes": groups} in specs
    assert {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}} in specs


def test_the_missing_one_is_named_with_the_rule_to_add(api: Api, errands: Errands) -> None:
    granting(api, "impersonate groups system:nodes", "get /metrics")
    with pytest.raises(ConfigError) as caught:
        check_rights(errands, needed("impersonate"))
    text = str(caught.value)
    assert text.startswith(
        "prod: our credentials may not get /metrics, needed for any run (1 more are missing)"
    )
    assert "\n" not in text
    rules = yaml.safe_load(text[text.index("rules: ") + 7 : text.rindex(" (or all of")])
    assert {
        "apiGroups": [""],
        "resources": ["groups"],
        "resourceNames": ["system:nodes"],
        "verbs": ["impersonate"],
    } in rules


def test_a_right_that_another_makes_up_for_is_not_missing(api: Api, errands: Errands) -> None:
    granting(api, "create certificatesigningrequests/nodeclient")
    check_rights(errands, needed("certificate"))
    granting(
        api, "create certificatesigningrequests/nodeclient", "update certificatesigningrequests/approval"
    )
    with pytest.raises(ConfigError, match="may not create certificatesigningrequests/nodeclient"):
        check_rights(errands, needed("certificate"))


class Reviews:
    """In place of `Errands`, without sockets: grants everything but what is denied, as JSON of the review's spec."""

    def __init__(self) -> None:
        self.target = Target((TargetMember("apiserver", "127.0.0.1", 1),), context="prod")
        self.denied = ""
        self.asked: set[str] = set()

    def ask_all(self, requests: Sequence[Request]) -> list[Response]:
        specs = [json.dumps(json.loads(request.body)["spec"]) for request in requests]
        self.asked |= set(specs)
        verdicts = [{"status": {"allowed": spec != self.denied}} for spec in specs]
        return [Response(201, {}, json.dumps(verdict).encode()) for verdict in verdicts]


@pytest.mark.parametrize("identity", ["impersonate", "token", "certificate"])
def test_each_right_that_is_missing_alone_is_named(identity: str) -> None:
    """Every verb of every rule, for a scenario on a cluster without controllers; none is needed that a run can do
    without, but for those that others make up for."""
    reviews = Reviews()
    errands: Any = reviews
    rules = needed(identity, scheduler=True, controllers=NAMES, config=load_config(TINY, 5, (), {}))
    check_rights(errands, rules)
    specs = sorted(reviews.asked)
    assert len(specs) == len(questions(rules)) > 15
    for spec in specs:
        reviews.denied = spec
        attributes = json.loads(spec).get("resourceAttributes", {})
        if attributes.get("subresource") == "nodeclient":
            check_rights(errands, rules)  # approving does as well
            continue
        with pytest.raises(ConfigError) as caught:
            check_rights(errands, rules)
        text = str(caught.value)
        asked = json.loads(spec).get("nonResourceAttributes") or attributes
        named = [asked["verb"], *filter(None, (asked.get(key) for key in ("path", "resource", "name")))]
        assert all(word in text.partition(", needed for ")[0] for word in named), text
        assert "more are missing" not in text


def test_a_server_that_answers_no_reviews_is_said(errands: Errands) -> None:
    with pytest.raises(ConfigError, match="prod: our rights cannot be asked for: HTTP 404"):
        check_rights(errands, needed("token"))


# ---- the tables ------------------------------------------------------------------------------------------------------
def purposes(rules: list[Rule]) -> set[str]:
    return {rule.purpose for rule in rules}


def test_each_identity_needs_its_own_rights() -> None:
    assert purposes(needed("token")) == {"any run"}
    assert purposes(needed("impersonate")) == {"any run", "--identity impersonate"}
    assert purposes(needed("certificate")) == {"any run", "--identity certificate"}
    assert purposes(needed("certificate", own_authority=True)) == {"any run"}


def test_resources_with_the_same_verbs_share_a_rule() -> None:
    rules = [
        Rule("x", ("get",), "", "pods"),
        Rule("x", ("list",), "", "pods"),
        Rule("x", ("get", "list"), "", "nodes"),
        Rule("x", ("get",), paths=("/metrics",)),
    ]
    assert policy_rules(rules) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("jane", {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}),
        ("lt:runner", {"kind": "ServiceAccount", "namespace": "lt", "name": "runner"}),
        ("system:kube:x", {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube:x"}),
    ],
)
def test_the_role_is_bound_to_whoever_runs(subject: str, expected: dict[str, str]) -> None:
    role, binding = yaml.safe_load_all(manifest(needed("token"), subject))
    assert binding["subjects"] == [expected]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
