"""GenericPrometheusQuery: what is asked, the table that comes of it, thresholds."""

from __future__ import annotations

from typing import Any

import pytest

from harness.clusterloader.messages import Queried
from harness.wire.errors import ConfigError
from tests.clusterloader.conftest import Write
from tests.clusterloader.fake import EPOCH_S, FakeCluster
from tests.clusterloader.promql import HEAD, FakePrometheus, between, measured

METHOD = "GenericPrometheusQuery"
HEADED = "metricName: Some Metric, metricVersion: v1, unit: ms"


def asked(queries: str, *, gather: str = "", dimensions: str = "") -> str:
    return between(METHOD, f"{HEADED}, dimensions: [{dimensions}], queries: [{queries}]", gather)


def result(cluster: FakeCluster) -> dict[str, Any]:
    (note,) = cluster.of("measurement")
    return note


def test_every_placeholder_is_the_time_from_start_to_gather(write: Write) -> None:
    prometheus = FakePrometheus()
    measured(write, asked("{name: q, query: 'a[%v] + b[%v:5s]'}"), prometheus)
    (query,) = prometheus.asked
    assert query.expression == "a[90s] + b[90s:5s]"
    assert query.at_s == pytest.approx(EPOCH_S + 90, abs=1)


def test_one_row_for_each_set_of_dimensions_one_column_for_each_query(write: Write) -> None:
    prometheus = FakePrometheus(
        {
            "p99": [({"resource": "pods", "x": "1"}, 9.0), ({"resource": "leases"}, 8.0)],
            "max": [({"resource": "pods"}, 10.0)],
        }
    )
    text = asked("{name: Perc99, query: p99}, {name: Max, query: max}", dimensions="resource, group")
    cluster, failures, violations = measured(write, text, prometheus)
    assert (failures, violations) == ([], [])
    note = result(cluster)
    assert note["name"] == "GenericPrometheusQuery Some Metric"
    assert note["summary"] == {
        "version": "v1",
        "dataItems": [
            {"data": {"Perc99": 8.0}, "unit": "ms", "labels": {"resource": "leases", "group": ""}},
            {"data": {"Perc99": 9.0, "Max": 10.0}, "unit": "ms", "labels": {"resource": "pods", "group": ""}},
        ],
    }
    assert note["values"]["Perc99 (pods, )"] == 9.0


LIMITS = [
    ("threshold: 5", 5.0, ""),
    ("threshold: 5", 5.1, "q: sample above threshold: got 5.1, allowed is at most 5"),
    ("threshold: 5, lowerBound: true", 5.0, ""),
    ("threshold: 5, lowerBound: true", 4.9, "q: sample below threshold: got 4.9, allowed is at least 5"),
    ("threshold: 0", 0.1, "q: sample above threshold: got 0.1, allowed is at most 0"),
    ("lowerBound: true", 1e9, ""),
]


@pytest.mark.parametrize(("limit", "value", "said"), LIMITS)
def test_thresholds(write: Write, limit: str, value: float, said: str) -> None:
    text = asked(f"{{name: q, query: q, {limit}}}", gather="enableViolations: true")
    _, failures, violations = measured(write, text, FakePrometheus({"q": [({}, value)]}))
    assert failures == []
    assert violations == ([f"{METHOD} - id: Some Metric: {said}"] if said else [])


def test_without_enable_violations_a_threshold_that_is_missed_is_a_warning(write: Write) -> None:
    text = asked("{name: q, query: q, threshold: 1}")
    cluster, _, violations = measured(write, text, FakePrometheus({"q": [({}, 2.0)]}))
    assert violations == []
    (warning,) = cluster.of("warning")
    assert "sample above threshold: got 2" in warning["message"]
    assert "enableViolations is not set" in warning["message"]


def test_a_second_sample_of_one_row_is_refused_and_the_first_stays(write: Write) -> None:
    text = asked("{name: q, query: q}", dimensions="d", gather="enableViolations: true")
    prometheus = FakePrometheus({"q": [({"d": "a", "i": "1"}, 1.0), ({"d": "a", "i": "2"}, 2.0)]})
    cluster, _, violations = measured(write, text, prometheus)
    assert violations == [f"{METHOD} - id: Some Metric: q: too many samples of a: 1 and 2, expected one"]
    assert result(cluster)["summary"]["dataItems"][0]["data"] == {"q": 1.0}


def test_a_query_that_must_have_samples(write: Write) -> None:
    text = asked("{name: q, query: q, requireSamples: true}", gather="enableViolations: true")
    _, _, violations = measured(write, text, FakePrometheus())
    assert violations == [f"{METHOD} - id: Some Metric: q: query returned no samples for Some Metric"]


def test_where_no_query_has_samples_it_is_skipped_aloud(write: Write) -> None:
    cluster, failures, violations = measured(
        write, asked("{name: q, query: q}, {name: r, query: r}"), FakePrometheus()
    )
    assert (failures, violations) == ([], [])
    (skipped,) = cluster.of("skipped-measurement")
    assert skipped["reason"] == "Prometheus has no samples of Some Metric (q, r)"
    assert result(cluster)["summary"]["dataItems"] == []
    parts = [part["skipped"] for note in cluster.of("step-finished") for part in note["parts"]]
    assert parts == ["", "", skipped["reason"]]


def test_a_run_without_prometheus_skips_it_with_the_remedy(write: Write) -> None:
    cluster, failures, _ = measured(write, asked("{name: q, query: q}"), None)
    assert failures == []
    (skipped,) = cluster.of("skipped-measurement")
    assert "--prometheus-url" in skipped["reason"]
    assert cluster.of("measurement") == []
    parts = [part["skipped"] for note in cluster.of("step-finished") for part in note["parts"]]
    assert parts == [skipped["reason"], "", skipped["reason"]]


def test_a_clouds_managed_prometheus_is_not_asked(write: Write) -> None:
    text = between(METHOD, f"prometheusClient: managed, {HEADED}, queries: []", "prometheusClient: managed")
    prometheus = FakePrometheus()
    cluster, failures, _ = measured(write, text, prometheus)
    assert (failures, prometheus.asked) == ([], [])
    assert "managed" in cluster.of("skipped-measurement")[0]["reason"]


def test_another_client_fails(write: Write) -> None:
    text = between(METHOD, f"prometheusClient: mine, {HEADED}", "prometheusClient: mine")
    _, failures, _ = measured(write, text, FakePrometheus())
    assert "params.prometheusClient: 'mine' is not allowed" in failures[0]


def test_gather_without_start_fails(write: Write) -> None:
    text = (
        f"- {{name: e, measurements: [{{method: {METHOD}, identifier: id, params: {{action: gather}}}}]}}\n"
    )
    _, failures, _ = measured(write, text, FakePrometheus())
    assert failures == [
        (
            "[step: 01] e: measurement call GenericPrometheusQuery - id error: "
            "GenericPrometheusQuery has not been started"
        )
    ]


def test_a_query_that_prometheus_refuses_fails_at_once_in_its_words(write: Write) -> None:
    refusal = b'{"status":"error","errorType":"bad_data","error":"parse error"}'
    prometheus = FakePrometheus({"q": Queried(number=0, status=400, body=refusal)})
    _, failures, _ = measured(write, asked("{name: q, query: sum(q}"), prometheus)
    assert failures == [
        (
            "[step: 03] end: measurement call GenericPrometheusQuery - id error: "
            "Prometheus: bad_data: parse error (query: sum(q)"
        )
    ]
    assert len(prometheus.asked) == 1


def test_one_that_gets_no_answer_is_asked_again_for_a_minute(write: Write) -> None:
    gone = Queried(number=0, error="connection refused: nobody listens")
    prometheus = FakePrometheus({"q": gone})
    cluster, failures, _ = measured(write, asked("{name: q, query: q}"), prometheus)
    assert "Prometheus: connection refused: nobody listens (query: q)" in failures[0]
    assert 12 <= len(prometheus.asked) <= 13
    (end,) = [note for note in cluster.of("step-finished") if note["name"] == "end"]
    assert 55 <= end["seconds"] <= 60


@pytest.mark.parametrize("status", [429, 500, 503])
def test_one_that_is_busy_is_asked_again(write: Write, status: int) -> None:
    busy = Queried(number=0, status=status, body=b"busy")
    fine = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"7"]}]}}'
    prometheus = FakePrometheus({"q": [busy, Queried(number=0, status=200, body=fine)]})
    cluster, failures, _ = measured(write, asked("{name: q, query: q}"), prometheus)
    assert (failures, len(prometheus.asked)) == ([], 2)
    assert result(cluster)["values"]["q"] == 7.0


def test_keys_are_read_in_any_case_and_a_unit_may_be_missing(write: Write) -> None:
    text = between(METHOD, "MetricName: m, metricversion: v2, Queries: [{Name: q, QUERY: q, Threshold: 3}]")
    cluster, failures, _ = measured(write, text, FakePrometheus({"q": [({}, 1.0)]}))
    assert failures == []
    assert result(cluster)["summary"]["version"] == "v2"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ("metricVersion: v1, unit: s", "params.metricName: missing; it is required"),
        ("metricName: m, unit: s", "params.metricVersion: missing; it is required"),
        (f"{HEADED}, queries: [{{query: q}}]", "params.queries[0].name: missing; it is required"),
        (
            f"{HEADED}, queries: [{{name: a, query: q}}, {{name: q}}]",
            "params.queries[1].query: missing; it is required",
        ),
        (
            f"{HEADED}, queries: [{{name: a, query: q, threshold: x}}]",
            "params.queries[0].threshold: expected",
        ),
        (f"{HEADED}, queries: q", "params.queries: expected `array`"),
        (f"{HEADED}, queries: [{{name: a, query: q, treshold: 1}}]", "did you mean threshold?"),
    ],
)
def test_a_mistake_is_found_before_anything_runs(write: Write, params: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        write(HEAD + between(METHOD, params))
    assert said in str(caught.value)
    assert "config.yaml:5: steps[0].measurements[0] (GenericPrometheusQuery): " in str(caught.value)
