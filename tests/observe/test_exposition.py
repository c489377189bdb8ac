"""The text format is read as Prometheus reads it, without its time stamps."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from harness.observe.exposition import samples, split


def test_samples_are_those_that_prometheus_clients_parser_finds() -> None:
    registry = CollectorRegistry()
    counter = Counter("requests", "with labels", ["verb", "path"], registry=registry)
    counter.labels("GET", 'a"b\\c d').inc(3)
    Gauge("plain", "without", registry=registry).set(1.5)
    text = generate_latest(registry).decode()
    theirs = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    ours = {}
    for series, value in samples(text):
        name, labels = split(series)
        ours[name, tuple(sorted(labels.items()))] = value
    assert ours == theirs


def test_comments_blank_lines_and_creation_stamps_are_passed_over() -> None:
    text = '# HELP a b\n# TYPE a counter\n\na_total 1\na_created 1.7e9\nb_created{x="y"} 2\nnonsense\n'
    assert list(samples(text)) == [("a_total", 1.0)]


def test_special_values() -> None:
    assert [str(value) for _, value in samples("a NaN\nb +Inf\nc -Inf\n")] == ["nan", "inf", "-inf"]


def test_a_series_without_labels_splits_to_none() -> None:
    assert split("up") == ("up", {})
