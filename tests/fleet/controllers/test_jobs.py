"""Jobs: so many pods to their end, counted once each; and their end."""

from __future__ import annotations

from typing import Any

import pytest

from harness.fleet.controllers.jobcounts import _parse, _ranges
from tests.fleet.controllers.cluster import Cluster, workload
from tests.fleet.controllers.serverworld import Object

PODS = "/api/v1/namespaces/m/pods"
JOB = "/apis/batch/v1/namespaces/m/jobs/j"
MERGE: dict[str, Any] = {"content_type": "application/merge-patch+json"}
TRACKING = "batch.kubernetes.io/job-tracking"


def cluster_with_job(*names: str, **spec: Any) -> Cluster:
    cluster = Cluster(0, names=("job-controller", *names), scheduler=False)
    cluster.run(1.0)
    cluster.namespace()
    cluster.apply(workload("Job", "j", "batch/v1", **spec))
    cluster.run(cluster.now + 1.5)
    return cluster


def pods(cluster: Cluster) -> list[Object]:
    return sorted(cluster.items(PODS), key=lambda each: str(each["metadata"]["name"]))


def end(cluster: Cluster, pod: Object, phase: str = "Succeeded") -> None:
    path = f"{PODS}/{pod['metadata']['name']}/status"
    cluster.admin("PATCH", path, {"status": {"phase": phase}}, **MERGE)


def status(cluster: Cluster) -> Object:
    found: Object = cluster.admin("GET", JOB)["status"]
    return found


def running(cluster: Cluster) -> list[Object]:
    return [each for each in pods(cluster) if each["status"]["phase"] == "Pending"]


def conditions(cluster: Cluster) -> list[str]:
    return [each["type"] for each in status(cluster).get("conditions", ())]


def test_pods_are_made_up_to_the_parallelism_until_enough_have_succeeded() -> None:
    cluster = cluster_with_job(completions=3, parallelism=2)
    assert len(running(cluster)) == 2
    assert all(TRACKING in each["metadata"]["finalizers"] for each in pods(cluster))
    assert status(cluster)["active"] == 2
    for _ in range(3):
        end(cluster, running(cluster)[0])
        cluster.run(cluster.now + 3.0)
    assert status(cluster)["succeeded"] == 3
    assert conditions(cluster) == ["SuccessCriteriaMet", "Complete"]
    assert "completionTime" in status(cluster)
    assert [each["metadata"].get("finalizers") for each in pods(cluster)] == [None] * 3
    assert not status(cluster).get("active")


def test_an_end_is_noted_before_the_finalizer_goes_and_counted_after() -> None:
    cluster = cluster_with_job(completions=1)
    since = cluster.now
    end(cluster, pods(cluster)[0])
    cluster.run(cluster.now + 3.0)
    assert cluster.kinds("job-controller", since) == [
        "update jobs/status",
        "patch pods",
        "update jobs/status",
    ]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"backoffLimit": 0}, "BackoffLimitExceeded"),
        ({"activeDeadlineSeconds": 5}, "DeadlineExceeded"),
    ],
)
def test_a_job_that_fails_takes_its_pods_with_it(spec: Object, reason: str) -> None:
    cluster = cluster_with_job(completions=3, parallelism=3, **spec)
    if "backoffLimit" in spec:
        end(cluster, pods(cluster)[0], "Failed")
    cluster.run(cluster.now + 12.0)
    assert [each["reason"] for each in status(cluster)["conditions"]] == [reason] * 2
    assert conditions(cluster) == ["FailureTarget", "Failed"]
    assert [each for each in running(cluster) if "deletionTimestamp" not in each["metadata"]] == []


def test_a_failed_pod_is_replaced_ten_seconds_later() -> None:
    cluster = cluster_with_job(completions=1)
    end(cluster, pods(cluster)[0], "Failed")
    cluster.run(cluster.now + 8.0)
    assert running(cluster) == []
    cluster.run(cluster.now + 8.0)
    assert len(running(cluster)) == 1
    assert status(cluster)["failed"] == 1


def test_indexes_are_given_out_and_given_again_until_each_has_succeeded() -> None:
    cluster = cluster_with_job(completions=3, parallelism=3, completionMode="Indexed")
    index = "batch.kubernetes.io/job-completion-index"
    assert [each["metadata"]["annotations"][index] for each in pods(cluster)] == ["0", "1", "2"]
    assert [each["spec"]["hostname"] for each in pods(cluster)] == ["j-0", "j-1", "j-2"]
    assert pods(cluster)[1]["metadata"]["name"].startswith("j-1-")
    end(cluster, pods(cluster)[1], "Failed")
    for each in (0, 2):
        end(cluster, pods(cluster)[each])
    cluster.run(cluster.now + 16.0)
    assert status(cluster)["completedIndexes"] == "0,2"
    assert [each["metadata"]["annotations"][index] for each in running(cluster)] == ["1"]
    end(cluster, running(cluster)[0])
    cluster.run(cluster.now + 4.0)
    assert status(cluster)["completedIndexes"] == "0-2"
    assert conditions(cluster)[-1] == "Complete"


def test_a_suspended_job_has_no_pods() -> None:
    cluster = cluster_with_job(completions=2, parallelism=2, suspend=True)
    assert pods(cluster) == []
    cluster.admin("PATCH", JOB, {"spec": {"suspend": False}}, **MERGE)
    cluster.run(cluster.now + 2.0)
    assert len(pods(cluster)) == 2


def test_pods_of_a_job_that_is_gone_lose_their_finalizer_and_go() -> None:
    cluster = cluster_with_job("generic-garbage-collector", completions=2, parallelism=2)
    cluster.admin("DELETE", JOB, {"propagationPolicy": "Background"})
    cluster.run(cluster.now + 4.0)
    assert pods(cluster) == []


def test_a_finished_job_goes_after_its_time() -> None:
    cluster = cluster_with_job(
        "generic-garbage-collector",
        "ttl-after-finished-controller",
        completions=1,
        ttlSecondsAfterFinished=20,
    )
    end(cluster, pods(cluster)[0])
    cluster.run(cluster.now + 15.0)
    assert conditions(cluster)[-1] == "Complete"
    cluster.run(cluster.now + 15.0)
    cluster.admin("GET", JOB, expect=404)
    assert pods(cluster) == []
    assert cluster.kinds("ttl-after-finished-controller") == ["get jobs", "delete jobs"]


@pytest.mark.parametrize("text", ["", "0", "0,1", "1,3-5", "0-2,4,7,8"])
def test_ranges_of_indexes_are_read_and_written(text: str) -> None:
    assert _ranges(sorted(_parse(text))) == text
