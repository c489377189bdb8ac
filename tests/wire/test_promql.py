"""Prometheus' query API: the request's path, and what an answer says."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from harness.wire.promql import (
    QueryFailed,
    VectorSample,
    parse_error,
    parse_path,
    query_path,
    range_of,
    read_vector,
)


def vector(*elements: dict[str, object]) -> bytes:
    return json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": elements}, "warnings": ["w"]}
    ).encode()


def test_a_query_and_its_time_stand_in_the_path() -> None:
    url = urlsplit(query_path('sum(a{b="c d"}[5m]) + 1', 1_800_000_000.25))
    assert url.path == "/api/v1/query"
    assert parse_qs(url.query) == {"query": ['sum(a{b="c d"}[5m]) + 1'], "time": ["1800000000.250"]}
    assert parse_qs(urlsplit(parse_path("a+b")).query) == {"query": ["a+b"]}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "1s"), (0.9, "1s"), (1, "1s"), (61.99, "61s"), (3600, "3600s")]
)
def test_ranges_are_whole_seconds(seconds: float, text: str) -> None:
    assert range_of(seconds) == text


def test_samples_have_labels_value_and_time() -> None:
    body = vector({"metric": {"a": "b"}, "value": [12.5, "1e3"]}, {"value": [12.5, "+Inf"]})
    assert read_vector(200, body) == [
        VectorSample({"a": "b"}, 1000.0, 12.5),
        VectorSample({}, float("inf"), 12.5),
    ]


def test_what_is_no_number_is_left_out_and_so_is_a_native_histogram() -> None:
    body = vector(
        {"metric": {"a": "1"}, "value": [1, "NaN"]},
        {"metric": {"a": "2"}, "histogram": [1, {"count": "3"}]},
        {"metric": {"a": "3"}, "value": [1, "4"]},
    )
    assert [sample.labels["a"] for sample in read_vector(200, body)] == ["3"]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, b'{"status":"error","errorType":"bad_data","error":"parse error"}', "bad_data: parse error"),
        (
            503,
            b'{"status":"error","errorType":"timeout","error":"query timed out"}',
            "timeout: query timed out",
        ),
        (
            502,
            b"<html>Bad\n Gateway</html>",
            "HTTP 502, not an answer of Prometheus: '<html>Bad Gateway</html>'",
        ),
        (200, b"{}", "HTTP 200"),
        (
            200,
            b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}',
            "a scalar, not an instant",
        ),
        (
            200,
            b'{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"x"]}]}}',
            "cannot be read",
        ),
        (200, b'{"status":"success","data":{"resultType":"vector","result":3}}', "cannot be read"),
    ],
)
def test_an_answer_without_a_vector_is_told_in_words(status: int, body: bytes, said: str) -> None:
    with pytest.raises(QueryFailed) as caught:
        read_vector(status, body)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"status":"error","errorType":"bad_data","error":"unclosed"}', "unclosed"),
        (b'{"status":"success","data":"a + b"}', ""),
        (b'{"status":"error","errorType":"not_found","error":"no such path"}', ""),
        (b"404 page not found", ""),
    ],
)
def test_only_bad_data_says_that_an_expression_is_wrong(body: bytes, said: str) -> None:
    assert parse_error(body) == said
