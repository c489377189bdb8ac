"""Flow control by other levels and schemas than those it began with: what changes at once, and what waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.apiserver.auth.authentication import UserInfo, account_user
from harness.apiserver.flowcontrol.bootstrap import FLOW_SCHEMAS, PRIORITY_LEVELS, level_object, schema_object
from harness.apiserver.flowcontrol.classify import classify
from harness.apiserver.flowcontrol.config import (
    BrokenLevel,
    Distinguisher,
    FlowSchema,
    PriorityLevel,
    ResourceRule,
    Response,
    Rule,
    UrlRule,
    read_level,
    read_schema,
)
from harness.wire.paths import parse_path
from tests.apiserver.flowcontrol.requests import GET_SECRET, LIST_PODS, Server, rejection, user

BOB = user("bob")
EVERYTHING = (ResourceRule(("*",), ("*",), ("*",), cluster_scope=True),)
MINE = PriorityLevel("mine", 10, queues=8, hand_size=2, queue_length=5, uid="level-uid")
OF_BOB = FlowSchema(
    "of-bob", "mine", 50, Distinguisher.USER, (Rule(("bob",), resources=EVERYTHING),), "schema-uid"
)


def configure(
    server: Server, *levels: PriorityLevel, schemas: tuple[FlowSchema, ...] = (OF_BOB,)
) -> frozenset[str]:
    dangling = server.flow.configure((*PRIORITY_LEVELS, *levels), (*FLOW_SCHEMAS, *schemas))
    server.flow.validate()
    return dangling


def test_a_new_level_takes_its_share_of_the_server_and_its_requests() -> None:
    server = Server()
    assert server.ticket(BOB).level.name == "global-default"
    assert not configure(server, MINE)
    nominal = {name: level.nominal for name, level in server.flow.levels.items()}
    # By hand: ceil(600 x shares / 255).
    assert nominal == {
        "exempt": 0,
        "catch-all": 12,
        "system": 71,
        "node-high": 95,
        "leader-election": 24,
        "workload-high": 95,
        "workload-low": 236,
        "global-default": 48,
        "mine": 24,
    }
    ticket = server.ticket(BOB)
    assert (ticket.schema.name, ticket.level.name) == ("of-bob", "mine")
    assert ticket.headers == {
        "x-kubernetes-pf-flowschema-uid": "schema-uid",
        "x-kubernetes-pf-prioritylevel-uid": "level-uid",
    }


def test_a_level_keeps_its_requests_when_its_shares_change() -> None:
    server = Server()
    configure(server, MINE)
    ticket = server.ticket(BOB)
    configure(server, PriorityLevel("mine", 100, queues=8, hand_size=2, queue_length=5))
    level = server.flow.levels["mine"]
    assert (level.nominal, level.queues.executing) == (174, 1)  # ceil(600 x 100 / 345)
    ticket.finish()
    assert level.queues.idle


def test_a_level_that_goes_serves_what_is_in_it_first() -> None:
    server = Server()
    configure(server, MINE)
    server.flow.levels["mine"].queues.set_limit(1)
    served, waiting = server.ticket(BOB), server.flow.admit(BOB, GET_SECRET)
    assert configure(server) == {"of-bob"}
    assert server.flow.levels["mine"].quiescing
    assert server.flow.levels["mine"].nominal == 24  # it has its share for as long as it is there
    assert server.ticket(BOB).level.name == "global-default"
    server.clock.advance(0)
    assert "mine" in server.flow.levels
    served.finish()
    ticket = waiting.result()
    server.clock.advance(0)
    assert "mine" in server.flow.levels
    ticket.finish()  # type: ignore[union-attr]
    server.clock.advance(0)
    assert "mine" not in server.flow.levels
    assert server.flow.levels["workload-low"].nominal == 245
    server.flow.validate()


def test_a_level_that_goes_while_it_is_idle_is_gone_at_once() -> None:
    server = Server()
    configure(server, MINE)
    configure(server)
    assert "mine" not in server.flow.levels


def test_a_level_that_is_wanted_again_while_it_empties_stays() -> None:
    server = Server()
    configure(server, MINE)
    ticket = server.ticket(BOB)
    configure(server)
    configure(server, MINE)
    assert not server.flow.levels["mine"].quiescing
    ticket.finish()
    server.clock.advance(0)
    assert server.ticket(BOB).level.name == "mine"


def test_a_client_that_leaves_the_queue_of_a_level_that_goes_lets_it_go() -> None:
    server = Server()
    configure(server, MINE)
    server.flow.levels["mine"].queues.set_limit(0)
    waiting = server.flow.admit(BOB, GET_SECRET)
    configure(server)
    server.flow.levels["mine"].queues.set_limit(0)
    waiting.cancel()
    server.clock.advance(0)
    assert "mine" not in server.flow.levels


def test_more_queues_are_there_at_once() -> None:
    server = Server()
    configure(server, MINE)
    configure(server, PriorityLevel("mine", 10, queues=32, hand_size=2, queue_length=5))
    assert len(server.flow.levels["mine"].queues.queues) == 32
    for _ in range(40):
        server.flow.admit(BOB, GET_SECRET)
    server.flow.validate()


def test_fewer_queues_are_dealt_at_once_and_those_too_many_go_as_they_run_empty() -> None:
    server = Server()
    configure(server, PriorityLevel("mine", 10, queues=4, hand_size=1, queue_length=5))
    queues = server.flow.levels["mine"].queues
    schema = FlowSchema("of-bob", "mine", 50, Distinguisher.NAMESPACE, OF_BOB.rules)
    configure(server, queues.level, schemas=(schema,))
    everywhere = [parse_path(f"/api/v1/namespaces/n{i}/secrets/s") for i in range(20)]
    tickets = [server.ticket(BOB, info) for info in everywhere]
    assert {ticket.queue.index for ticket in tickets if ticket.queue} == {0, 1, 2, 3}
    configure(server, PriorityLevel("mine", 10, queues=1, hand_size=1, queue_length=5), schemas=(schema,))
    assert len(queues.queues) == 4
    assert {server.ticket(BOB, info).queue.index for info in everywhere[:3]} == {0}  # type: ignore[union-attr]
    for ticket in tickets:
        ticket.finish()
        server.flow.validate()
    assert len(queues.queues) == 1


def test_a_level_may_cease_to_queue() -> None:
    server = Server()
    configure(server, MINE)
    server.flow.levels["mine"].queues.set_limit(1)
    served, waiting = server.ticket(BOB), server.flow.admit(BOB, GET_SECRET)
    configure(server, PriorityLevel("mine", 10, response=Response.REJECT))
    server.flow.levels["mine"].queues.set_limit(1)
    assert rejection(server.flow.admit(BOB, GET_SECRET)).reason == "concurrency-limit"
    served.finish()
    assert waiting.done
    server.flow.validate()


def test_without_their_objects_the_mandatory_ones_are_imagined() -> None:
    server = Server()
    assert server.flow.configure((), ()) == frozenset()
    assert [schema.name for schema in server.flow.schemas] == ["exempt", "catch-all"]
    assert {name: level.nominal for name, level in server.flow.levels.items()} == {
        "exempt": 0,
        "catch-all": 600,
    }
    ticket = server.ticket(BOB)
    assert (ticket.level.name, ticket.level.uid, ticket.headers["x-kubernetes-pf-flowschema-uid"]) == (
        "catch-all",
        "",
        "",
    )
    server.flow.validate()


def test_a_schema_of_a_mandatory_level_without_its_object_dangles_all_the_same() -> None:
    """apf_controller.go digests schemas before it imagines levels."""
    server = Server()
    assert server.flow.configure((), FLOW_SCHEMAS) == {schema.name for schema in FLOW_SCHEMAS}


def test_the_least_precedence_counts_and_among_equals_the_first_name() -> None:
    server = Server()
    rule = (Rule(("bob",), resources=EVERYTHING),)
    schemas = (
        FlowSchema("b", "mine", 50, rules=rule),
        FlowSchema("a", "mine", 50, rules=rule),
        FlowSchema("c", "mine", 51, rules=rule),
    )
    configure(server, MINE, schemas=schemas)
    assert server.ticket(BOB).schema.name == "a"


@pytest.mark.parametrize(
    ("rule", "who", "path", "matches"),
    [
        (Rule(("*",), resources=EVERYTHING), "bob", "/api/v1/pods", True),
        (Rule(groups=("*",), resources=EVERYTHING), "bob", "/api/v1/pods", True),
        (Rule(accounts=(("default", "a"),), resources=EVERYTHING), "sa:a", "/api/v1/pods", True),
        (Rule(accounts=(("default", "a"),), resources=EVERYTHING), "sa:ab", "/api/v1/pods", False),
        (Rule(accounts=(("default", "*"),), resources=EVERYTHING), "sa:ab", "/api/v1/pods", True),
        (Rule(accounts=(("defaul", "*"),), resources=EVERYTHING), "sa:ab", "/api/v1/pods", False),
        (
            Rule(("bob",), resources=(ResourceRule(("*",), ("*",), ("*",), ("a",)),)),
            "bob",
            "/api/v1/pods",
            False,
        ),
        (Rule(("bob",), resources=(ResourceRule(("*",), ("*",), ("*",), ("a",)),)), "bob", "a", True),
        (Rule(("bob",), resources=(ResourceRule(("*",), ("*",), ("*",), ("b",)),)), "bob", "a", False),
        (Rule(("bob",), resources=(ResourceRule(("*",), ("*",), ("pods/log",)),)), "bob", "a/log", True),
        (Rule(("bob",), resources=(ResourceRule(("*",), ("*",), ("pods",)),)), "bob", "a/log", False),
        (Rule(("bob",), resources=(ResourceRule(("*",), ("apps",), ("*",)),)), "bob", "a", False),
        (Rule(("bob",), urls=(UrlRule(("get",), ("/healthz",)),)), "bob", "/healthz/etcd", True),
        (Rule(("bob",), urls=(UrlRule(("get",), ("/heal*",)),)), "bob", "/healthz", False),
        (Rule(("bob",), urls=(UrlRule(("get",), ("/api/*",)),)), "bob", "/api/v1", True),
        (Rule(("bob",), urls=(UrlRule(("post",), ("*",)),)), "bob", "/healthz", False),
    ],
)
def test_a_rule_matches_by_subject_and_request(rule: Rule, who: str, path: str, matches: bool) -> None:
    asker = account_user("default", who[3:]) if who.startswith("sa:") else user(who)
    if not path.startswith("/"):
        namespace, _, subresource = path.partition("/")
        path = f"/api/v1/namespaces/{namespace}/pods/p" + (f"/{subresource}" if subresource else "")
    schemas = (FlowSchema("this", "system", 1, rules=(rule,)), FLOW_SCHEMAS[-1])
    assert classify(schemas, asker, parse_path(path)).name == ("this" if matches else "catch-all")


def test_requests_of_other_namespaces_do_not_share_a_remembered_classification() -> None:
    server = Server()
    rules = (Rule(("*",), resources=(ResourceRule(("*",), ("*",), ("*",), ("a",)),)),)
    configure(server, MINE, schemas=(FlowSchema("of-a", "mine", 50, rules=rules),))
    for _ in range(2):
        assert server.ticket(BOB, GET_SECRET).schema.name == "of-a"
        assert (
            server.ticket(BOB, parse_path("/api/v1/namespaces/b/secrets/s")).schema.name == "global-default"
        )
        assert server.ticket(BOB, LIST_PODS).schema.name == "global-default"


def test_whom_nothing_matches_is_caught() -> None:
    assert classify(FLOW_SCHEMAS, UserInfo("nobody"), LIST_PODS).name == "catch-all"


# ---- objects ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", PRIORITY_LEVELS, ids=lambda level: level.name)
def test_a_bootstrap_level_reads_back_from_its_object(level: PriorityLevel) -> None:
    assert read_level(json.dumps(level_object(level)).encode()) == level


@pytest.mark.parametrize("schema", FLOW_SCHEMAS, ids=lambda schema: schema.name)
def test_a_bootstrap_schema_reads_back_from_its_object(schema: FlowSchema) -> None:
    found = read_schema(json.dumps(schema_object(schema)).encode())
    assert found.schema == schema
    assert found.dangling is None


def level_json(spec: dict[str, Any], name: str = "l") -> bytes:
    return json.dumps({"metadata": {"name": name, "uid": "u"}, "spec": spec}).encode()


def limited(**more: Any) -> dict[str, Any]:
    return {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}, **more}}


def test_what_a_limited_level_does_not_say_is_as_the_api_has_it() -> None:
    assert read_level(level_json(limited())) == PriorityLevel("l", 30, 0, Response.REJECT, uid="u")
    queuing = {"type": "Queue", "queuing": {}}
    assert read_level(level_json(limited(limitResponse=queuing))) == PriorityLevel(
        "l", 30, queues=64, hand_size=8, queue_length=50, uid="u"
    )


def test_a_level_may_say_how_much_it_borrows() -> None:
    assert read_level(level_json(limited(borrowingLimitPercent=0))).borrowing_percent == 0
    assert read_level(level_json(limited())).borrowing_percent is None


@pytest.mark.parametrize(
    ("spec", "name", "why"),
    [
        ({"type": "Limited"}, "l", "for Limited"),
        ({"type": "Exempt", "limited": {}}, "exempt", "for Limited"),
        ({"type": "Exempt"}, "exempt", "for Exempt"),
        ({"type": "Exempt", "exempt": {}}, "other", "name and type"),
        (limited(), "exempt", "name and type"),
        (limited(limitResponse={"type": "Queue"}), "l", "limit response"),
        (limited(limitResponse={"type": "Reject", "queuing": {}}), "l", "limit response"),
        (
            limited(limitResponse={"type": "Queue", "queuing": {"queues": 4, "handSize": 5}}),
            "l",
            "cannot be dealt",
        ),
        (
            limited(limitResponse={"type": "Queue", "queuing": {"queues": 4, "handSize": 0}}),
            "l",
            "cannot be dealt",
        ),
        # log2(1024) x 7 = 70 bits
        (
            limited(limitResponse={"type": "Queue", "queuing": {"queues": 1024, "handSize": 7}}),
            "l",
            "60 bits",
        ),
        ({"type": "Limited", "limited": []}, "l", "Expected"),
    ],
)
def test_a_broken_level_is_none(spec: dict[str, Any], name: str, why: str) -> None:
    with pytest.raises(BrokenLevel, match=why):
        read_level(level_json(spec, name))


def test_a_hand_may_take_sixty_bits() -> None:
    queuing = {"type": "Queue", "queuing": {"queues": 1024, "handSize": 6}}
    assert read_level(level_json(limited(limitResponse=queuing))).hand_size == 6
