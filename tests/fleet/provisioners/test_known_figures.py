"""What is known of real provisioners comes out of limits, elections and retries, over virtual time."""

from __future__ import annotations

import pytest

from tests.fleet.provisioners.claimsworld import ClaimsWorld


def test_a_hundred_claims_take_a_modern_provisioner_a_minute() -> None:
    world = ClaimsWorld("modern", 100)
    world.run_to_the_end()
    assert world.ends[0].failures == ()
    assert 50 <= world.all_bound_s <= 75
    assert world.sent["create persistentvolumes"] == 100
    retried = len(world.samples.get("provisioner provisioning_failures", []))
    assert world.sent["create events"] == 200 + 2 * retried


@pytest.mark.slow
def test_a_thousand_take_it_eight_to_eleven_minutes() -> None:
    world = ClaimsWorld("modern", 1000)
    world.run_to_the_end()
    assert world.ends[0].failures == ()
    assert 8 * 60 <= world.all_bound_s <= 11 * 60


@pytest.mark.slow
def test_three_legacy_ones_take_twice_as_long_and_send_eight_times_as_much() -> None:
    """Each claim costs every replica two lists, three watches and its tries for the lock, the leader four more. How
    much longer that takes is bounded by what three clients of 5 requests a second may send: docs/provisioners.md."""
    legacy, modern = ClaimsWorld("legacy", 100, replicas=3), ClaimsWorld("modern", 100)
    for world in (legacy, modern):
        world.run_to_the_end()
        assert world.ends[0].failures == ()
    assert legacy.all_bound_s > 2 * modern.all_bound_s
    assert legacy.sent.total() > 7 * modern.sent.total()
    assert legacy.codes[409] > 10
    assert modern.codes[409] == 0


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def play(seed: int) -> list[object]:
        world = ClaimsWorld("legacy", 5, replicas=2, seed=seed)
        world.run_to_the_end()
        return [world.all_bound_s, [line[:3] for line in world.log]]

    assert play(1) == play(1)
    assert play(1) != play(2)


@pytest.mark.parametrize("workers", [4, 100])
def test_what_a_worker_waits_for_is_what_few_workers_cost(workers: int) -> None:
    """20 claims whose volumes take 8 s: five rounds of four workers, or one."""
    world = ClaimsWorld("modern", 20, workers=workers, qps=50.0, burst=100, create="constant:8")
    world.run_to_the_end()
    rounds = 20 // min(workers, 20)
    assert 8.0 * rounds <= world.all_bound_s <= 8.0 * rounds + 4.0
