"""Priority classes, and the priorities that pods get from them."""

from typing import Any

from fakemember import Server

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PODS = "/api/v1/namespaces/ns/pods"


def create_class(server: Server, name: str, value: int, **fields: Any) -> Any:
    answer = server.ask("POST", CLASSES, {"metadata": {"name": name}, "value": value, **fields})
    server.settle()
    return answer


def create_pod(server: Server, name: str = "p", **spec: Any) -> Any:
    containers = [{"name": "c", "image": "i"}]
    return server.ask("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": containers, **spec}})


def priority_of(answer: Any) -> tuple[Any, ...]:
    spec = answer.json["spec"]
    return spec.get("priorityClassName"), spec["priority"], spec["preemptionPolicy"]


def test_the_system_s_classes_are_there_from_the_start(server: Server) -> None:
    items = {item["metadata"]["name"]: item for item in server.ask("GET", CLASSES).json["items"]}
    assert {name: item["value"] for name, item in items.items()} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }
    critical = items["system-node-critical"]
    assert critical["description"] == (
        "Used for system critical pods that must not be moved from their current node."
    )
    assert (critical["preemptionPolicy"], critical["metadata"]["generation"]) == ("PreemptLowerPriority", 1)
    pod = create_pod(server, priorityClassName="system-node-critical")
    assert priority_of(pod) == ("system-node-critical", 2_000_001_000, "PreemptLowerPriority")


def test_without_a_class_the_priority_is_0(server: Server) -> None:
    assert priority_of(create_pod(server)) == (None, 0, "PreemptLowerPriority")


def test_a_class_gives_its_value_and_its_policy(server: Server) -> None:
    assert create_class(server, "low", -5, preemptionPolicy="Never").status == 201
    assert priority_of(create_pod(server, priorityClassName="low")) == ("low", -5, "Never")
    assert priority_of(create_pod(server, "same", priorityClassName="low", priority=-5)) == (
        "low",
        -5,
        "Never",
    )


def test_the_default_class_is_named_in_pods_that_name_none(server: Server) -> None:
    create_class(server, "usual", 100, globalDefault=True)
    assert priority_of(create_pod(server)) == ("usual", 100, "PreemptLowerPriority")
    server.ask("DELETE", f"{CLASSES}/usual")
    server.settle()
    assert priority_of(create_pod(server, "later")) == (None, 0, "PreemptLowerPriority")


def test_only_one_class_is_the_default(server: Server) -> None:
    create_class(server, "first", 100, globalDefault=True)
    refused = create_class(server, "second", 50, globalDefault=True)
    assert refused.status == 403
    assert refused.json["message"] == (
        'priorityclasses.scheduling.k8s.io "second" is forbidden: PriorityClass first is already marked as default. '
        "Only one default can exist"
    )
    create_class(server, "third", 50)
    merge = {"content-type": "application/merge-patch+json"}
    assert server.ask("PATCH", f"{CLASSES}/third", {"globalDefault": True}, headers=merge).status == 403
    assert server.ask("PATCH", f"{CLASSES}/first", {"description": "d"}, headers=merge).status == 200
    fixed = server.ask("PATCH", f"{CLASSES}/first", {"value": 3}, headers=merge)
    assert fixed.json["message"].endswith("value: Forbidden: may not be changed in an update.")


def test_what_a_pod_says_of_its_priority_must_agree(server: Server) -> None:
    create_class(server, "low", 5, preemptionPolicy="Never")
    assert create_pod(server, priorityClassName="none").json["message"] == (
        'pods "p" is forbidden: no PriorityClass with name none was found'
    )
    assert create_pod(server, priorityClassName="low", priority=6).json["message"] == (
        'pods "p" is forbidden: the integer value of priority (6) must not be provided in pod spec; priority admission '
        "controller computed 5 from the given PriorityClass name"
    )
    policy = "PreemptLowerPriority"
    assert create_pod(server, priorityClassName="low", preemptionPolicy=policy).json["message"] == (
        'pods "p" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in '
        "pod spec; priority admission controller computed Never from the given PriorityClass name"
    )


def test_the_system_s_prefix_is_reserved(server: Server) -> None:
    refused = create_class(server, "system-mine", 5)
    assert refused.status == 422
    assert refused.json["message"] == (
        'PriorityClass.scheduling.k8s.io "system-mine" is invalid: metadata.name: Forbidden: priority class names with '
        "'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class"
    )
