"""What of a machine ends first."""

from __future__ import annotations

import msgspec
import pytest

from harness.sizing.fleet import Fleet, Machine, Servers
from harness.sizing.limits import Limit, SizingPlan, plan_for
from harness.wire.errors import ConfigError
from tests.sizing.figures import LARGE, ROUND, SMALL


def limit(plan: SizingPlan, what: str) -> Limit:
    return next(each for each in plan.limits if each.what == what)


def test_the_scarcest_comes_first() -> None:
    plan = plan_for(Fleet(5000), ROUND, SMALL)
    assert [each.holds for each in plan.limits] == sorted(each.holds for each in plan.limits)
    assert plan.fits
    assert plan.first is plan.limits[0]
    assert plan.first.holds >= 5000
    assert plan.machines == 1


@pytest.mark.parametrize(
    ("machine", "first"),
    [
        (msgspec.structs.replace(LARGE, memory_bytes=600_000_000), "memory"),
        (msgspec.structs.replace(LARGE, ports=1000), "ports to one address"),
        (msgspec.structs.replace(LARGE, cores=0.1), "CPU at rest"),
        (msgspec.structs.replace(LARGE, files=400), "open files of a worker"),
    ],
)
def test_each_resource_can_be_the_first(machine: Machine, first: str) -> None:
    fleet = Fleet(5000, workers=1) if "files" in first else Fleet(5000)
    plan = plan_for(fleet, ROUND, machine)
    assert plan.first.what == first
    assert not plan.fits
    assert not plan.first.enough
    assert plan.first.holds < 5000
    assert plan.machines is not None
    assert plan.machines > 1


def test_opening_takes_as_long_as_the_workers_need() -> None:
    plan = plan_for(Fleet(5000, workers=1, up_within_s=60), ROUND, LARGE)
    assert plan.opens_in_s == pytest.approx(5000 / 20)
    assert plan.first.what == "opening all watches"
    assert plan.first.holds == 1200
    faster = plan_for(Fleet(5000, workers=10, up_within_s=60), ROUND, LARGE)
    assert faster.opens_in_s == pytest.approx(25)


def test_workers_on_few_cores_and_servers_beside_them_are_slower() -> None:
    """50 ms each in a worker, and what a real server pays, on two cores."""
    plan = plan_for(Fleet(5000, servers="binaries", workers=10), ROUND, SMALL)
    assert plan.opens_in_s == pytest.approx((5000 / 20 + plan.control_plane.opening_cpu_s) / 2)


def test_servers_on_the_machine_take_memory_cores_and_files() -> None:
    elsewhere, here = (plan_for(Fleet(5000, servers=kind), ROUND, SMALL) for kind in ("existing", "binaries"))
    for what in ("memory", "CPU at rest"):
        assert limit(here, what).needed > limit(elsewhere, what).needed
        assert limit(here, what).holds < limit(elsewhere, what).holds
    workers = 170_000_000 + 5000 * 80_000
    together = here.control_plane.memory_bytes + here.master.memory_bytes + workers
    assert limit(here, "memory").needed == together
    assert limit(here, "open files of a member").needed == 5150
    assert all(each.what != "open files of a member" for each in elsewhere.limits)
    assert (here.machines, elsewhere.machines) == (None, 1)


@pytest.mark.parametrize("servers", ["existing", "binaries"])
@pytest.mark.parametrize("what", ["memory", "CPU at rest", "ports to one address"])
def test_what_a_machine_holds_it_holds(servers: Servers, what: str) -> None:
    """As many kubelets as a limit says are within it, and some more are not."""
    machine = msgspec.structs.replace(SMALL, memory_bytes=5_000_000_000)
    fleet = Fleet(5000, servers=servers, workers=5)
    holds = limit(plan_for(fleet, ROUND, machine), what).holds
    within = plan_for(msgspec.structs.replace(fleet, nodes=holds - 1), ROUND, machine)
    assert limit(within, what).enough
    beyond = plan_for(msgspec.structs.replace(fleet, nodes=int(holds * 1.01) + 2), ROUND, machine)
    assert not limit(beyond, what).enough


def test_no_limit_of_files_is_no_row() -> None:
    plan = plan_for(Fleet(10), ROUND, msgspec.structs.replace(SMALL, files=None))
    assert not any("files" in each.what for each in plan.limits)


def test_a_hundred_thousand_kubelets_take_several_machines() -> None:
    plan = plan_for(Fleet(100_000), ROUND, SMALL)
    assert plan.workers.count >= 20
    assert plan.machines is not None
    assert plan.machines >= 5


@pytest.mark.parametrize("cores", [0, -1, 5000, float("nan")])
def test_a_machine_that_cannot_be_is_refused(cores: float) -> None:
    with pytest.raises(ConfigError, match="--cores"):
        plan_for(Fleet(1), ROUND, msgspec.structs.replace(SMALL, cores=cores))
    with pytest.raises(ConfigError, match="--memory"):
        plan_for(Fleet(1), ROUND, msgspec.structs.replace(SMALL, memory_bytes=0))
