"""The summary of etcd: histograms between two moments, the largest size, in upstream's layout."""

from __future__ import annotations

import msgspec
import pytest

from harness.clusterloader.etcdmetrics import HISTOGRAMS, figures, summarize
from harness.clusterloader.series import Series

FSYNC = "etcd_disk_wal_fsync_duration_seconds_bucket"
COMMIT = "etcd_disk_backend_commit_duration_seconds_bucket"
ROUND_TRIP = "etcd_network_peer_round_trip_time_seconds_bucket"
SIZE = "etcd_mvcc_db_total_size_in_bytes"


def bucket(name: str, le: str, *values: float, **labels: str) -> Series:
    """A value each 10 s."""
    times = tuple(10.0 * index for index in range(len(values)))
    return Series({"__name__": name, "le": le, **labels}, times, values)


def size(*values: float, name: str = SIZE) -> Series:
    return Series({"__name__": name}, tuple(10.0 * index for index in range(len(values))), values)


def test_a_histogram_has_what_came_between_start_and_gather() -> None:
    series = [bucket(FSYNC, "0.001", 90, 95, 99), bucket(FSYNC, "+Inf", 100, 110, 130)]
    found = summarize(series, 5.0, 20.0)
    (histogram,) = found.wal_fsync_duration
    assert histogram.labels == {"__name__": FSYNC}
    assert histogram.buckets == {"+Inf": 30, "0.001": 9}
    assert list(histogram.buckets) == ["+Inf", "0.001"]  # as Go sorts them
    assert found.backend_commit_duration == []


def test_the_layout_is_upstreams() -> None:
    series = [bucket(name, "+Inf", 0, 1) for name in HISTOGRAMS]
    found = msgspec.to_builtins(summarize([*series, size(4096)], 0.0, 10.0))
    assert list(found) == [
        "backendCommitDuration",
        "snapshotSaveTotalDuration",
        "peerRoundTripTime",
        "walFsyncDuration",
        "maxDatabaseSize",
    ]
    assert found["peerRoundTripTime"] == [{"labels": {"__name__": ROUND_TRIP}, "buckets": {"+Inf": 1}}]
    assert found["maxDatabaseSize"] == 4096


def test_peers_are_told_apart_and_members_are_added() -> None:
    series = [
        bucket(ROUND_TRIP, "+Inf", 0, 4, To="b"),
        bucket(ROUND_TRIP, "+Inf", 0, 5, To="c"),
        bucket(ROUND_TRIP, "+Inf", 0, 6, To="c"),  # of another member
    ]
    found = summarize(series, 0.0, 10.0).peer_round_trip_time
    assert [(item.labels["To"], item.buckets["+Inf"]) for item in found] == [("b", 4), ("c", 11)]


def test_a_member_that_was_restarted_counts_from_zero() -> None:
    (histogram,) = summarize([bucket(COMMIT, "+Inf", 100, 120, 7)], 0.0, 20.0).backend_commit_duration
    assert histogram.buckets == {"+Inf": 27}


@pytest.mark.parametrize(
    ("since", "until", "largest"),
    [(0.0, 30.0, 9), (15.0, 20.0, 9), (20.0, 30.0, 5), (30.0, 60.0, 3), (-9.0, -1.0, 0)],
)
def test_the_size_is_the_largest_that_it_had_in_that_time(since: float, until: float, largest: int) -> None:
    assert summarize([size(1, 9, 5, 3)], since, until).max_database_size == largest


def test_the_size_has_an_old_name_too() -> None:
    old = size(8, name="etcd_debugging_mvcc_db_total_size_in_bytes")
    assert summarize([old, size(7)], 0.0, 1.0).max_database_size == 8


def test_a_person_sees_quantiles_in_milliseconds_and_the_size() -> None:
    series = [
        *(bucket(COMMIT, le, 0, count) for le, count in (("0.001", 0), ("0.002", 100), ("+Inf", 100))),
        size(0, 3 << 20),
    ]
    values = figures(summarize(series, 0.0, 10.0))
    assert values["largest database, MiB"] == 3.0
    assert values["backend commit perc50, ms"] == pytest.approx(1.5)
    assert values["backend commit perc99, ms"] == pytest.approx(1.99)
    assert not any("fsync" in name for name in values)
