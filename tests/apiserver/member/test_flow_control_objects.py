"""Flow control by its API objects: made at the start, repaired each minute, followed by every member."""

from __future__ import annotations

from typing import Any

import pytest
from fakemember import Server

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEVELS, SCHEMAS = f"{GROUP}/prioritylevelconfigurations", f"{GROUP}/flowschemas"
AUTO = "apf.kubernetes.io/autoupdate-spec"
EVERYTHING = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "namespaces": ["*"],
    "clusterScope": True,
}
QUEUING = {"queues": 8, "handSize": 2, "queueLengthLimit": 5}


@pytest.fixture
def server() -> Any:
    started = Server()
    yield started
    started.close()


def level(name: str, shares: int = 10) -> dict[str, Any]:
    response = {"type": "Queue", "queuing": QUEUING}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response}
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def schema(name: str, of: str, user: str = "bob", precedence: int = 50) -> dict[str, Any]:
    subject = {"kind": "User", "user": {"name": user}}
    return {
        "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": of},
            "matchingPrecedence": precedence,
            "rules": [{"subjects": [subject], "resourceRules": [EVERYTHING]}],
        },
    }


def uids(server: Server, path: str, user: str = "", member: int = 0) -> tuple[str, str]:
    """(flow schema, priority level) that a request fell under."""
    headers = server.ask("GET", path, user=user, member=member).answer_headers
    return headers["x-kubernetes-pf-flowschema-uid"], headers["x-kubernetes-pf-prioritylevel-uid"]


def uid(server: Server, path: str) -> str:
    found: str = server.ask("GET", path).json["metadata"]["uid"]
    return found


def dangling(server: Server, name: str) -> tuple[str, str]:
    conditions = server.ask("GET", f"{SCHEMAS}/{name}").json["status"]["conditions"]
    assert [condition["type"] for condition in conditions] == ["Dangling"]
    return conditions[0]["status"], conditions[0]["message"]


def test_the_bootstrap_objects_are_there_from_the_start_and_nothing_dangles(server: Server) -> None:
    schemas = server.ask("GET", SCHEMAS).json["items"]
    assert {item["metadata"]["name"]: item["spec"]["matchingPrecedence"] for item in schemas} == {
        "catch-all": 10000,
        "exempt": 1,
        "global-default": 9900,
        "kube-controller-manager": 800,
        "kube-scheduler": 800,
        "kube-system-service-accounts": 900,
        "probes": 2,
        "service-accounts": 9000,
        "system-leader-election": 100,
        "system-node-high": 400,
        "system-nodes": 500,
    }
    levels = server.ask("GET", LEVELS).json["items"]
    assert {item["metadata"]["name"] for item in levels} == set(server.member.flow.levels)
    assert all(item["metadata"]["annotations"] == {AUTO: "true"} for item in schemas + levels)
    for item in schemas:
        assert dangling(server, item["metadata"]["name"])[0] == "False"


def test_answers_name_the_objects_by_uid(server: Server) -> None:
    assert uids(server, "/api/v1/pods") == (uid(server, f"{SCHEMAS}/exempt"), uid(server, f"{LEVELS}/exempt"))
    expected = uid(server, f"{SCHEMAS}/system-nodes"), uid(server, f"{LEVELS}/system")
    assert uids(server, "/api/v1/namespaces/default/secrets/s", "system:node:n1") == expected


def test_every_member_goes_by_the_same_objects() -> None:
    server = Server(members=3)
    before = {uids(server, "/api/v1/pods", "bob", member) for member in range(3)}
    assert len(before) == 1
    server.ask("POST", LEVELS, level("mine"))
    server.ask("POST", SCHEMAS, schema("of-bob", "mine"), member=1)
    server.settle(0.2)
    expected = uid(server, f"{SCHEMAS}/of-bob"), uid(server, f"{LEVELS}/mine")
    assert {uids(server, "/api/v1/pods", "bob", member) for member in range(3)} == {expected}
    server.close()


def test_a_schema_dangles_until_its_level_is_there_and_again_when_it_goes(server: Server) -> None:
    what = 'This FlowSchema references the PriorityLevelConfiguration object named "mine"'
    server.ask("POST", SCHEMAS, schema("of-bob", "mine"))
    server.settle(0.2)
    assert dangling(server, "of-bob") == ("True", f"{what} but there is no such object")
    assert uids(server, "/api/v1/pods", "bob")[0] == uid(server, f"{SCHEMAS}/global-default")
    server.ask("POST", LEVELS, level("mine"))
    server.settle(0.2)
    assert dangling(server, "of-bob") == ("False", f"{what} and it exists")
    assert uids(server, "/api/v1/pods", "bob")[0] == uid(server, f"{SCHEMAS}/of-bob")
    server.ask("DELETE", f"{LEVELS}/mine")
    server.settle(0.2)
    assert dangling(server, "of-bob")[0] == "True"
    assert uids(server, "/api/v1/pods", "bob")[0] == uid(server, f"{SCHEMAS}/global-default")


def test_a_condition_that_somebody_else_writes_is_set_right(server: Server) -> None:
    wrong = {
        "status": {"conditions": [{"type": "Dangling", "status": "True", "reason": "Mine", "message": "m"}]}
    }
    patch = {"content-type": "application/merge-patch+json"}
    answer = server.ask("PATCH", f"{SCHEMAS}/probes/status", wrong, headers=patch)
    assert answer.status == 200, answer.data
    server.settle(0.2)
    assert dangling(server, "probes")[0] == "False"


def test_members_that_would_fight_over_a_condition_write_six_times_a_minute(server: Server) -> None:
    wrong = {
        "status": {"conditions": [{"type": "Dangling", "status": "True", "reason": "Mine", "message": "m"}]}
    }
    patch = {"content-type": "application/merge-patch+json"}
    corrected = 0
    for _ in range(10):
        server.ask("PATCH", f"{SCHEMAS}/probes/status", wrong, headers=patch)
        server.settle(0.2)
        corrected += dangling(server, "probes")[0] == "False"
    assert corrected == 5  # the first of six was that of the start
    server.settle(75 + 75)  # after 30 to 75 s it is tried again, which may be too early still
    assert dangling(server, "probes")[0] == "False"


def test_shares_change_the_seats(server: Server) -> None:
    seats = server.member.metrics.apiserver_flowcontrol_nominal_limit_seats
    assert seats.labels("workload-low").value == 245
    patch = {"content-type": "application/merge-patch+json"}
    change = {
        "metadata": {"annotations": {AUTO: "false"}},
        "spec": {"limited": {"nominalConcurrencyShares": 345}},
    }
    assert server.ask("PATCH", f"{LEVELS}/workload-low", change, headers=patch).status == 200
    server.settle(0.2)
    assert seats.labels("workload-low").value == 423  # ceil(600 x 345 / 490)
    assert seats.labels("system").value == 37  # ceil(600 x 30 / 490)
    server.settle(61)  # it is nobody's business any more
    assert seats.labels("workload-low").value == 423


def test_a_suggested_object_is_repaired_for_as_long_as_its_annotation_says_so(server: Server) -> None:
    patch = {"content-type": "application/merge-patch+json"}
    change = {"spec": {"limited": {"nominalConcurrencyShares": 345}}}
    server.ask("PATCH", f"{LEVELS}/workload-low", change, headers=patch)
    server.settle(61)
    spec = server.ask("GET", f"{LEVELS}/workload-low").json["spec"]
    assert spec["limited"]["nominalConcurrencyShares"] == 100


def test_mandatory_objects_are_repaired_and_made_anew_whatever_they_say(server: Server) -> None:
    patch = {"content-type": "application/merge-patch+json"}
    wrong = {"metadata": {"annotations": {AUTO: "false"}}, "spec": {"matchingPrecedence": 9000}}
    server.ask("PATCH", f"{SCHEMAS}/catch-all", wrong, headers=patch)
    server.ask("DELETE", f"{SCHEMAS}/exempt")
    server.ask("DELETE", f"{SCHEMAS}/probes")
    server.settle(0.2)
    assert uids(server, "/api/v1/pods")[0] == ""  # as if it were there, but nameless
    server.settle(61)
    found = server.ask("GET", f"{SCHEMAS}/catch-all").json
    assert found["spec"]["matchingPrecedence"] == 10000
    assert found["metadata"]["annotations"] == {AUTO: "true"}
    assert uids(server, "/api/v1/pods")[0] == uid(server, f"{SCHEMAS}/exempt")
    assert server.ask("GET", f"{SCHEMAS}/probes").status == 200


def test_what_exempt_requests_take_and_lend_is_anybody_s_to_say(server: Server) -> None:
    patch = {"content-type": "application/merge-patch+json"}
    change = {"spec": {"exempt": {"nominalConcurrencyShares": 5, "lendablePercent": 20}}}
    assert server.ask("PATCH", f"{LEVELS}/exempt", change, headers=patch).status == 200
    server.settle(61)
    assert server.ask("GET", f"{LEVELS}/exempt").json["spec"]["exempt"]["nominalConcurrencyShares"] == 5
    assert server.member.metrics.apiserver_flowcontrol_nominal_limit_seats.labels("exempt").value == 12


def test_objects_of_an_older_configuration_go(server: Server) -> None:
    old = {**level("old"), "metadata": {"name": "old", "annotations": {AUTO: "true"}}}
    mine = {**level("mine"), "metadata": {"name": "mine", "annotations": {AUTO: "false"}}}
    server.ask("POST", LEVELS, old)
    server.ask("POST", LEVELS, mine)
    server.settle(61)
    assert server.ask("GET", f"{LEVELS}/old").status == 404
    assert server.ask("GET", f"{LEVELS}/mine").status == 200


def test_the_debug_pages_are_text_for_admins(server: Server) -> None:
    path = "/debug/api_priority_and_fairness/dump_priority_levels"
    answer = server.ask("GET", path)
    assert (answer.status, answer.answer_headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert answer.data.startswith(b"PriorityLevelName, ActiveQueues, IsIdle, ")
    assert server.ask("GET", path, user="bob").status == 403
    assert server.ask("GET", "/debug/api_priority_and_fairness/else").status == 404


def test_without_priority_and_fairness_limits_are_plain_and_answers_name_no_level() -> None:
    server = Server(server_concurrency=3, priority_and_fairness=False, cores=0.01)
    waiting = [server.send("GET", "/api/v1/pods", user="bob") for _ in range(3)]
    refused = waiting[2]
    assert (refused.status, refused.data) == (429, b"Too many requests, please try again later.\n")
    assert refused.answer_headers["retry-after"] == "1"
    assert "x-kubernetes-pf-flowschema-uid" not in refused.answer_headers
    server.settle(5)
    assert [exchange.status for exchange in waiting] == [403, 403, 429]
    assert server.ask("GET", "/debug/api_priority_and_fairness/dump_queues").status == 404
    assert len(server.ask("GET", LEVELS).json["items"]) == 8
    server.close()
