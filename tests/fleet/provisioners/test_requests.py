"""Which requests a provisioner sends for a claim and for a volume, in which order."""

from __future__ import annotations

import pytest

from harness.virtual.world import World
from tests.fleet.provisioners.claimsworld import ClaimsWorld


def per_claim(world: ClaimsWorld) -> list[str]:
    """What was sent from the claims' creation on, informers and leases left out."""
    return [
        f"{verb} {name}"
        for at, verb, name, _ in world.log
        if at > 14.0 and name not in ("leases", "storageclasses") and (verb != "watchlist")
    ]


def test_modern_is_three_writes() -> None:
    world = ClaimsWorld("modern", 1, create="constant:1")
    world.run_to_the_end()
    assert per_claim(world) == ["create events", "create persistentvolumes", "create events"]


def test_legacy_is_three_watches_two_lists_the_lock_and_four_more() -> None:
    world = ClaimsWorld("legacy", 1, create="constant:1")
    world.run_to_the_end()
    assert per_claim(world)[:10] == [
        "watch persistentvolumeclaims",
        "list events",
        "watch events",
        "list events",
        "watch events",
        "get persistentvolumeclaims",
        "update persistentvolumeclaims",
        "get persistentvolumes",
        "create events",
        "create persistentvolumes",
    ]
    paths = [path for _, verb, name, path in world.log if (verb, name) == ("list", "events")]
    assert "type%3DWarning%2Creason%3DProvisioningFailed" in paths[0]
    assert "involvedObject.kind%3DPersistentVolumeClaim" in paths[0]
    assert "type%3DNormal%2Creason%3DProvisioningSucceeded" in paths[1]


@pytest.mark.parametrize(
    ("election", "watching", "sent", "unsent"),
    [
        ("per-claim", "informers", "update persistentvolumeclaims", "list events"),
        ("per-provisioner", "direct", "list events", "update persistentvolumeclaims"),
        ("none", "informers", "create persistentvolumes", "update leases"),
    ],
)
def test_each_change_can_be_made_alone(election: str, watching: str, sent: str, unsent: str) -> None:
    world = ClaimsWorld("modern", 3, election=election, watching=watching, create="constant:1")
    world.run_to_the_end()
    assert world.ends[0].failures == ()
    assert world.sent[sent] > 0
    assert world.sent[unsent] == 0


def test_a_deleted_claims_volume_is_deleted_and_its_finalizer_taken_off() -> None:
    world = ClaimsWorld("modern", 2, delete=True, create="constant:1")
    world.run_to_the_end()
    assert world.ends[0].failures == ()
    assert world.sent["patch persistentvolumes"] == 2
    assert 2 <= world.sent["delete persistentvolumes"] <= 4  # twice where the informer is behind the patch
    assert len(world.samples["claims volume_deleted_ms"]) == 2


def test_events_of_one_goroutine_come_after_the_volumes() -> None:
    world = ClaimsWorld("modern", 40, events="broadcast", create="constant:1")
    world.run_to_the_end()
    writes = [name for _, verb, name, _ in world.log if verb == "create"]
    assert writes[:40].count("persistentvolumes") > 20


def test_a_claim_whose_volume_fails_is_tried_again_after_one_second_then_two() -> None:
    world = ClaimsWorld("modern", 1, failures=1.0, create="constant:0.1", most_s=60.0)
    world.run_to_the_end()
    assert "0 of 1 claims were bound after 60 s" in world.ends[0].failures[0]
    assert world.sent["create persistentvolumes"] == 0
    assert 4 <= len(world.samples["provisioner provisioning_failures"]) <= 7


def test_a_call_that_outlasts_its_timeout_is_joined_by_the_next_one() -> None:
    world = ClaimsWorld("modern", 1, create="constant:15")
    world.run_to_the_end()
    assert world.ends[0].failures == ()
    assert len(world.samples["provisioner provisioning_failures"]) == 1
    assert 15.0 <= world.all_bound_s <= 17.0


def test_only_one_replica_of_three_works_and_another_takes_over() -> None:
    world = ClaimsWorld("modern", 30, replicas=3)
    world.run(25.0)
    leaders = [index for index, replica in enumerate(world.replicas) if replica.leading]
    assert len(leaders) == 1
    World.kill(world, 1 + leaders[0])  # the manager is the first machine
    world.run_to_the_end()
    assert world.ends[0].failures == ()
    assert len(world.samples["provisioner leader_changes"]) == 1
