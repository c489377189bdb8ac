"""Deployments, ReplicaSets, ReplicationControllers, StatefulSets, DaemonSets: what they make and take away."""

from __future__ import annotations

from typing import Any

import pytest

from harness.fleet.controllers.replicaset import ranked
from harness.fleet.controllers.views import PodView
from tests.fleet.controllers.cluster import Cluster, pod_template, workload
from tests.fleet.controllers.serverworld import Object

PODS = "/api/v1/namespaces/m/pods"
APPS = "/apis/apps/v1/namespaces/m"
MERGE: dict[str, Any] = {"content_type": "application/merge-patch+json"}
SETS = ("deployment-controller", "replicaset-controller", "replication-controller")


def cluster_with(*names: str, nodes: int = 0, **options: Any) -> Cluster:
    """A cluster with these controllers; without nodes pods stay pending, and nothing is scheduled."""
    cluster = Cluster(nodes, names=names, scheduler=nodes > 0, **options)
    cluster.run(12.0 if nodes else 1.0)
    cluster.namespace()
    return cluster


def owned(cluster: Cluster, kind: str) -> list[Object]:
    return [
        pod
        for pod in cluster.items(PODS)
        if any(each["kind"] == kind for each in pod["metadata"].get("ownerReferences") or ())
    ]


def settle(cluster: Cluster, seconds: float = 3.0) -> None:
    cluster.run(cluster.now + seconds)


# ---- ReplicaSets -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("made", "kind", "path"),
    [
        (workload("ReplicaSet", "x", replicas=3), "ReplicaSet", f"{APPS}/replicasets/x"),
        (
            workload("ReplicationController", "x", "v1", replicas=3),
            "ReplicationController",
            "/api/v1/namespaces/m/replicationcontrollers/x",
        ),
    ],
    ids=["ReplicaSet", "ReplicationController"],
)
def test_a_set_makes_its_pods_and_says_so(made: Object, kind: str, path: str) -> None:
    cluster = cluster_with(*SETS)
    cluster.apply(made)
    settle(cluster)
    assert len(owned(cluster, kind)) == 3
    assert cluster.admin("GET", path)["status"]["replicas"] == 3
    cluster.scale(f"{path}/scale", 1)
    settle(cluster)
    assert len(owned(cluster, kind)) == 1
    assert cluster.admin("GET", path)["status"]["replicas"] == 1


def test_orphans_that_match_are_adopted_after_a_look_at_the_owner_and_released_again() -> None:
    cluster = cluster_with(*SETS)
    orphan = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "o"}, **pod_template("x")}
    orphan["metadata"] = {"name": "o", "labels": {"app": "x"}}
    cluster.apply(orphan)
    cluster.apply(workload("ReplicaSet", "x", replicas=2))
    settle(cluster)
    sent = cluster.kinds("replicaset-controller")
    assert sent[:2] == ["get replicasets", "patch pods"]
    assert len(cluster.items(PODS)) == len(owned(cluster, "ReplicaSet")) == 2
    cluster.admin("PATCH", f"{PODS}/o", {"metadata": {"labels": {"app": "other"}}}, **MERGE)
    settle(cluster)
    assert len(cluster.items(PODS)) == 3
    assert len(owned(cluster, "ReplicaSet")) == 2
    assert not cluster.admin("GET", f"{PODS}/o")["metadata"].get("ownerReferences")


def test_creations_that_fail_stop_the_batch_are_told_and_tried_again() -> None:
    cluster = cluster_with(*SETS)
    bad = workload("ReplicaSet", "x", replicas=8)
    bad["spec"]["template"]["spec"]["priorityClassName"] = "nobody-has-made-it"
    cluster.apply(bad)
    settle(cluster, 1.0)
    refused = [each for each in cluster.log if each.what == "create pods" and each.code == 403]
    assert len(refused) >= 3  # one a try, never a second batch
    assert refused[1].at - refused[0].at < 0.1
    status = cluster.admin("GET", f"{APPS}/replicasets/x")["status"]
    assert status["conditions"][0]["type"] == "ReplicaFailure"
    events = cluster.items("/api/v1/namespaces/m/events")
    assert {each["reason"] for each in events} == {"FailedCreate"}
    assert len(events) == 1  # repeats are counted


def view(name: str, **fields: Any) -> PodView:
    base: dict[str, Any] = {
        "node": "n1",
        "phase": "Running",
        "ready": True,
        "ready_since": "2026-01-01T00:00:00Z",
    }
    created = fields.pop("created", "2026-01-01T00:00:00Z")
    return PodView(name, "m", name, "1", {}, (), (), created, None, **{**base, **fields})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (view("a", node=""), view("b")),
        (view("a", phase="Pending"), view("b")),
        (view("a", ready=False), view("b")),
        (view("a", delete_cost=-1), view("b")),
        (view("a", node="crowded"), view("b")),
        (view("a", ready_since="2026-06-01T00:00:00Z"), view("b")),
        (view("a", restarts=2), view("b")),
        (view("a", created="2026-06-01T00:00:00Z", ready=False), view("b", ready=False)),
        (view("a"), view("b")),
    ],
    ids=[
        "unassigned",
        "pending",
        "unready",
        "cost",
        "doubled up",
        "ready later",
        "restarts",
        "younger",
        "uid",
    ],
)
def test_which_pod_goes_first(first: PodView, second: PodView) -> None:
    related = [view("x", node="crowded"), view("y", node="crowded")]
    now_s = 1_800_000_000.0
    assert ranked([second, first], related, now_s)[0] is first
    assert ranked([first, second], related, now_s)[0] is first


# ---- Deployments -----------------------------------------------------------------------------------------------------
def test_a_rolling_update_keeps_to_its_limits_and_leaves_the_old_set_empty() -> None:
    cluster = cluster_with(*SETS, nodes=2)
    cluster.apply(workload("Deployment", "d", replicas=4))
    settle(cluster, 10.0)
    counts: list[tuple[int, int]] = []
    patch = {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}
    cluster.admin("PATCH", f"{APPS}/deployments/d", patch, **MERGE)
    for _ in range(100):
        settle(cluster, 0.25)
        pods = [pod for pod in owned(cluster, "ReplicaSet") if "deletionTimestamp" not in pod["metadata"]]
        ready = sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
            for pod in pods
        )
        counts.append((len(pods), ready))
    assert max(total for total, _ in counts) <= 5  # 25 % of 4 is one more
    assert min(ready for _, ready in counts) >= 3
    sets = cluster.items(f"{APPS}/replicasets")
    assert sorted(each["spec"]["replicas"] for each in sets) == [0, 4]
    notes = {each["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for each in sets}
    assert notes == {"1", "2"}
    deployment = cluster.admin("GET", f"{APPS}/deployments/d")
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    conditions = {each["type"]: each["reason"] for each in deployment["status"]["conditions"]}
    assert conditions == {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}


def test_recreate_waits_for_the_last_old_pod() -> None:
    cluster = cluster_with(*SETS, nodes=1)
    cluster.apply(workload("Deployment", "d", replicas=2, strategy={"type": "Recreate"}))
    settle(cluster, 8.0)
    old = {pod["metadata"]["name"] for pod in owned(cluster, "ReplicaSet")}
    patch = {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}
    cluster.admin("PATCH", f"{APPS}/deployments/d", patch, **MERGE)
    together = False
    for _ in range(80):
        settle(cluster, 0.25)
        names = {pod["metadata"]["name"] for pod in owned(cluster, "ReplicaSet")}
        together |= bool(names & old) and bool(names - old)
    assert not together
    assert len(names) == 2
    assert not names & old


def test_history_beyond_the_limit_goes() -> None:
    cluster = cluster_with(*SETS)
    cluster.apply(workload("Deployment", "d", replicas=0, revisionHistoryLimit=1))
    settle(cluster)
    for version in range(4):
        patch = {"spec": {"template": {"metadata": {"annotations": {"v": str(version)}}}}}
        cluster.admin("PATCH", f"{APPS}/deployments/d", patch, **MERGE)
        settle(cluster)
    assert len(cluster.items(f"{APPS}/replicasets")) == 2


def test_a_rollback_takes_the_old_set_again_with_a_new_revision() -> None:
    cluster = cluster_with(*SETS)
    cluster.apply(workload("Deployment", "d", replicas=1))
    settle(cluster)
    for value in ("2", None):
        patch = {"spec": {"template": {"metadata": {"annotations": {"v": value}}}}}
        cluster.admin("PATCH", f"{APPS}/deployments/d", patch, **MERGE)
        settle(cluster)
    sets = cluster.items(f"{APPS}/replicasets")
    assert len(sets) == 2
    notes = [each["metadata"]["annotations"] for each in sets]
    assert {
        "deployment.kubernetes.io/revision": "3",
        "deployment.kubernetes.io/revision-history": "1",
    }.items() <= {
        key: value
        for each in notes
        if each["deployment.kubernetes.io/revision"] == "3"
        for key, value in each.items()
    }.items()


def test_scaling_amid_a_rollout_gives_each_set_its_share() -> None:
    cluster = cluster_with(*SETS)
    cluster.apply(workload("Deployment", "d", replicas=10))
    settle(cluster)
    patch = {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}
    cluster.admin("PATCH", f"{APPS}/deployments/d", patch, **MERGE)
    settle(cluster)
    cluster.scale(f"{APPS}/deployments/d/scale", 20)
    settle(cluster)
    sizes = sorted(each["spec"]["replicas"] for each in cluster.items(f"{APPS}/replicasets"))
    assert sum(sizes) == 25
    assert sizes[0] >= 5


def test_a_paused_deployment_is_scaled_but_not_rolled_out() -> None:
    cluster = cluster_with(*SETS)
    cluster.apply(workload("Deployment", "d", replicas=2))
    settle(cluster)
    patch = {"spec": {"paused": True, "replicas": 3, "template": {"metadata": {"annotations": {"v": "2"}}}}}
    cluster.admin("PATCH", f"{APPS}/deployments/d", patch, **MERGE)
    settle(cluster)
    sets = cluster.items(f"{APPS}/replicasets")
    assert [each["spec"]["replicas"] for each in sets] == [3]
    conditions = cluster.admin("GET", f"{APPS}/deployments/d")["status"]["conditions"]
    assert "DeploymentPaused" in {each["reason"] for each in conditions}


# ---- StatefulSets ----------------------------------------------------------------------------------------------------
def ordinals(cluster: Cluster) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in owned(cluster, "StatefulSet"))


def test_an_ordered_set_makes_one_pod_after_the_other_and_takes_the_last_first() -> None:
    cluster = cluster_with("statefulset-controller", nodes=1)
    cluster.apply(workload("StatefulSet", "s", replicas=3, serviceName="s"))
    steps = []
    for _ in range(40):
        settle(cluster, 0.25)
        steps.append(len(ordinals(cluster)))
    assert steps[-1] == 3
    assert steps.index(2) > 0  # the second waits until the first is ready
    assert ordinals(cluster) == ["s-0", "s-1", "s-2"]
    cluster.scale(f"{APPS}/statefulsets/s/scale", 1)
    settle(cluster, 8.0)
    assert ordinals(cluster) == ["s-0"]
    deleted = [each.name for each in cluster.writes("statefulset-controller") if each.what == "delete pods"]
    assert deleted == ["s-2", "s-1"]


def test_claims_come_from_templates_and_pods_have_their_names() -> None:
    cluster = cluster_with("statefulset-controller")
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    made = workload(
        "StatefulSet",
        "s",
        replicas=2,
        serviceName="s",
        podManagementPolicy="Parallel",
        volumeClaimTemplates=[claim],
        ordinals={"start": 5},
    )
    cluster.apply(made)
    settle(cluster)
    claims = cluster.items("/api/v1/namespaces/m/persistentvolumeclaims")
    assert sorted(each["metadata"]["name"] for each in claims) == ["data-s-5", "data-s-6"]
    pod = cluster.admin("GET", f"{PODS}/s-5")
    assert pod["spec"]["hostname"] == "s-5"
    assert pod["spec"]["subdomain"] == "s"
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-s-5"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "5"
    sent = cluster.kinds("statefulset-controller")
    assert sent[:5] == [
        "create controllerrevisions",
        "create persistentvolumeclaims",
        "create pods",
        "create persistentvolumeclaims",
        "create pods",
    ]


def test_an_update_goes_from_the_highest_ordinal_down_to_the_partition() -> None:
    cluster = cluster_with("statefulset-controller", nodes=1)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    cluster.apply(
        workload(
            "StatefulSet",
            "s",
            replicas=3,
            serviceName="s",
            podManagementPolicy="Parallel",
            updateStrategy=strategy,
        )
    )
    settle(cluster, 6.0)
    patch = {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}
    cluster.admin("PATCH", f"{APPS}/statefulsets/s", patch, **MERGE)
    settle(cluster, 20.0)
    deleted = [each.name for each in cluster.writes("statefulset-controller") if each.what == "delete pods"]
    assert deleted == ["s-2", "s-1"]
    revisions = {
        pod["metadata"]["name"]: pod["metadata"]["labels"]["controller-revision-hash"]
        for pod in owned(cluster, "StatefulSet")
    }
    assert revisions["s-1"] == revisions["s-2"] != revisions["s-0"]
    assert len(cluster.items(f"{APPS}/controllerrevisions")) == 2
    status = cluster.admin("GET", f"{APPS}/statefulsets/s")["status"]
    assert (status["updatedReplicas"], status["currentRevision"]) != (3, status["updateRevision"])


# ---- DaemonSets ------------------------------------------------------------------------------------------------------
def node(name: str, *, labels: dict[str, str] | None = None, taints: list[Object] | None = None) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints or []},
    }


NODES = [
    node("plain"),
    node("disk", labels={"disk": "ssd"}),
    node("closed", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
]


def required(key: str, operator: str, *values: str) -> Object:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {"plain", "disk"}),
        ({"nodeSelector": {"disk": "ssd"}}, {"disk"}),
        ({"affinity": required("disk", "In", "ssd", "nvme")}, {"disk"}),
        ({"affinity": required("disk", "DoesNotExist")}, {"plain"}),
        ({"tolerations": [{"key": "k", "operator": "Exists"}]}, {"plain", "disk", "closed"}),
        ({"tolerations": [{"key": "k", "value": "w"}]}, {"plain", "disk"}),
    ],
    ids=["any", "selector", "affinity in", "affinity without", "tolerated", "other value"],
)
def test_a_daemon_runs_where_it_may(spec: Object, expected: set[str]) -> None:
    cluster = cluster_with("daemon-set-controller")
    cluster.apply(*NODES)
    cluster.apply(workload("DaemonSet", "d", template=pod_template("d", **spec)))
    settle(cluster)
    meant = {
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ][0]["matchFields"][0]["values"][0]
        for pod in owned(cluster, "DaemonSet")
    }
    assert meant == expected
    status = cluster.admin("GET", f"{APPS}/daemonsets/d")["status"]
    assert status["desiredNumberScheduled"] == len(expected)


def test_nodes_that_come_go_or_change_get_and_lose_their_daemon() -> None:
    cluster = cluster_with("daemon-set-controller")
    cluster.apply(node("a"))
    cluster.apply(workload("DaemonSet", "d", template=pod_template("d", nodeSelector={"on": "yes"})))
    settle(cluster)
    assert owned(cluster, "DaemonSet") == []
    cluster.admin("PATCH", "/api/v1/nodes/a", {"metadata": {"labels": {"on": "yes"}}}, **MERGE)
    settle(cluster)
    assert len(owned(cluster, "DaemonSet")) == 1
    cluster.apply(node("b", labels={"on": "yes"}))
    settle(cluster)
    assert len(owned(cluster, "DaemonSet")) == 2
    cluster.admin("PATCH", "/api/v1/nodes/a", {"metadata": {"labels": {"on": None}}}, **MERGE)
    settle(cluster)
    assert len(owned(cluster, "DaemonSet")) == 1


def test_an_update_replaces_one_node_after_the_other() -> None:
    cluster = cluster_with("daemon-set-controller", nodes=3)
    cluster.apply(workload("DaemonSet", "d"))
    settle(cluster, 6.0)
    patch = {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}
    cluster.admin("PATCH", f"{APPS}/daemonsets/d", patch, **MERGE)
    ready = []
    for _ in range(100):
        settle(cluster, 0.25)
        ready.append(cluster.admin("GET", f"{APPS}/daemonsets/d")["status"].get("numberReady", 0))
    assert min(ready) >= 2 - 1
    hashes = {pod["metadata"]["labels"]["controller-revision-hash"] for pod in owned(cluster, "DaemonSet")}
    assert len(hashes) == 1
    assert cluster.admin("GET", f"{APPS}/daemonsets/d")["status"]["updatedNumberScheduled"] == 3
