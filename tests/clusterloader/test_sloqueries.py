"""The SLO of API calls by upstream's queries, beside what we compute ourselves of the same histograms.

The answers are a real Prometheus' (2.42), recorded: it was given `histories` and upstream's recording rules, and asked
these queries.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.clusterloader import slo
from harness.clusterloader.measurements import sloqueries
from harness.clusterloader.messages import Queried
from harness.wire.promql import VectorSample
from tests.clusterloader.conftest import Write
from tests.clusterloader.fake import FakeCluster
from tests.clusterloader.histories import SINCE_S, UNTIL_S, histories
from tests.clusterloader.promql import FakePrometheus, between, measured
from tests.conftest import DATA

ANSWERS: dict[str, list[Any]] = json.loads((DATA / "prometheus" / "slo-answers.json").read_text())
METHOD = "APIResponsivenessPrometheus"


class Recorded:
    """A window whose vectors were recorded; a query that was not is an error."""

    since_s, until_s = SINCE_S, UNTIL_S
    range = "600s"

    async def vector(self, expression: str, at_s: float | None = None) -> list[VectorSample]:
        return [
            VectorSample(labels, value, UNTIL_S) for labels, value in ANSWERS[expression] if value == value
        ]


def asked(simple: bool) -> list[slo.Latency]:
    coroutine = sloqueries.latencies(Recorded(), simple=simple)  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    found: list[slo.Latency] = ended.value.value
    return found


def computed(simple: bool) -> dict[slo.Call, slo.Latency]:
    series = [item for items in histories(0.0).values() for item in items]
    return {item.call: item for item in slo.latencies(series, SINCE_S, UNTIL_S, simple=simple)}


@pytest.mark.parametrize("simple", [True, False])
def test_prometheus_and_we_find_the_same(simple: bool) -> None:
    """But for what Prometheus extrapolates to the window's ends, which is a percent of the counts here."""
    theirs, ours = asked(simple), computed(simple)
    assert {item.call for item in theirs} == set(ours)
    assert len(theirs) == 5
    for item in theirs:
        own = ours[item.call]
        assert item.calls == pytest.approx(own.calls, rel=0.01), item
        assert item.slow == pytest.approx(own.slow, rel=0.01), item
        if item.call.verb == "WATCHLIST" and not simple:  # the recording rule has no watch lists
            continue
        assert item[1:4] == pytest.approx(own[1:4], rel=0.001), item


def test_each_order_is_the_slowest_first() -> None:
    assert [item.call.resource for item in asked(True)] == [item.resource for item in computed(True)]


def test_both_miss_the_same_thresholds() -> None:
    limits = slo.Limits(enforced=True)
    theirs = slo.violations(asked(True), limits)
    ours = slo.violations(computed(True).values(), limits)
    assert [text.partition(" of ")[0] for text in theirs] == [text.partition(" of ")[0] for text in ours]
    assert [text.partition(":")[0] for text in theirs] == [
        "LIST nodes (scope cluster)",
        "POST pods (scope resource)",
    ]


# ---- within a test ---------------------------------------------------------------------------------------------------
LATENCIES = {
    r"quantile\(0\.99, sum\(rate\(apiserver_request_sli": [
        ({"verb": "POST", "resource": "pods", "scope": "resource"}, 1.25)
    ],
    r"increase\(apiserver_request_sli_duration_seconds_count": [
        ({"verb": "POST", "resource": "pods", "scope": "resource"}, 99.6)
    ],
    'verb!~"WATCH': [({"verb": "POST", "resource": "pods", "scope": "resource"}, 97.4)],
}
SIMPLE = "useSimpleLatencyQuery: true, enableViolations: true, summaryName: named"


def windows(cluster: FakeCluster) -> list[tuple[str, bool]]:
    return [(note["limits"]["name"], note["limits"]["enforced"]) for note in cluster.of("slo-window")]


def test_with_a_prometheus_its_answer_is_the_summary_and_our_own_stands_beside(write: Write) -> None:
    cluster, failures, violations = measured(write, between(METHOD, "", SIMPLE), FakePrometheus(LATENCIES))
    assert failures == []
    assert violations == [
        f"{METHOD} - id: top latency metric: POST pods (scope resource): perc99 1.250s of 100 calls, allowed are 1s"
    ]
    (note,) = cluster.of("measurement")
    assert note["name"] == "named"
    (item,) = note["summary"]["dataItems"]
    assert (item["data"]["Perc99"], item["labels"]["Count"], item["labels"]["SlowCount"]) == (
        1250.0,
        "100",
        "3",
    )
    assert windows(cluster) == [("named_scraped", False)]


def test_slow_calls_may_be_allowed(write: Write) -> None:
    text = between(METHOD, "", f"{SIMPLE}, allowedSlowCalls: 3")
    assert measured(write, text, FakePrometheus(LATENCIES))[2] == []


def test_without_a_prometheus_the_record_is_asked(write: Write) -> None:
    cluster, failures, _ = measured(write, between(METHOD, "", SIMPLE), None)
    assert failures == []
    assert windows(cluster) == [("named", True)]


@pytest.mark.parametrize(("gather", "lacking"), [(SIMPLE, "histograms"), ("", "recording rule apiserver:")])
def test_a_prometheus_that_knows_nothing_of_the_members_leaves_it_to_the_record(
    write: Write, gather: str, lacking: str
) -> None:
    cluster, failures, _ = measured(write, between(METHOD, "", gather), FakePrometheus())
    assert failures == []
    assert cluster.of("measurement") == []
    assert lacking in cluster.of("warning")[0]["message"]
    assert windows(cluster)[0][0] in ("named", METHOD)


def test_a_prometheus_that_is_gone_fails_the_call_and_the_record_has_the_figures(write: Write) -> None:
    gone = FakePrometheus({"": Queried(number=0, error="connection refused: nobody")})
    cluster, failures, _ = measured(write, between(METHOD, "", SIMPLE), gone)
    assert "Prometheus: connection refused: nobody" in failures[0]
    assert windows(cluster) == [("named", True)]
