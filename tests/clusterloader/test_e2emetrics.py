"""A /metrics as MetricsForE2E's file has it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from harness.clusterloader.e2emetrics import Scraped, collect, text_of


def scraped(member: str, name: str, value: float, **labels: str) -> Scraped:
    return Scraped(member, {"__name__": name, **labels}, value)


def written(*found: Scraped) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(collect(found)))
    return content


def test_samples_stand_under_their_metrics_name_as_go_writes_them() -> None:
    found = written(
        scraped("m", "b_total", 3.0, verb="GET", code="200"),
        scraped("m", "a", 0.25),
        scraped("m", "b_total", 1.0, verb="PUT", code="200"),
    )
    assert found["APIServerMetrics"] == {
        "a": [{"metric": {"__name__": "a"}, "value": [0, "0.25"]}],
        "b_total": [
            {"metric": {"__name__": "b_total", "code": "200", "verb": "GET"}, "value": [0, "3"]},
            {"metric": {"__name__": "b_total", "code": "200", "verb": "PUT"}, "value": [0, "1"]},
        ],
    }


def test_what_is_not_asked_is_as_upstream_leaves_it() -> None:
    found = written(scraped("m", "a", 1.0))
    assert list(found) == [
        "APIServerMetrics",
        "ControllerManagerMetrics",
        "KubeletMetrics",
        "SchedulerMetrics",
        "ClusterAutoscalerMetrics",
    ]
    assert found["KubeletMetrics"] == {}
    assert found["SchedulerMetrics"] is found["ControllerManagerMetrics"] is None


def test_several_members_are_told_apart_by_a_label() -> None:
    found = written(scraped("m-0", "a", 1.0), scraped("m-1", "a", 2.0))["APIServerMetrics"]["a"]
    assert [(item["metric"]["member"], item["value"][1]) for item in found] == [("m-0", "1"), ("m-1", "2")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (100.0, "100"),
        (-1.5, "-1.5"),
        (1e-05, "0.00001"),
        (1.7e9, "1700000000"),
        (1e22, "10000000000000000000000"),
        (0.1 + 0.2, "0.30000000000000004"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_a_value_has_no_exponent(value: float, text: str) -> None:
    assert text_of(value) == text
