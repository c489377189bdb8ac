"""The SLO of API calls from histograms, against figures worked out by hand as PromQL does."""

from __future__ import annotations

import math

import pytest

from harness.clusterloader.series import Series
from harness.clusterloader.slo import (
    Latency,
    Limits,
    custom_limits,
    histogram_quantile,
    latencies,
    perf_data,
    violations,
)

BOUNDS = ("0.1", "0.5", "1", "5", "30", "+Inf")


def histogram(counts: list[float], **labels: str) -> list[Series]:
    """Series that are 0 at time 0 and have `counts` from time 10 on."""
    own = {"resource": "pods", "subresource": "", "verb": "POST", "scope": "resource", **labels}
    return [
        Series({**own, "le": bound}, (0.0, 10.0), (0.0, count))
        for bound, count in zip(BOUNDS, counts, strict=True)
    ]


@pytest.mark.parametrize(
    ("q", "seconds"),
    [(0.5, 0.05), (0.9, 0.1 + 0.4 * (90 - 80) / 15), (0.99, 1 + 4 * (99 - 98) / 2), (1.0, 5.0)],
)
def test_a_quantile_is_linear_within_its_bucket(q: float, seconds: float) -> None:
    counts = dict(zip(map(float, BOUNDS), [80.0, 95.0, 98.0, 100.0, 100.0, 100.0], strict=True))
    found = histogram_quantile(q, counts)
    assert found == pytest.approx(seconds if q != 0.5 else 0.1 * 50 / 80)


def test_what_is_above_the_last_bound_is_that_bound() -> None:
    assert histogram_quantile(0.99, {0.1: 0.0, 1.0: 0.0, math.inf: 5.0}) == 1.0
    assert histogram_quantile(0.99, {}) == 0.0
    assert histogram_quantile(0.5, {0.1: 0.0, math.inf: 0.0}) == 0.0


def test_a_counter_that_starts_anew_counts_from_zero() -> None:
    series = Series({"le": "1"}, (0.0, 10.0, 20.0, 30.0), (5.0, 8.0, 2.0, 4.0))
    assert series.increase(0.0, 30.0) == 3 + 2 + 2
    assert series.increase(-1.0, 0.0) == 5
    assert series.increase(10.0, 20.0) == 2
    assert series.increase(30.0, 99.0) == 0


def test_members_are_summed_where_they_are_given_together() -> None:
    fast = histogram([100, 100, 100, 100, 100, 100])
    slow = histogram([0, 0, 0, 100, 100, 100])
    (both,) = latencies([*fast, *slow], 0, 20)
    assert (both.calls, both.slow) == (200, 100)
    assert both.perc50_s == pytest.approx(0.1)
    assert both.perc99_s == pytest.approx(1 + 4 * (198 - 100) / 100)
    (own,) = latencies(fast, 0, 20)
    assert (own.calls, own.slow, own.perc99_s) == (100, 0, pytest.approx(0.099))


def test_watches_and_streams_are_left_out_and_watch_lists_have_a_verb_of_their_own() -> None:
    counts = [1.0] * 6
    series = [
        *histogram(counts, verb="WATCH"),
        *histogram(counts, subresource="log"),
        *histogram(counts, verb="", __name__="apiserver_watch_list_duration_seconds_bucket"),
    ]
    (found,) = latencies(series, 0, 20)
    assert found.call.verb == "WATCHLIST"


def test_a_kind_of_call_that_was_not_made_in_the_time_is_none() -> None:
    assert latencies(histogram([1.0] * 6), 10, 20) == []


@pytest.mark.parametrize(
    ("verb", "scope", "slow"), [("GET", "resource", 30), ("LIST", "namespace", 20), ("LIST", "cluster", 10)]
)
def test_slow_is_above_1_5_or_30_seconds_by_verb_and_scope(verb: str, scope: str, slow: int) -> None:
    (found,) = latencies(histogram([0, 0, 70, 80, 90, 100], verb=verb, scope=scope), 0, 20)
    assert found.slow == slow


def test_perf_data_is_what_perf_dash_reads() -> None:
    data = perf_data(latencies(histogram([100] * 6), 0, 20))
    assert data.version == "v1"
    (item,) = data.data_items
    assert item.unit == "ms"
    assert item.data == {"Perc50": 50.0, "Perc90": 90.0, "Perc99": pytest.approx(99.0)}
    assert item.labels == {
        "Count": "100",
        "Resource": "pods",
        "Scope": "resource",
        "SlowCount": "0",
        "Subresource": "",
        "Verb": "POST",
    }


def slow_call(scope: str = "resource", seconds: float = 1.5, slow: int = 3) -> Latency:
    (found,) = latencies(histogram([100] * 6, scope=scope), 0, 20)
    return found._replace(perc99_s=seconds, slow=slow)


@pytest.mark.parametrize(
    ("latency", "limits", "missed"),
    [
        (slow_call(), Limits(), True),
        (slow_call(seconds=1.0), Limits(), False),
        (slow_call("cluster"), Limits(), False),
        (slow_call("cluster", 31.0), Limits(), True),
        (slow_call(), Limits(single_resource_s=2.0), False),
        (slow_call(), Limits(allowed_slow_calls=3), False),
        (slow_call(), Limits(allowed_slow_calls=2), True),
        (slow_call(), Limits(custom_s={"pods||POST|resource": 1.6}), False),
        (slow_call("cluster"), Limits(custom_s={"pods||POST|cluster": 1.4}), True),
    ],
)
def test_a_limit_depends_on_scope_and_parameters(latency: Latency, limits: Limits, missed: bool) -> None:
    assert bool(violations([latency], limits)) == missed


def test_a_violation_says_call_figure_and_limit() -> None:
    assert violations([slow_call()], Limits()) == [
        "POST pods (scope resource): perc99 1.500s of 100 calls, allowed are 1s"
    ]


def test_the_windowed_form_takes_the_worst_minutes_after_the_first_five() -> None:
    """One slow minute of ten, the first five left out: nearly all of the 0.99 quantile over time."""
    times = [float(60 * minute) for minute in range(21)]
    total = [100.0 * minute for minute in range(21)]
    fast = [100.0 * minute - (100 if minute > 14 else 0) for minute in range(21)]
    own = {"resource": "pods", "verb": "POST", "scope": "resource"}
    series = [
        Series({**own, "le": "0.1"}, times, fast),
        Series({**own, "le": "1"}, times, total),
        Series({**own, "le": "+Inf"}, times, total),
    ]
    (windowed,) = latencies(series, 0, 1200, simple=False)
    (whole,) = latencies(series, 0, 1200, simple=True)
    assert windowed.perc99_s > 0.9 > 0.2 > whole.perc50_s
    (early,) = latencies(series, 0, 1200 + 0, simple=False)
    assert early == windowed


def test_custom_limits_are_read_from_yaml() -> None:
    text = "- {verb: PUT, resource: leases, subresource: '', scope: namespace, threshold: 500ms}\n"
    assert custom_limits(text) == {"leases||PUT|namespace": 0.5}
    assert custom_limits("") == {}


@pytest.mark.parametrize(
    "text", ["- {verb: PUT}", "a: [", "- {verb: PUT, threshold: 0s}", "- {threshold: soon}"]
)
def test_custom_limits_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        custom_limits(text)
