"""What is counted of requests and samples, and under which names."""

from __future__ import annotations

from typing import Any

import pytest

from harness.client.machine import Sample
from harness.load.statistics import Statistics, verb_of
from harness.observe.histogram import bucket_of
from harness.wire.request import Request

GET = Request("get", "GET", "/api/v1/nodes/swarmlet-0-7", "nodes")
WATCHLIST = Request("watch", "GET", "/api/v1/pods?sendInitialEvents=true&watch=true", "pods")


@pytest.fixture
def fired() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def statistics(fired: list[dict[str, Any]]) -> Statistics:
    return Statistics(lambda **fields: fired.append(fields))


def test_a_watch_with_initial_events_is_a_watchlist() -> None:
    assert verb_of(WATCHLIST) == "watchlist"
    assert verb_of(Request("watch", "GET", "/api/v1/pods?watch=true", "pods")) == "watch"
    assert verb_of(GET) == "get"


def test_requests_are_counted_by_user_verb_name_code_member_and_time(statistics: Statistics) -> None:
    for seconds in (0.010, 0.010, 0.5):
        statistics.request("kubelet", GET, 200, "member-0", seconds, 10)
    statistics.request("kubelet", GET, 200, "member-1", 0.010, 10)
    rows = sorted(row[1:] for row in statistics.take())
    assert rows == [
        ("kubelet", "get", "nodes", 200, "member-0", bucket_of(10_000), 2),
        ("kubelet", "get", "nodes", 200, "member-0", bucket_of(500_000), 1),
        ("kubelet", "get", "nodes", 200, "member-1", bucket_of(10_000), 1),
    ]


def test_what_was_taken_is_not_given_again(statistics: Statistics) -> None:
    statistics.request("kubelet", GET, 200, "member-0", 0.01, 10)
    statistics.sample("kubelet", Sample("x_ms", 1.0))
    assert len(statistics.take()) == 1
    assert len(statistics.take_samples()) == 1
    assert statistics.take() == []
    assert statistics.take_samples() == []


def test_locust_hears_of_each_request_in_milliseconds_and_never_of_an_objects_name(
    statistics: Statistics, fired: list[dict[str, Any]]
) -> None:
    statistics.request("kubelet", WATCHLIST, 200, "member-0", 0.25, 7)
    assert fired == [
        {
            "request_type": "WATCHLIST",
            "name": "pods",
            "response_time": 250.0,
            "response_length": 7,
            "exception": None,
            "context": {},
        }
    ]


@pytest.mark.parametrize(
    ("code", "error", "text"), [(404, "", "HTTP 404"), (0, "timed out", "timed out"), (399, "", None)]
)
def test_refusals_and_missing_answers_are_failures(
    statistics: Statistics, fired: list[dict[str, Any]], code: int, error: str, text: str | None
) -> None:
    statistics.request("kubelet", GET, code, "member-0", 0.25, 7, error)
    exception = fired[0]["exception"]
    assert (None if exception is None else str(exception)) == text


def test_samples_are_kept_in_microseconds_by_their_labels(statistics: Statistics) -> None:
    sample = Sample("startup_ms", 5.0, (("from", "create"), ("to", "running")))
    statistics.sample("clusterloader", sample)
    statistics.sample("clusterloader", sample)
    (row,) = statistics.take_samples()
    assert row[1:] == ("clusterloader", "startup_ms", "from=create,to=running", bucket_of(5000), 2)
