"""The options that say which Prometheus answers."""

from __future__ import annotations

import argparse

import pytest

from harness.load.prometheus.arguments import PrometheusOptions, add_prometheus_arguments, prometheus_options
from harness.wire.errors import ConfigError


def parse(*arguments: str) -> PrometheusOptions:
    parser = argparse.ArgumentParser()
    add_prometheus_arguments(parser.add_argument)
    return prometheus_options(parser.parse_args(arguments))


def test_without_an_option_one_is_looked_for() -> None:
    assert parse() == PrometheusOptions(url="", http_config="", binary="auto")


@pytest.mark.parametrize("url", ["http://prom:9090", "https://prom", "https://[::1]:9090/tenant/prometheus/"])
def test_urls(url: str) -> None:
    assert parse("--prometheus-url", url, "--prometheus-http-config", "f").url == url


@pytest.mark.parametrize(
    "url",
    [
        "prom:9090",
        "ftp://prom",
        "http://",
        "http://prom:0",
        "http://prom:99999",
        "http://prom:x",
        "http://p?a=b",
        "x",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="expected http") as caught:
        parse("--prometheus-url", url)
    assert url in str(caught.value)


@pytest.mark.parametrize("who", ["user:hunter2@", "user@", ":hunter2@"])
def test_credentials_in_the_url_are_refused_and_not_repeated(who: str) -> None:
    with pytest.raises(ConfigError, match="--prometheus-http-config") as caught:
        parse("--prometheus-url", f"https://{who}prom")
    assert "hunter2" not in str(caught.value)


def test_a_binary_and_a_url_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="only one of the two"):
        parse("--prometheus-url", "http://p", "--prometheus", "/bin/prometheus")
    assert parse("--prometheus-url", "http://p", "--prometheus", "none").binary == "none"


def test_a_config_without_a_url_is_of_no_use() -> None:
    with pytest.raises(ConfigError, match="of no use without --prometheus-url"):
        parse("--prometheus-http-config", "f")
