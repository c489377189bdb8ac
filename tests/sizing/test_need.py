"""The arithmetic of a fleet: by hand for round figures, and what must hold for any."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sizing import figures
from harness.sizing.fleet import Fleet, Servers
from harness.sizing.need import control_plane_of, kubelet_of, master_of, network_of, workers_of
from harness.wire.errors import ConfigError
from tests.sizing.figures import LARGE, ROUND, SMALL


def test_a_kubelet_costs_its_rest_and_its_events() -> None:
    kubelet = kubelet_of(Fleet(1, watches=35, events_a_node_s=2.0), ROUND)
    assert kubelet.memory_bytes == 80_000
    assert kubelet.rest_cores == pytest.approx(0.05e-3 + 2 * 50e-6)
    assert kubelet.opening_cpu_s == pytest.approx(1 / 20)


def test_a_worker_has_no_more_than_each_limit_of_a_process() -> None:
    workers = workers_of(Fleet(30_000, events_a_node_s=1.0, up_within_s=120.0), ROUND, SMALL)
    assert workers.limits == {
        "CPU at rest": 7000,  # 0.7 cores / (0.05 ms + 50 us)
        "opening in time": 2400,  # 120 s x 20/s
        "tried so far": 5000,
        "open files": 19_850,
    }
    assert (workers.limited_by, workers.count, workers.kubelets) == ("opening in time", 13, 2308)
    assert workers.memory_bytes == 170_000_000 + 2308 * 80_000
    assert workers.cores == pytest.approx(2308 * 1e-4)
    assert workers.files == 2308 + 150
    assert workers.spawn_rate == pytest.approx(13 * 20)


def test_files_are_what_limits_a_process_that_speaks_http_1_1() -> None:
    workers = workers_of(Fleet(5000, http="http/1.1"), ROUND, SMALL)
    assert (workers.limited_by, workers.limits["open files"]) == ("open files", 19_850 // 39)
    assert workers.files <= 20_000


def test_without_a_limit_of_files_there_is_none() -> None:
    workers = workers_of(Fleet(10), ROUND, msgspec.structs.replace(SMALL, files=None))
    assert "open files" not in workers.limits


def test_as_many_workers_as_are_asked_for() -> None:
    workers = workers_of(Fleet(5000, workers=20), ROUND, SMALL)
    assert (workers.count, workers.kubelets) == (20, 250)


def test_a_process_that_may_open_nothing_still_has_a_kubelet() -> None:
    workers = workers_of(Fleet(3), ROUND, msgspec.structs.replace(SMALL, files=100))
    assert workers.count == 3


def test_the_master_takes_less_than_30_percent_of_a_core_with_50_workers() -> None:
    assert 0.15 <= master_of(50).cores < 0.3


def test_real_servers_pay_93_kb_a_watch() -> None:
    """16 GB over three members for the 5,000-node fleet."""
    servers = control_plane_of(Fleet(5000))
    assert servers.memory_bytes - servers.idle_bytes == 175_000 * 93e3 + 3 * 5000 * 12_000
    assert servers.watches_a_member == 58_333
    assert servers.busiest_watches == 87_500  # with one of three down
    assert servers.busiest_connections == 2500
    assert servers.requests_a_second == pytest.approx(5000 / 10.2 + 5000 / 300)
    # 175,000 watches at 418 and 217 us are 111 s of it.
    assert 111 < servers.opening_cpu_s < 200


def test_emulated_members_pay_little() -> None:
    real, emulated = (control_plane_of(Fleet(5000, servers=kind)) for kind in ("binaries", "emulated"))
    assert emulated.memory_bytes - emulated.idle_bytes == 175_000 * 3410 + 3 * 5000 * 4000
    assert emulated.memory_bytes < real.memory_bytes / 10
    assert emulated.cores < real.cores
    assert emulated.opening_cpu_s < real.opening_cpu_s


def test_behind_a_balancer_or_without_a_second_member_everything_is_at_one_address() -> None:
    for fleet in (Fleet(100, one_address=True), Fleet(100, members=1), Fleet(100, members=2)):
        assert control_plane_of(fleet).busiest_watches == 3500


def test_the_network_at_rest_is_leases_statuses_and_bookmarks() -> None:
    quiet = network_of(Fleet(1000, events_a_node_s=0))
    busy = network_of(Fleet(1000, events_a_node_s=3))
    assert busy.rest_bytes_s - quiet.rest_bytes_s == pytest.approx(3000 * figures.EVENT_BYTES)
    each = quiet.rest_bytes_s / 1000
    assert each == pytest.approx(
        figures.LEASE_BYTES / 10.2 + figures.STATUS_BYTES / 300 + 35 / 60 * figures.BOOKMARK_BYTES
    )
    assert network_of(Fleet(1000, http="http/1.1")).opening_bytes > busy.opening_bytes


@given(
    nodes=st.integers(1, 100_000),
    watches=st.integers(5, 1000),
    members=st.integers(1, 9),
    servers=st.sampled_from(["existing", "emulated", "binaries"]),
    http=st.sampled_from(["h2", "http/1.1"]),
    events=st.floats(0, 1000),
)
def test_the_workers_hold_the_fleet_and_none_is_over_a_limit(
    nodes: int, watches: int, members: int, servers: Servers, http: str, events: float
) -> None:
    fleet = Fleet(nodes, watches, events, members=members, servers=servers, http=http)  # type: ignore[arg-type]
    fleet.validate()
    workers = workers_of(fleet, ROUND, LARGE)
    assert workers.count * workers.kubelets >= nodes
    assert (workers.count - 1) * workers.kubelets < nodes or workers.kubelets == 1
    room = workers.limits[workers.limited_by]
    assert workers.kubelets <= max(1, room)
    servers_ = control_plane_of(fleet)
    assert servers_.memory_bytes > servers_.idle_bytes > 0
    assert servers_.busiest_watches >= servers_.watches_a_member
    assert math.isfinite(network_of(fleet).rest_bytes_s)


@pytest.mark.parametrize(
    ("fleet", "words"),
    [
        (Fleet(0), "--nodes 0: not within 1 to 100000"),
        (Fleet(100_001), "--nodes 100001: not within 1 to 100000"),
        (Fleet(1, watches=4), "--watches-per-node 4: not within 5 to 1000"),
        (Fleet(1, members=0), "--members 0: not within 1 to 99"),
        (Fleet(5, workers=6), "--workers 6: not within 1 to 5"),
        (Fleet(5, events_a_node_s=-1), "--events -1: not within 0 to 1000 a second for each node"),
        (Fleet(5, events_a_node_s=float("nan")), "--events nan: not within 0 to 1000"),
        (Fleet(5, up_within_s=0.5), "--up-within 0.5 s: not within 1 s to 24 h"),
        (Fleet(5, servers="kind"), "--servers kind: allowed are existing, emulated, binaries"),  # type: ignore[arg-type]
    ],
)
def test_what_is_out_of_bounds_is_refused_by_its_option(fleet: Fleet, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        fleet.validate()
    assert str(refused.value).startswith(words)


def test_the_bounds_themselves_are_allowed() -> None:
    for fleet in (Fleet(1, 5, 0, 1, 1), Fleet(100_000, 1000, 1000, 86_400, 99, workers=100_000)):
        fleet.validate()
