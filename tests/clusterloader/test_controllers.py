"""Controllers, their pods, and which of them still wait."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.client.store import Change, Changed
from harness.clusterloader.measurements.controllers import ControlledPods, decode_controller
from harness.clusterloader.measurements.pods import PodState, PodTally, PodView, decode_pod, state_of


def pod(
    name: str, owner: str = "", phase: str = "Running", ready: bool = True, node: str = "n", gone: str = ""
) -> PodView:
    references = [{"uid": owner, "controller": True}] if owner else []
    body = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "resourceVersion": "1",
            "deletionTimestamp": gone,
            "ownerReferences": references,
        },
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]},
    }
    found: PodView = decode_pod(msgspec.json.encode(body))
    return found


def controller(uid: str, version: int = 1, owner: str = "", **spec: int) -> Any:
    references = [{"uid": "other", "controller": False}, {"uid": owner, "controller": True}]
    metadata = {
        "name": uid,
        "namespace": "ns",
        "uid": uid,
        "resourceVersion": str(version),
        "ownerReferences": references,
    }
    return decode_controller(msgspec.json.encode({"metadata": metadata, "spec": spec}))


def added(obj: Any) -> Changed:
    return Changed("k", Change.ADDED, obj)


def modified(obj: Any, old: Any) -> Changed:
    return Changed("k", Change.MODIFIED, obj, old)


def deleted(obj: Any, last: Any = None) -> Changed:
    return Changed("k", Change.DELETED, last or obj, obj)


def waiting(pods: ControlledPods) -> list[str]:
    assert len(pods.waiting) == pods.waiting_count
    return [target.key for target in pods.waiting]


def test_states_are_upstreams() -> None:
    assert state_of(pod("a")) is PodState.RUNNING
    assert state_of(pod("a", ready=False)) is PodState.RUNNING_NOT_READY
    assert state_of(pod("a", phase="Pending")) is PodState.PENDING_SCHEDULED
    assert state_of(pod("a", phase="Pending", node="")) is PodState.PENDING
    assert state_of(pod("a", phase="Failed")) is PodState.INACTIVE
    assert state_of(pod("a", phase="Succeeded")) is PodState.INACTIVE
    assert state_of(pod("a", phase="Unknown")) is PodState.UNKNOWN
    assert state_of(pod("a", gone="2027-01-15T08:00:00Z")) is PodState.TERMINATING


def test_inactive_pods_do_not_keep_a_wait_and_terminating_ones_do() -> None:
    tally = PodTally()
    tally.add(pod("a"))
    tally.add(pod("b", phase="Failed"))
    assert tally.all_running(1)
    tally.add(pod("c", gone="now"))
    assert not tally.all_running(1)
    assert tally.text(1).startswith(
        "Pods: 2 created, 1 desired, 1 running, 0 pending scheduled, 0 not scheduled, 1 inactive, 1 ter"
    )


def test_a_controller_waits_for_as_many_pods_as_it_wants() -> None:
    pods = ControlledPods("ReplicaSet")
    pods.controller_changed(added(controller("rs", replicas=2)), 5.0)
    assert pods.latest_change == 5.0
    pods.pod_changed(added(pod("a", "rs")), 6.0)
    pending = pod("b", "rs", phase="Pending")
    pods.pod_changed(added(pending), 6.0)
    pods.pod_changed(added(pod("stranger")), 6.0)
    assert waiting(pods) == ["ns/rs"]
    assert pods.progress() == (1, 2)
    assert pods.text(pods.waiting[0]).startswith(
        "ns/rs: Pods: 2 created, 2 desired, 1 running, 1 pending scheduled"
    )
    pods.pod_changed(modified(pod("b", "rs"), pending), 7.0)
    assert waiting(pods) == []
    assert pods.latest_change == 5.0


def test_pods_may_be_seen_before_their_controller() -> None:
    pods = ControlledPods("StatefulSet")
    pods.pod_changed(added(pod("a", "set")), 1.0)
    pods.controller_changed(added(controller("set", replicas=1)), 2.0)
    assert waiting(pods) == []


def test_scaling_begins_the_wait_again() -> None:
    pods = ControlledPods("ReplicaSet")
    pods.controller_changed(added(controller("rs", replicas=1)), 1.0)
    pods.pod_changed(added(pod("a", "rs")), 1.0)
    pods.controller_changed(added(controller("rs", 2, replicas=1)), 3.0)
    assert pods.latest_change == 1.0
    pods.controller_changed(added(controller("rs", 3, replicas=0)), 9.0)
    assert waiting(pods) == ["ns/rs"]
    assert pods.latest_change == 9.0
    pods.pod_changed(deleted(pod("a", "rs")), 10.0)
    assert waiting(pods) == []


def test_a_deployments_pods_come_through_its_replica_sets() -> None:
    pods = ControlledPods("Deployment")
    pods.controller_changed(added(controller("deploy", replicas=2)), 1.0)
    pods.pod_changed(added(pod("a", "rs-1")), 1.0)
    pods.replica_set_changed(added(controller("rs-1", owner="deploy")))
    assert pods.progress() == (1, 2)
    pods.replica_set_changed(added(controller("rs-2", owner="deploy")))
    pods.pod_changed(added(pod("b", "rs-2")), 1.0)
    assert waiting(pods) == []


def test_a_deleted_controller_waits_until_its_pods_are_gone() -> None:
    pods = ControlledPods("ReplicaSet")
    view = controller("rs", replicas=1)
    pods.controller_changed(added(view), 1.0)
    pods.pod_changed(added(pod("a", "rs")), 1.0)
    pods.controller_changed(deleted(view), 2.0)
    assert waiting(pods) == ["ns/rs"]
    assert pods.existing == 0
    pods.pod_changed(deleted(pod("a", "rs")), 3.0)
    assert waiting(pods) == []
    assert pods.progress() == (0, 0)


def test_a_jobs_pods_are_its_parallelism() -> None:
    pods = ControlledPods("Job")
    pods.controller_changed(added(controller("job", replicas=9, parallelism=1)), 1.0)
    assert pods.progress() == (0, 1)
    pods = ControlledPods("ReplicaSet")
    pods.controller_changed(added(controller("rs")), 1.0)
    assert waiting(pods) == []


def test_a_bare_pod_is_wanted_until_it_is_deleted() -> None:
    pods = ControlledPods("Pod")
    pending = pod("a", phase="Pending")
    pods.pod_changed(added(pending), 1.0)
    assert waiting(pods) == ["ns/a"]
    pods.pod_changed(modified(pod("a"), pending), 2.0)
    assert waiting(pods) == []
    assert pods.progress() == (1, 1)
    going = pod("a", gone="now")
    pods.pod_changed(modified(going, pod("a")), 3.0)
    assert waiting(pods) == ["ns/a"]
    assert pods.latest_change == 3.0
    pods.pod_changed(deleted(going), 4.0)
    assert waiting(pods) == []
    assert pods.existing == 0


def test_the_watch_has_seen_a_list_when_versions_are_there_and_nothing_more() -> None:
    pods = ControlledPods("ReplicaSet")
    pods.controller_changed(added(controller("a", 5)), 1.0)
    assert pods.has_seen({"a": 5})
    assert pods.has_seen({"a": 4})
    assert not pods.has_seen({"a": 6})
    assert not pods.has_seen({"a": 5, "b": 1})
    assert not pods.has_seen({})
    pods.controller_changed(deleted(controller("a", 5)), 2.0)
    assert pods.has_seen({})


def test_what_has_gone_since_a_list_counts_as_seen_whatever_its_last_version() -> None:
    """After a relist, a deletion comes with the last version that was known, which the LIST may be ahead of."""
    pods = ControlledPods("ReplicaSet")
    pods.controller_changed(added(controller("a", 5)), 1.0)
    pods.controller_changed(deleted(controller("a", 5)), 2.0)
    assert pods.has_seen({"a": 9})
    assert not pods.has_seen({"a": 9, "never seen": 1})
