"""A recording of a real controller manager and scheduler, and the same script here: who sends how much of what.

Three nodes; a Service, a Deployment of 4, a StatefulSet of 2 (Parallel), a DaemonSet and a Job (2 of 2); the Deployment
is scaled to 2; the namespace is deleted. What differs is listed here and explained in docs/controllers.md.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from harness.wire.paths import parse_path
from tests.fleet.controllers.cluster import Cluster, service, workload

TRACE = Path(__file__).parents[2] / "data" / "traces" / "control-plane.jsonl"
Kind = tuple[str, str, str, str]  # who, verb, resource, outcome
NOT_THEIRS = ("admin", "namespace-controller")

# (ours are at least, at most) for what depends on how fast kubelets and watches are; everything else is equal.
BY_TIMING: dict[Kind, tuple[int, int]] = {
    ("deployment-controller", "update", "deployments/status", "ok"): (11, 18),
    ("deployment-controller", "update", "deployments/status", "conflict"): (1, 4),
    ("replicaset-controller", "update", "replicasets/status", "ok"): (10, 16),
    ("daemon-set-controller", "update", "daemonsets/status", "ok"): (6, 12),
    ("statefulset-controller", "update", "statefulsets/status", "ok"): (7, 12),
    ("statefulset-controller", "create", "pods", "refused"): (8, 20),
    ("statefulset-controller", "create", "events", "refused"): (8, 20),
    ("statefulset-controller", "patch", "events", "refused"): (6, 18),
    ("endpoint-controller", "update", "endpoints", "ok"): (5, 10),
    ("endpoint-controller", "update", "endpoints", "conflict"): (0, 3),
    ("endpointslice-controller", "update", "endpointslices", "ok"): (8, 16),
    ("job-controller", "update", "jobs/status", "ok"): (4, 6),
}
# The real namespace controller goes through the resources in the order of a Go map, another one in each run.
BY_ORDER_OF_DELETION: set[tuple[str, str]] = {
    ("deployment-controller", "replicasets"),
    ("daemon-set-controller", "controllerrevisions"),
    ("endpoint-controller", "endpoints"),
    ("job-controller", "pods"),
    ("job-controller", "events"),
    ("generic-garbage-collector", "replicasets"),
    ("generic-garbage-collector", "endpointslices"),
    ("generic-garbage-collector", "controllerrevisions"),
    ("generic-garbage-collector", "jobs"),
    ("generic-garbage-collector", "pods"),
}


def outcome(code: int) -> str:
    return "ok" if code < 300 else "conflict" if code == 409 else "refused"


def row(at: float, who: str, verb: str, uri: str, code: int, name: str) -> tuple[float, Kind, str]:
    what = parse_path(uri, "GET").resource_and_subresource
    return at, (who, verb, what, outcome(code)), name


Rows = list[tuple[float, Kind, str]]


@pytest.fixture(scope="module")
def recorded() -> Rows:
    rows = [msgspec.json.decode(line) for line in TRACE.read_bytes().splitlines()]
    return [row(r["t"], r["who"], r["verb"], r["uri"], r["code"], r["name"] or "") for r in rows]


@pytest.fixture(scope="module")
def replayed() -> Rows:
    cluster = Cluster(3)
    cluster.run(20.0)
    base = cluster.now
    cluster.namespace()
    cluster.run(base + 2.79)
    cluster.apply(
        service("svc", "dep"),
        workload("Deployment", "dep", replicas=4),
        workload("StatefulSet", "sts", replicas=2, serviceName="sts", podManagementPolicy="Parallel"),
        workload("DaemonSet", "ds"),
        workload("Job", "job", "batch/v1", completions=2, parallelism=2),
    )
    cluster.run(base + 27.93)
    cluster.scale("/apis/apps/v1/namespaces/m/deployments/dep/scale", 2)
    cluster.run(base + 42.98)
    cluster.admin("DELETE", "/api/v1/namespaces/m")
    cluster.run(base + 80.0)
    cluster.admin("GET", "/api/v1/namespaces/m", expect=404)
    theirs = [each for each in cluster.log if each.at >= base and "/namespaces/m" in each.uri]
    return [
        row(each.at - base, each.who, each.verb, each.uri, each.code, each.name)
        for each in theirs
        if not each.who.startswith("system:node:") and each.verb not in ("watch",)
    ]


def counts(rows: Rows) -> Counter[Kind]:
    return Counter(kind for _, kind, _ in rows if kind[0] not in NOT_THEIRS)


def test_every_controller_sends_what_the_real_one_sent_and_as_often(recorded: Rows, replayed: Rows) -> None:
    theirs, ours = counts(recorded), counts(replayed)
    unlike = {}
    for kind in sorted({*theirs, *ours}):
        least, most = BY_TIMING.get(kind, (theirs[kind], theirs[kind]))
        after_deletion = kind[3] == "refused" or kind[0] == "generic-garbage-collector"
        if after_deletion and (kind[0], kind[2]) in BY_ORDER_OF_DELETION:
            continue
        if not least <= ours[kind] <= most:
            unlike[kind] = (theirs[kind], ours[kind])
    assert unlike == {}


@pytest.mark.parametrize(
    "who",
    [
        "deployment-controller",
        "replicaset-controller",
        "statefulset-controller",
        "daemon-set-controller",
        "job-controller",
        "endpoint-controller",
        "endpointslice-controller",
        "system:kube-scheduler",
    ],
)
def test_the_first_request_for_each_kind_of_object_comes_in_the_recorded_order(
    recorded: Rows, replayed: Rows, who: str
) -> None:
    def order(rows: Rows) -> list[tuple[str, str]]:
        seen: dict[tuple[str, str], None] = {}
        for at, (sender, verb, what, result), _ in rows:
            if sender == who and at < 20.0 and result == "ok" and what != "events":
                seen.setdefault((verb, what))
        return list(seen)

    assert order(replayed) == order(recorded)


def test_after_the_scaling_each_object_sees_the_recorded_writes_in_order(
    recorded: Rows, replayed: Rows
) -> None:
    """From the scaling to the deletion, repeats of one kind in a row taken together."""

    def order(rows: Rows, who: str) -> list[tuple[str, str]]:
        found = [
            (kind[1], kind[2])
            for at, kind, _ in rows
            if kind[0] == who and 27.93 <= at < 42.9 and kind[2] != "events" and kind[3] == "ok"
        ]
        return [each for index, each in enumerate(found) if index == 0 or found[index - 1] != each]

    for who in ("deployment-controller", "replicaset-controller", "endpoint-controller"):
        assert order(replayed, who) == order(recorded, who), who


def test_pods_of_a_set_are_created_one_then_two_then_the_rest(recorded: Rows, replayed: Rows) -> None:
    """Slow start, as one sees it in the moments of the creations: batches lie apart, members of one close together."""

    def batches(rows: Rows) -> list[int]:
        times = [at for at, kind, _ in rows if kind == ("replicaset-controller", "create", "pods", "ok")]
        sizes = [1]
        for before, after in pairwise(times):
            if after - before < 0.0006:
                sizes[-1] += 1
            else:
                sizes.append(1)
        return sizes

    assert batches(replayed) == [1, 2, 1]
    assert sum(batches(recorded)) == 4
