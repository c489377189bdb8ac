"""Init containers, sidecars, containers that end: what is reported of them, in which order, with which events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.fleet.pods import decode_pod
from harness.fleet.podworker import Stage
from tests.fleet.builders import add_kubelet, with_objects
from tests.fleet.fakeapi import World

UP: dict[str, Any] = {"start_delay_s": (0.2, 0.2), "relist_s": 1.0}


def staged(
    containers: list[dict[str, Any]],
    *,
    init: list[dict[str, Any]] | None = None,
    restart: str = "Always",
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "annotations": annotations or {}},
        "spec": {
            "containers": [{"image": "i", **each} for each in containers],
            "initContainers": [{"image": "i", **each} for each in init or []],
            "restartPolicy": restart,
            "nodeName": "n1",
            "terminationGracePeriodSeconds": 30,
        },
        "status": {"phase": "Pending"},
    }


def run(body: dict[str, Any], until: float, **options: Any) -> tuple[World, Any]:
    world = World()
    kubelet = add_kubelet(world, **{**UP, **options})
    with_objects(world, "t")
    world.run(5.0)
    world.create("pods", "t", body)
    world.run(until)
    return world, kubelet


def reports(world: World) -> list[dict[str, Any]]:
    return [msgspec.json.decode(each.request.body)["status"] for each in world.requests("patch pods/status")]


def states(status: dict[str, Any]) -> list[str]:
    rows = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
    return [next(iter(each["state"])) for each in rows]


def condition(status: dict[str, Any], kind: str) -> tuple[str, str | None]:
    found = next(each for each in status["conditions"] if each["type"] == kind)
    return found["status"], found.get("reason")


def events(world: World) -> list[tuple[str, str]]:
    """Reason and field path of what was recorded about pods, repeats included."""
    rows = []
    for each in world.log:
        if each.info.resource == "events" and each.at > 5.0:
            body = msgspec.json.decode(each.request.body)
            rows.append((body.get("reason", "(again)"), body.get("involvedObject", {}).get("fieldPath", "")))
    return rows


def test_init_containers_run_one_after_the_other_before_the_pods_own() -> None:
    body = staged(
        [{"name": "main"}],
        init=[
            {"name": "one", "command": ["sleep", "2"]},
            {"name": "two", "command": ["sh", "-c", "sleep 3"]},
        ],
    )
    world, _ = run(body, 30.0)
    told = reports(world)
    assert [states(each) for each in told] == [
        ["waiting", "waiting", "waiting"],
        ["running", "waiting", "waiting"],
        ["terminated", "waiting", "waiting"],
        ["terminated", "running", "waiting"],
        ["terminated", "terminated", "waiting"],
        ["terminated", "terminated", "running"],
    ]
    assert [each["phase"] for each in told] == ["Pending"] * 5 + ["Running"]
    assert [condition(each, "Initialized")[0] for each in told] == ["False"] * 4 + ["True"] * 2
    assert condition(told[0], "Initialized") == ("False", "ContainersNotInitialized")
    assert condition(told[-1], "Ready") == ("True", None)
    assert told[0]["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    assert events(world)[:6] == [
        *((reason, "spec.initContainers{one}") for reason in ("Pulled", "Created", "Started")),
        *((reason, "spec.initContainers{two}") for reason in ("Pulled", "Created", "Started")),
    ]


def test_a_sidecar_counts_as_started_once_it_runs_and_stops_last() -> None:
    body = staged(
        [{"name": "main", "command": ["sleep", "4"]}],
        init=[{"name": "side", "restartPolicy": "Always"}],
        restart="Never",
    )
    world, kubelet = run(body, 30.0)
    told = reports(world)
    assert [states(each) for each in told] == [
        ["waiting", "waiting"],
        ["running", "waiting"],
        ["running", "running"],
        ["terminated", "terminated"],
    ]
    assert told[-1]["phase"] == "Succeeded"
    assert kubelet.pods.count(Stage.FINISHED) == 1


@pytest.mark.parametrize(
    ("command", "policy", "phase", "code"),
    [
        (["sleep", "2"], "Never", "Succeeded", 0),
        (["sh", "-c", "sleep 2; exit 3"], "Never", "Failed", 3),
        (["sleep", "2"], "OnFailure", "Succeeded", 0),
        (["true"], "Never", "Succeeded", 0),
        (["5s"], "Never", "Succeeded", 0),
    ],
)
def test_a_pod_whose_containers_end_is_over(command: list[str], policy: str, phase: str, code: int) -> None:
    world, kubelet = run(staged([{"name": "c", "command": command}], restart=policy), 40.0)
    last = reports(world)[-1]
    assert last["phase"] == phase
    terminated = last["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (code, "Error" if code else "Completed")
    assert condition(last, "Ready") == ("False", "PodFailed" if code else "PodCompleted")
    assert kubelet.pods.count(Stage.FINISHED) == 1
    assert world.get("pods", "t", "p") is not None  # nobody has deleted it


@pytest.mark.parametrize(
    ("image", "arguments", "seconds"),
    [
        ("r/perf-tests-util/request-benchmark:v1", ["informer", "--timeout=5m", "--count=1"], 300.0),
        ("r/perf-tests-util/request-benchmark:v1", ["--v=4", "--timeout=90s"], 90.0),
        ("r/perf-tests-util/request-benchmark:v1", ["patch"], -1.0),
        ("r/other:v1", ["--timeout=5m"], -1.0),
        ("r/perf-tests/sleep:v1", ["5s"], 5.0),
    ],
)
def test_a_program_of_the_load_tests_runs_as_long_as_it_is_told(
    image: str, arguments: list[str], seconds: float
) -> None:
    body = staged([{"name": "c", "image": image, "args": arguments}], restart="Never")
    body["metadata"] |= {"namespace": "t", "uid": "u", "resourceVersion": "1"}
    (container,) = decode_pod(msgspec.json.encode(body)).plan.containers
    assert container.run_s == seconds


def test_how_long_it_runs_follows_from_its_command_and_is_seen_at_the_next_relist() -> None:
    world, _ = run(staged([{"name": "c", "command": ["sleep", "7"]}], restart="Never"), 40.0)
    told = [each.at for each in world.requests("patch pods/status")]
    assert 7.0 <= told[2] - told[1] <= 8.01


def test_a_pod_may_say_by_annotation_how_long_it_runs_and_how_it_ends() -> None:
    notes = {"swarmlet.io/run-seconds": "3", "swarmlet.io/exit-code": "1"}
    world, _ = run(staged([{"name": "c"}], restart="Never", annotations=notes), 20.0)
    assert reports(world)[-1]["phase"] == "Failed"


@pytest.mark.parametrize("value", ["soon", "-4", "nan s"])
def test_an_annotation_that_is_no_number_changes_nothing(value: str) -> None:
    notes = {"swarmlet.io/run-seconds": value}
    world, _ = run(staged([{"name": "c", "image": "pause"}], restart="Always", annotations=notes), 8.0)
    assert reports(world)[-1]["phase"] == "Running"


@pytest.mark.parametrize("image", ["registry.k8s.io/pause:3.10"])
def test_a_server_never_ends_whatever_the_policy(image: str) -> None:
    _world, kubelet = run(staged([{"name": "c", "image": image}], restart="Never"), 100.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1


def test_a_container_that_ends_again_and_again_is_started_later_each_time() -> None:
    """At once, then after 10, 20, 40 s from its end; the status says CrashLoopBackOff meanwhile."""
    world, _ = run(staged([{"name": "c", "command": ["sh", "-c", "exit 1"]}]), 100.0)
    told = reports(world)
    waiting = [each["containerStatuses"][0]["state"].get("waiting", {}) for each in told]
    crashes = [each["message"] for each in waiting if each.get("reason") == "CrashLoopBackOff"]
    texts = [message.split(" ")[1] for message in dict.fromkeys(crashes)]
    assert texts[:3] == ["20s", "40s", "1m20s"] or texts[:2] == ["10s", "20s"]
    assert told[-1]["containerStatuses"][0]["restartCount"] >= 3
    assert told[-1]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    recorded = events(world)
    assert ("BackOff", "spec.containers{c}") in recorded
    assert ("(again)", "") in recorded  # Pulled, Created, Started of a restart are counted, not created


def test_a_failed_init_container_fails_a_pod_that_is_never_restarted() -> None:
    body = staged(
        [{"name": "main"}], init=[{"name": "i", "command": ["sh", "-c", "exit 2"]}], restart="Never"
    )
    world, _ = run(body, 20.0)
    last = reports(world)[-1]
    assert last["phase"] == "Failed"
    assert last["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


def test_a_failed_init_container_is_run_again_where_the_policy_says_so() -> None:
    body = staged([{"name": "main"}], init=[{"name": "i", "command": ["sh", "-c", "exit 2"]}])
    world, _ = run(body, 20.0)
    assert reports(world)[-1]["phase"] == "Pending"
    assert reports(world)[-1]["initContainerStatuses"][0]["restartCount"] >= 1


def test_a_pod_deleted_while_it_initialises_is_stopped_and_removed() -> None:
    body = staged([{"name": "main"}], init=[{"name": "i", "command": ["sleep", "60"]}])
    world, kubelet = run(body, 9.0)
    world.delete("pods", "t", "p")
    world.run(15.0)
    assert len(kubelet.pods) == 0
    assert ("Killing", "spec.initContainers{i}") in events(world)
    assert world.get("pods", "t", "p") is None


def test_a_pod_deleted_before_anything_ran_ends_as_failed() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(5.0)
    body = staged([{"name": "c"}])
    body["spec"]["volumes"] = [{"name": "v", "secret": {"secretName": "absent"}}]
    world.create("pods", "t", body)
    world.run(8.0)
    world.delete("pods", "t", "p")
    world.run(15.0)
    last = reports(world)[-1]
    assert last["phase"] == "Failed"
    assert last["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert world.get("pods", "t", "p") is None


def test_a_finished_pod_that_is_deleted_later_is_let_go_by_the_full_pass() -> None:
    world, kubelet = run(staged([{"name": "c", "command": ["sleep", "1"]}], restart="Never"), 30.0)
    world.change("pods", "t", "p", {"metadata": {"deletionTimestamp": "2027-01-15T08:00:30Z"}})
    world.run(45.0)
    assert len(world.requests("delete pods")) == 1
    assert len(kubelet.pods) == 0
