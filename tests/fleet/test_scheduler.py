"""The scheduler: who gets the next pod, what it sends, what it does when refused."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import msgspec
import pytest

from harness.client.rest import Rest
from harness.fleet.scheduler import Scheduler, SchedulerOptions, scheduler_limiters
from tests.fleet.builders import pod
from tests.fleet.fakeapi import EPOCH_S, Logged, Refusal, World


def node(name: str, *, ready: bool = True, pods: int = 110, **spec: Any) -> dict[str, Any]:
    labels = spec.pop("labels", {})
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"conditions": conditions, "allocatable": {"pods": str(pods)}}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def add_scheduler(world: World, seed: int = 1, **options: Any) -> Scheduler:
    scheduler = Scheduler(SchedulerOptions(**options), Random(seed), EPOCH_S)
    world.add(scheduler)
    world.checks.append(scheduler.validate)
    return scheduler


def world_of(*nodes: dict[str, Any], **options: Any) -> tuple[World, Scheduler]:
    world = World()
    for each in nodes:
        world.create("nodes", "", each)
    scheduler = add_scheduler(world, **options)
    world.run(1.0)
    return world, scheduler


def places(world: World) -> Counter[str]:
    """How many pods each node has; "" for none."""
    pods = [obj for (resource, _, _), obj in world.objects.items() if resource == "pods"]
    return Counter(obj["spec"].get("nodeName", "") for obj in pods)


def test_pods_spread_evenly() -> None:
    world, scheduler = world_of(*(node(f"n{index}") for index in range(5)))
    for index in range(23):
        world.create("pods", "t", pod(f"p{index}"))
    world.run(3.0)
    assert sorted(places(world).values()) == [4, 4, 5, 5, 5]
    assert scheduler.pending == 0


def test_pods_that_are_already_there_count() -> None:
    world = World()
    for name in ("a", "b"):
        world.create("nodes", "", node(name))
    for index in range(6):
        world.create("pods", "t", pod(f"old{index}", "a"))
    add_scheduler(world)
    for index in range(6):
        world.create("pods", "t", pod(f"new{index}"))
    world.run(3.0)
    assert places(world) == {"a": 6, "b": 6}


def test_ties_are_broken_by_the_seed() -> None:
    def order(seed: int) -> list[str]:
        world, _ = world_of(*(node(f"n{index}") for index in range(8)), seed=seed)
        for index in range(8):
            world.create("pods", "t", pod(f"p{index}"))
        world.run(3.0)
        return [
            msgspec.json.decode(each.request.body)["target"]["name"]
            for each in world.requests("create pods/binding")
        ]

    assert order(3) == order(3)
    assert order(3) != order(4)


@pytest.mark.parametrize(
    "closed",
    [
        node("b", ready=False),
        node("b", unschedulable=True),
        node("b", taints=[{"key": "dedicated", "effect": "NoSchedule"}]),
        node("b", pods=0),
    ],
    ids=["not ready", "cordoned", "tainted", "full"],
)
def test_a_node_that_is_closed_gets_nothing(closed: dict[str, Any]) -> None:
    world, _ = world_of(node("a"), closed)
    for index in range(4):
        world.create("pods", "t", pod(f"p{index}"))
    world.run(3.0)
    assert places(world) == {"a": 4}


def test_the_taint_that_only_a_node_lifecycle_controller_would_remove_is_ignored() -> None:
    world, _ = world_of(node("a", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]))
    world.create("pods", "t", pod("p"))
    world.run(3.0)
    assert places(world) == {"a": 1}


def test_a_node_selector_is_respected() -> None:
    world, _ = world_of(node("a"), node("b", labels={"disk": "ssd", "zone": "x"}))
    for index in range(5):
        world.create("pods", "t", pod(f"p{index}", node_selector={"disk": "ssd"}))
    world.run(3.0)
    assert places(world) == {"b": 5}


def test_a_binding_and_its_event_are_what_kube_scheduler_sends() -> None:
    world, _ = world_of(node("a"))
    created = world.create("pods", "t", pod("p"))
    world.run(3.0)
    binding = world.requests("create pods/binding")[0].request
    assert binding.path == "/api/v1/namespaces/t/pods/p/binding"
    body = msgspec.json.decode(binding.body)
    assert body["target"] == {"kind": "Node", "name": "a"}
    assert body["metadata"]["uid"] == created["metadata"]["uid"]
    event = world.requests("create events")[0].request
    assert event.client == "events"
    told = msgspec.json.decode(event.body)
    assert (told["reason"], told["type"], told["action"]) == ("Scheduled", "Normal", "Binding")
    assert told["note"] == "Successfully assigned t/p to a"
    assert told["reportingController"] == "default-scheduler"


def test_informers_leave_out_pods_that_have_ended() -> None:
    world, _ = world_of()
    selector = world.requests("watch pods")[0].info.query["fieldSelector"]
    assert selector == "status.phase!=Succeeded,status.phase!=Failed"
    assert "fieldSelector" not in world.requests("watch nodes")[0].info.query


def test_pods_of_another_scheduler_and_pods_being_deleted_are_left_alone() -> None:
    world, scheduler = world_of(node("a"))
    other = pod("other")
    other["spec"]["schedulerName"] = "mine"
    world.create("pods", "t", other)
    dying = pod("dying")
    dying["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z"
    world.create("pods", "t", dying)
    world.run(3.0)
    assert world.requests("create pods/binding") == []
    assert scheduler.pending == 0


def test_cycles_are_serial_and_take_their_time() -> None:
    world, _ = world_of(node("a"), cycle_s=0.1)
    for index in range(5):
        world.create("pods", "t", pod(f"p{index}"))
    world.run(3.0)
    times = [each.at for each in world.requests("create pods/binding")]
    assert [round(after - before, 6) for before, after in pairwise(times)] == [0.1] * 4


def test_schedule_ms_is_from_hearing_of_the_pod_to_the_binding() -> None:
    world, _ = world_of(node("a"), cycle_s=0.01)
    world.create("pods", "t", pod("p"))
    world.run(3.0)
    samples = [each.value for each in world.samples if each.name == "schedule_ms"]
    assert samples == [pytest.approx(10.0 + world.latency_s * 1000.0)]


def test_a_refused_binding_is_tried_again_after_one_two_four_eight_ten_seconds() -> None:
    world, scheduler = world_of(node("a"), cycle_s=0.0)

    def refuse(logged: Logged) -> Refusal:
        return (500, b"{}") if logged.line == "create pods/binding" and logged.at < 40 else None

    world.refuse = refuse
    world.create("pods", "t", pod("p"))
    world.run(60.0)
    times = [each.at for each in world.requests("create pods/binding")]
    assert [round(after - before) for before, after in pairwise(times)] == [1, 2, 4, 8, 10, 10, 10]
    assert places(world) == {"a": 1}
    assert scheduler.pending == 0


def test_a_binding_that_someone_else_won_is_given_up() -> None:
    world, scheduler = world_of(node("a"), node("b"), cycle_s=0.0)
    world.refuse = lambda logged: (409, b"{}") if logged.line == "create pods/binding" else None
    world.create("pods", "t", pod("p"))
    world.change("pods", "t", "p", {"spec": {"nodeName": "b"}})
    world.run(30.0)
    assert scheduler.pending == 0
    assert len(world.requests("create pods/binding")) <= 1
    assert scheduler.counts() == {"b": 1}


def test_a_pod_that_fits_nowhere_is_told_so_and_bound_once_a_node_comes() -> None:
    world, scheduler = world_of()
    world.create("pods", "t", pod("p"))
    world.run(5.0)
    status = world.get("pods", "t", "p")["status"]  # type: ignore[index]
    assert status["conditions"][0]["reason"] == "Unschedulable"
    events = [msgspec.json.decode(each.request.body)["reason"] for each in world.requests("create events")]
    assert events == ["FailedScheduling"]
    world.create("nodes", "", node("a"))
    world.run(7.0)
    assert places(world) == {"a": 1}
    assert scheduler.pending == 0


def test_room_that_a_deleted_pod_leaves_is_used() -> None:
    world, _ = world_of(node("a", pods=2))
    for index in range(3):
        world.create("pods", "t", pod(f"p{index}"))
    world.run(5.0)
    assert places(world) == {"a": 2, "": 1}
    bound = next(
        key for key, obj in world.objects.items() if key[0] == "pods" and obj["spec"].get("nodeName")
    )
    world.delete("pods", "t", bound[2], grace_s=0)
    world.run(8.0)
    assert places(world) == {"a": 2}


def test_a_pod_deleted_while_its_binding_is_under_way_is_forgotten() -> None:
    world, scheduler = world_of(node("a"), cycle_s=0.0)
    world.create("pods", "t", pod("p"))
    world.run_until(lambda: len(world.requests("create pods/binding")) == 1)
    world.delete("pods", "t", "p", grace_s=0)
    world.run(30.0)
    assert scheduler.pending == 0
    assert scheduler.counts() == {}


def test_the_client_limit_spaces_the_bindings() -> None:
    options = SchedulerOptions(qps=10.0, burst=2, cycle_s=0.0)
    world = World()
    world.create("nodes", "", node("a"))
    world.add(Rest(Scheduler(options, Random(1), EPOCH_S), scheduler_limiters(options)))
    world.run(1.0)
    for index in range(6):
        world.create("pods", "t", pod(f"p{index}"))
    world.run(5.0)
    times = [each.at for each in world.requests("create pods/binding")]
    assert [round(after - before, 3) for before, after in pairwise(times)] == [0.0, 0.1, 0.1, 0.1, 0.1]


def with_spec(name: str, **spec: Any) -> dict[str, Any]:
    made = pod(name)
    made["spec"].update(spec)
    return made


def requests(cpu: str = "0", memory: str = "0") -> list[dict[str, Any]]:
    return [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"nodeAffinity": affinity}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def roomy(name: str, cpu: str = "2", memory: str = "1Gi", **spec: Any) -> dict[str, Any]:
    made = node(name, **spec)
    made["status"]["allocatable"].update(cpu=cpu, memory=memory)
    return made


TAINT = [{"key": "k", "value": "v", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"affinity": required(expression("zone", "In", "x", "q"))}, "b"),
        ({"affinity": required(expression("zone", "NotIn", "x", "y"))}, "c"),
        ({"affinity": required(expression("zone", "DoesNotExist"), expression("zone", "In", "y"))}, "a"),
        ({"affinity": required(expression("size", "Gt", "5"))}, "c"),
        ({"affinity": required(expression("size", "Lt", "5"))}, "b"),
        (
            {
                "affinity": required(
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
                )
            },
            "b",
        ),
        ({"affinity": required(expression("zone", "Exists")), "nodeSelector": {"size": "9"}}, "c"),
        ({"affinity": required({})}, ""),
        (
            {
                "tolerations": [{"key": "k", "operator": "Equal", "value": "v"}],
                "nodeSelector": {"taint": "yes"},
            },
            "t",
        ),
        ({"tolerations": [{"operator": "Exists"}], "nodeSelector": {"taint": "yes"}}, "t"),
        ({"tolerations": [{"key": "k", "value": "w"}], "nodeSelector": {"taint": "yes"}}, ""),
        (
            {
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}],
                "nodeSelector": {"taint": "yes"},
            },
            "",
        ),
    ],
)
def test_affinity_and_taints_decide(spec: dict[str, Any], expected: str) -> None:
    world, _ = world_of(
        node("a", labels={"zone": "y"}),
        node("b", labels={"zone": "x", "size": "3"}),
        node("c", labels={"zone": "z", "size": "9"}),
        node("t", labels={"taint": "yes"}, taints=TAINT),
        cycle_s=0.0,
    )
    world.create("pods", "t", with_spec("p", **spec))
    world.run(3.0)
    assert world.get("pods", "t", "p")["spec"].get("nodeName", "") == expected  # type: ignore[index]


def test_requests_fill_a_node_and_the_refusal_says_what_is_missing() -> None:
    world, scheduler = world_of(roomy("a"), roomy("b", cpu="4", memory="100Mi"), cycle_s=0.0)
    for index in range(5):
        world.create("pods", "t", with_spec(f"p{index}", containers=requests("900m", "200Mi")))
    world.run(3.0)
    assert places(world) == {"a": 2, "": 3}
    condition = next(
        obj["status"]["conditions"][0]
        for (resource, _, _), obj in world.objects.items()
        if resource == "pods" and not obj["spec"].get("nodeName")
    )
    assert condition["message"] == "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory."
    bound = next(key[2] for key, obj in world.objects.items() if obj["spec"].get("nodeName") == "a")
    world.delete("pods", "t", bound, grace_s=0)
    world.run(20.0)
    assert places(world) == {"a": 2, "": 2}
    assert scheduler.pending == 2


def test_init_containers_count_where_they_want_more() -> None:
    world, _ = world_of(roomy("a"), cycle_s=0.0)
    world.create("pods", "t", with_spec("p", containers=requests("100m"), initContainers=requests("3")))
    world.run(2.0)
    assert places(world) == {"": 1}


def test_a_higher_priority_goes_first() -> None:
    world, _ = world_of(node("a"), cycle_s=0.5)
    for name, priority in (("first", 0), ("low", 0), ("high", 1000), ("middle", 10)):
        world.create("pods", "t", with_spec(name, priority=priority))
    world.run(5.0)
    order = [each.info.name for each in world.requests("create pods/binding")]
    assert order == ["high", "middle", "first", "low"]


def test_a_cordoned_node_takes_who_tolerates_it() -> None:
    world, _ = world_of(node("a", unschedulable=True), cycle_s=0.0)
    cordon = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]
    world.create("pods", "t", with_spec("daemon", tolerations=cordon))
    world.create("pods", "t", with_spec("other"))
    world.run(3.0)
    assert places(world) == {"a": 1, "": 1}
    status = world.get("pods", "t", "other")["status"]  # type: ignore[index]
    assert status["conditions"][0]["message"] == "0/1 nodes are available: 1 node(s) were unschedulable."


def test_a_status_that_says_so_already_is_not_written_again() -> None:
    world, _ = world_of(node("a", ready=False), cycle_s=0.0, flush_s=5.0)
    world.create("pods", "t", pod("p"))
    world.run(30.0)
    assert len(world.requests("create events")) > 3
    assert len(world.requests("patch pods/status")) == 1
