"""Evictions ask the disruption budget that is about the pod."""

from typing import Any

import pytest
from fakemember import Server

PODS = "/api/v1/namespaces/ns/pods"
BUDGETS = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"
MERGE = {"content-type": "application/merge-patch+json"}


def run_pod(server: Server, name: str = "p", ready: bool = True) -> None:
    body = {
        "metadata": {"name": name, "labels": {"a": "b"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    }
    assert server.ask("POST", PODS, body).status == 201
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    server.ask("PATCH", f"{PODS}/{name}/status", {"status": status}, headers=MERGE)
    server.settle()


def budget(server: Server, name: str = "b", allowed: int = 1, observed: int = 1, **spec: Any) -> None:
    wanted = {"minAvailable": 2, "selector": {"matchLabels": {"a": "b"}}, **spec}
    assert server.ask("POST", BUDGETS, {"metadata": {"name": name}, "spec": wanted}).status == 201
    status = {
        "observedGeneration": observed,
        "disruptionsAllowed": allowed,
        "currentHealthy": 2,
        "desiredHealthy": 2 if allowed else 3,
    }
    server.ask("PATCH", f"{BUDGETS}/{name}/status", {"status": status}, headers=MERGE)
    server.settle()


def evict(server: Server, name: str = "p", **options: Any) -> Any:
    query = "?dryRun=All" if options.get("dry_run") else ""
    return server.ask("POST", f"{PODS}/{name}/eviction{query}", {"metadata": {"name": name}})


def deleted(server: Server, name: str = "p") -> bool:
    return "deletionTimestamp" in server.ask("GET", f"{PODS}/{name}").json["metadata"]


def test_an_eviction_uses_up_a_disruption(server: Server) -> None:
    run_pod(server)
    run_pod(server, "q")
    budget(server)
    assert evict(server).status == 201
    assert deleted(server)
    status = server.ask("GET", f"{BUDGETS}/b").json["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    refused = evict(server, "q")
    assert (refused.status, refused.json["reason"]) == (429, "TooManyRequests")
    assert refused.json["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.json["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget b needs 2 healthy pods and has 2 currently",
        }
    ]
    assert not deleted(server, "q")


def test_a_budget_that_the_controller_has_not_seen_is_waited_for(server: Server) -> None:
    run_pod(server)
    budget(server, observed=0)
    refused = evict(server)
    assert (refused.status, refused.answer_headers["retry-after"]) == (429, "10")
    cause = refused.json["details"]["causes"][0]
    assert cause["message"] == "The disruption budget b is still being processed by the server."


def test_two_budgets_are_one_too_many(server: Server) -> None:
    run_pod(server)
    budget(server)
    budget(server, "c")
    refused = evict(server)
    assert (refused.status, refused.json["message"]) == (
        500,
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    )


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_pods_that_do_not_run_are_not_guarded(server: Server, phase: str) -> None:
    run_pod(server)
    budget(server, allowed=0)
    server.ask("PATCH", f"{PODS}/p/status", {"status": {"phase": phase}}, headers=MERGE)
    server.settle()
    assert evict(server).status == 201
    assert server.ask("GET", f"{BUDGETS}/b").json["status"].get("disruptedPods") is None


def test_a_pod_that_is_not_ready_goes_where_its_budget_is_met_or_does_not_mind(server: Server) -> None:
    run_pod(server, ready=False)
    budget(server, allowed=0)
    assert evict(server).status == 429, "the budget is not met"
    server.ask("DELETE", f"{BUDGETS}/b")
    budget(server, "c", allowed=0, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert evict(server).status == 201


def test_a_pod_that_is_not_ready_leaves_a_met_budget_alone(server: Server) -> None:
    run_pod(server, ready=False)
    budget(server, allowed=1)
    assert evict(server).status == 201
    assert server.ask("GET", f"{BUDGETS}/b").json["status"]["disruptionsAllowed"] == 1


def test_other_pods_and_dry_runs_change_nothing(server: Server) -> None:
    run_pod(server)
    budget(server, selector={"matchLabels": {"a": "other"}}, allowed=0)
    assert evict(server, dry_run=True).status == 201
    assert not deleted(server)
    server.ask("DELETE", f"{BUDGETS}/b")
    budget(server, "c")
    assert evict(server, dry_run=True).status == 201
    assert server.ask("GET", f"{BUDGETS}/c").json["status"]["disruptionsAllowed"] == 1
    assert not deleted(server)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"disruptionsAllowed": -1}, "pdb disruptions allowed is negative"),
        (
            {"disruptedPods": {f"p{number}": "2026-01-01T00:00:00Z" for number in range(2001)}},
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ),
    ],
)
def test_a_budget_that_makes_no_sense_forbids(server: Server, status: dict[str, Any], why: str) -> None:
    run_pod(server)
    budget(server)
    server.ask("PATCH", f"{BUDGETS}/b/status", {"status": status}, headers=MERGE)
    server.settle()
    refused = evict(server)
    assert refused.status == 403
    assert refused.json["message"].endswith(why)
