"""The report: kperf's keys and percentiles, members, failures among the latencies and beside them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.kperf.failures import RequestFailure
from harness.kperf.observations import Observations
from harness.kperf.report import Span, build_report, percentiles

HTTP_500 = RequestFailure("http", code=500)
RESET = RequestFailure("connection", message="connection reset by peer")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([50.0, 49.0, 1.0] + [0.0] * 97, [0, 0, 0, 0, 49, 50]),  # kperf/metrics/utils_test.go
        ([50.0, 49.0, -1.0] + [0.0] * 997, [-1, 0, 0, 0, 0, 50]),
        ([3.0], [3, 3, 3, 3, 3, 3]),
        ([1.0, 2.0], [1, 1, 2, 2, 2, 2]),
        ([float(n) for n in range(1, 11)], [1, 5, 9, 10, 10, 10]),
        ([float(n) for n in range(1, 101)], [1, 50, 90, 95, 99, 100]),
        ([float(n) for n in range(1, 102)], [1, 51, 91, 96, 100, 101]),
    ],
)
def test_percentiles_are_those_of_kperf(values: list[float], expected: list[float]) -> None:
    found = percentiles(values)
    assert found is not None
    assert found == list(zip([0, 0.5, 0.9, 0.95, 0.99, 1], expected, strict=True))


def test_of_nothing_there_are_no_percentiles() -> None:
    assert percentiles([]) is None


def seen() -> Observations:
    observations = Observations()
    add = observations.add
    add(0, "LIST", "/api/v1/pods", "member-0", None, 0.5, 0.1, 10.0, 1000)
    add(0, "LIST", "/api/v1/pods", "member-1", None, 0.7, 0.0, 11.0, 2000)
    add(0, "GET", "/api/v1/nodes/a", "member-1", HTTP_500, 3.0, 1.0, 14.0)
    add(1, "GET", "/api/v1/nodes/a", "member-0", HTTP_500, 2.0, 0.0, 13.0)
    add(1, "GET", "/api/v1/nodes/a", "", RESET, 1.0, 0.0, 12.5)
    return observations


def report(**options: bool) -> dict[str, Any]:
    built = build_report(seen(), [Span(61.5), Span(0.25, 3)], **options)
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(built))
    return found


def test_specs_stand_beside_the_whole() -> None:
    found = report()
    assert list(found) == ["perSpecResults", "aggregated"]
    first, second = found["perSpecResults"]
    whole = found["aggregated"]
    assert [part["total"] for part in (first, second, whole)] == [3, 2, 5]
    assert [part["duration"] for part in (first, second, whole)] == ["1m1.5s", "250ms", "1m1.75s"]
    assert [part["unfinished"] for part in (first, second, whole)] == [0, 3, 3]
    assert whole["totalReceivedBytes"] == 3000


def test_the_keys_are_kperfs_and_what_it_lacks() -> None:
    kperfs = {
        *("total", "duration", "errorStats", "totalReceivedBytes"),
        *("percentileLatencies", "percentileLatenciesByURL"),
    }
    ours = {
        *("failed", "unfinished", "percentileServiceLatencies", "percentileFailureLatencies"),
        *("percentileLateness", "errorStatsByURL", "members"),
    }
    assert set(report()["aggregated"]) == kperfs | ours
    assert set(report(raw=True)["aggregated"]) == kperfs | ours | {"errors", "latenciesByURL"}


def test_failures_are_inside_the_percentiles_and_beside_them() -> None:
    first = report()["perSpecResults"][0]
    assert [value for _, value in first["percentileLatencies"]] == [0.5, 0.7, 3.0, 3.0, 3.0, 3.0]
    assert [value for _, value in first["percentileServiceLatencies"]] == [0.4, 0.4, 0.7, 0.7, 0.7, 0.7]
    assert {value for _, value in first["percentileFailureLatencies"]} == {3.0}
    assert [value for _, value in first["percentileLateness"]] == [0.0, 0.1, 1.0, 1.0, 1.0, 1.0]


def test_failures_are_counted_by_kind_and_by_request() -> None:
    whole = report()["aggregated"]
    stats = {"http/500": 2, "connection/connection reset by peer": 1}
    assert whole["failed"] == 3
    assert whole["errorStats"] == stats
    assert whole["errorStatsByURL"] == {"GET /api/v1/nodes/a": stats}


def test_requests_are_told_apart_by_method_and_url() -> None:
    by_url = report()["aggregated"]["percentileLatenciesByURL"]
    assert {name: [value for _, value in found] for name, found in by_url.items()} == {
        "GET /api/v1/nodes/a": [1.0, 2.0, 3.0, 3.0, 3.0, 3.0],
        "LIST /api/v1/pods": [0.5, 0.5, 0.7, 0.7, 0.7, 0.7],
    }


def test_members_are_told_apart() -> None:
    members = report()["aggregated"]["members"]
    assert {name: (own["total"], own["failed"]) for name, own in members.items()} == {
        "no member": (1, 1),
        "member-0": (2, 1),
        "member-1": (2, 1),
    }
    assert members["member-1"]["errorStats"] == {"http/500": 1}
    assert members["member-1"]["percentileLatencies"][-1] == [1.0, 3.0]
    assert list(members["member-0"]["percentileLatenciesByURL"]) == [
        "GET /api/v1/nodes/a",
        "LIST /api/v1/pods",
    ]


def test_raw_data_are_every_latency_and_every_failure_in_the_order_of_time() -> None:
    whole = report(raw=True)["aggregated"]
    assert whole["latenciesByURL"]["LIST /api/v1/pods"] == [0.5, 0.7]
    assert [(error["type"], error["code"], error["message"]) for error in whole["errors"]] == [
        ("connection", 0, "connection reset by peer"),
        ("http", 500, ""),
        ("http", 500, ""),
    ]
    assert whole["errors"][0] == {
        "method": "GET",
        "url": "/api/v1/nodes/a",
        "timestamp": "1970-01-01T00:00:12.500000Z",
        "duration": 1.0,
        "type": "connection",
        "code": 0,
        "message": "connection reset by peer",
    }


def test_a_run_that_saw_nothing_has_a_report() -> None:
    found = msgspec.json.decode(msgspec.json.encode(build_report(Observations(), [Span()])))
    assert found["aggregated"]["percentileLatencies"] is None
    assert found["aggregated"]["total"] == 0


def test_what_one_process_takes_another_puts_together() -> None:
    whole, first, second = Observations(), seen(), seen()
    whole.put(first.take())
    whole.put(second.take())
    assert len(whole) == 10
    assert len(first) == 0
    assert first.take() == []
    assert build_report(whole, [Span(), Span()]).aggregated.total_received_bytes == 6000
