"""What a DELETE decides, for each state an object may be in."""

import pytest

from harness.apiserver.deletion import Deletion, Verdict, due_during_update
from harness.apiserver.resources import RESOURCES
from harness.apiserver.strategies import strategy_for
from harness.wire.rfc3339 import seconds
from harness.wire.status import StatusError

RESOURCE = {resource.resource: resource for resource in RESOURCES}
NOW = 1_700_000_000.0


def decide(resource: str, old: dict, **deletion: object) -> tuple[Verdict, dict | None]:
    row = RESOURCE[resource]
    return Deletion(**deletion).decide(row, strategy_for(row), old, NOW)  # type: ignore[arg-type]


def bound_pod(**metadata: object) -> dict:
    spec = {"nodeName": "n", "terminationGracePeriodSeconds": 30}
    meta = {"name": "p", "generation": 1, **metadata}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def test_an_object_without_finalizers_goes_at_once() -> None:
    assert decide("configmaps", {"metadata": {"name": "x"}}) == (Verdict.REMOVE, None)


def test_an_object_with_finalizers_is_marked_once() -> None:
    verdict, marked = decide("configmaps", {"metadata": {"name": "x", "finalizers": ["a/b"]}})
    assert verdict is Verdict.MARK
    assert marked is not None
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    assert decide("configmaps", marked)[0] is Verdict.PENDING


@pytest.mark.parametrize(
    ("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_a_propagation_policy_leaves_a_finalizer_for_the_collector(policy: str, finalizer: str) -> None:
    _, marked = decide("configmaps", {"metadata": {"name": "x"}}, propagation=policy)
    assert marked is not None
    assert marked["metadata"]["finalizers"] == [finalizer]


@pytest.mark.parametrize(
    ("before", "policy", "after"),
    [
        (["a/b", "orphan"], "Foreground", ["a/b", "foregroundDeletion"]),
        (["a/b", "foregroundDeletion"], "Orphan", ["a/b", "orphan"]),
        (["a/b", "foregroundDeletion"], "Background", ["a/b"]),
        (["a/b", "foregroundDeletion"], "", ["a/b", "foregroundDeletion"]),
        (["a/b", "orphan"], "", ["a/b", "orphan"]),
    ],
)
def test_a_policy_replaces_the_finalizer_of_another(before: list[str], policy: str, after: list[str]) -> None:
    old = {"metadata": {"name": "x", "generation": 3, "finalizers": before}}
    verdict, marked = decide("configmaps", old, propagation=policy)
    assert verdict is Verdict.MARK
    assert marked is not None
    assert marked["metadata"]["finalizers"] == after
    assert marked["metadata"]["generation"] == 4
    assert decide("configmaps", marked, propagation=policy)[0] is Verdict.PENDING


def test_the_last_finalizer_of_a_policy_goes_with_the_object_under_another() -> None:
    old = {"metadata": {"name": "x", "finalizers": ["foregroundDeletion"]}}
    assert decide("configmaps", old, propagation="Background") == (Verdict.REMOVE, None)


def test_a_deletion_under_way_takes_another_policy() -> None:
    meta = {"name": "x", "deletionTimestamp": seconds(NOW - 9), "finalizers": ["a/b", "foregroundDeletion"]}
    verdict, marked = decide("configmaps", {"metadata": meta}, propagation="Background")
    assert verdict is Verdict.MARK
    assert marked is not None
    assert marked["metadata"]["finalizers"] == ["a/b"]
    assert marked["metadata"]["deletionTimestamp"] == seconds(NOW - 9)


def test_a_pod_takes_a_policy_too() -> None:
    _, marked = decide("pods", bound_pod(), propagation="Foreground")
    assert marked is not None
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]


def test_a_namespace_takes_a_policy_too() -> None:
    old = {"metadata": {"name": "x"}, "spec": {"finalizers": ["kubernetes"]}}
    _, marked = decide("namespaces", old, propagation="Orphan")
    assert marked is not None
    assert marked["metadata"]["finalizers"] == ["orphan"]


def test_a_period_that_has_passed_already_is_the_shortest() -> None:
    old = bound_pod(deletionTimestamp=seconds(NOW - 60), deletionGracePeriodSeconds=30)
    verdict, marked = decide("pods", old, grace_s=10)
    assert verdict is Verdict.MARK
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"] == seconds(NOW)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 1


def test_a_pod_whose_time_is_up_goes_with_the_next_deletion() -> None:
    old = bound_pod(deletionTimestamp=seconds(NOW - 1), deletionGracePeriodSeconds=0)
    assert decide("pods", old)[0] is Verdict.REMOVE
    held = bound_pod(deletionTimestamp=seconds(NOW - 1), deletionGracePeriodSeconds=0, finalizers=["a/b"])
    assert decide("pods", held)[0] is Verdict.PENDING


@pytest.mark.parametrize(("asked", "grace"), [(None, 30), (5, 5), (1, 1), (-1, 1)])
def test_a_bound_pod_gets_its_grace_period(asked: int | None, grace: int) -> None:
    verdict, marked = decide("pods", bound_pod(), grace_s=asked)
    assert verdict is Verdict.MARK
    assert marked is not None
    assert marked["metadata"]["deletionTimestamp"] == seconds(NOW + grace)
    assert marked["metadata"]["generation"] == 2


def test_a_grace_period_of_zero_marks_and_removes() -> None:
    assert decide("pods", bound_pod(), grace_s=0)[0] is Verdict.MARK_AND_REMOVE


def test_pods_that_run_nowhere_go_at_once() -> None:
    unscheduled = bound_pod()
    del unscheduled["spec"]["nodeName"]
    ended = bound_pod()
    ended["status"]["phase"] = "Succeeded"
    for pod in (unscheduled, ended):
        assert decide("pods", pod)[0] is Verdict.MARK_AND_REMOVE


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        (None, Verdict.PENDING),
        (31, Verdict.PENDING),
        (30, Verdict.PENDING),
        (29, Verdict.MARK),
        (0, Verdict.MARK_AND_REMOVE),
    ],
)
def test_a_grace_period_can_only_become_shorter(asked: int | None, verdict: Verdict) -> None:
    old = bound_pod(deletionTimestamp=seconds(NOW + 30), deletionGracePeriodSeconds=30)
    found, marked = decide("pods", old, grace_s=asked)
    assert found is verdict
    if marked is not None:
        assert marked["metadata"]["deletionTimestamp"] == seconds(NOW + (asked or 0))
        assert marked["metadata"]["generation"] == 1


def test_a_pod_with_finalizers_outlives_its_grace_period() -> None:
    assert decide("pods", bound_pod(finalizers=["a/b"]), grace_s=0)[0] is Verdict.MARK


def test_a_namespace_waits_for_its_finalizers() -> None:
    old = {"metadata": {"name": "x"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    verdict, marked = decide("namespaces", old)
    assert verdict is Verdict.MARK
    assert marked is not None
    assert marked["status"]["phase"] == "Terminating"
    assert decide("namespaces", marked)[0] is Verdict.PENDING
    assert not due_during_update(RESOURCE["namespaces"], marked)
    marked["spec"] = {}
    assert due_during_update(RESOURCE["namespaces"], marked)
    assert decide("namespaces", marked)[0] is Verdict.REMOVE


def test_an_update_removes_what_only_waited_for_its_last_finalizer() -> None:
    waiting = {"metadata": {"deletionTimestamp": "t", "deletionGracePeriodSeconds": 0}}
    assert due_during_update(RESOURCE["configmaps"], waiting)
    waiting["metadata"]["finalizers"] = ["a/b"]
    assert not due_during_update(RESOURCE["configmaps"], waiting)
    graceful = bound_pod(deletionTimestamp="t", deletionGracePeriodSeconds=30)
    assert not due_during_update(RESOURCE["pods"], graceful)


def test_preconditions_are_checked() -> None:
    old = {"metadata": {"name": "x", "uid": "u"}}
    Deletion(uid="u", resource_version="5").check(RESOURCE["configmaps"], old, 5)
    for deletion in (Deletion(uid="v"), Deletion(resource_version="4")):
        with pytest.raises(StatusError, match="in the precondition"):
            deletion.check(RESOURCE["configmaps"], old, 5)
