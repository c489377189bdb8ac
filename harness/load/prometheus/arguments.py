"""The options of a run that say which Prometheus answers its queries."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from harness.wire.errors import ConfigError

AUTO, NONE = "auto", "none"


class PrometheusOptions(msgspec.Struct, frozen=True):
    """`url` is of one that is there, "" for none; `http_config` is the path of a file with its credentials. `binary` is
    the path of one to start; "auto" starts what is found where the scenario has queries, "none" never."""

    url: str = ""
    http_config: str = ""
    binary: str = AUTO


def add_prometheus_arguments(add: Callable[..., None]) -> None:
    """`add(flag, **keywords)` adds one, as argparse does."""
    add(
        "--prometheus-url",
        default="",
        metavar="URL",
        help="Prometheus that scrapes the target, for measurements in PromQL; may have a path prefix",
    )
    add(
        "--prometheus-http-config",
        default="",
        metavar="FILE",
        help="its credentials and TLS, in the format of promtool's --http.config.file",
    )
    add(
        "--prometheus",
        default=AUTO,
        metavar="auto|none|BINARY",
        help="binary to start for the run; auto: TEST_ASSET_PROMETHEUS or the one on PATH, where the scenario has "
        "measurements in PromQL",
    )


def prometheus_options(parsed: argparse.Namespace) -> PrometheusOptions:
    """Raises ConfigError."""
    url, binary = parsed.prometheus_url, parsed.prometheus
    if url:
        _check(url)
        if binary not in (AUTO, NONE):
            raise ConfigError(
                f"--prometheus {binary} and --prometheus-url {url}: only one of the two can be asked"
            )
    elif parsed.prometheus_http_config:
        raise ConfigError(
            f"--prometheus-http-config {parsed.prometheus_http_config} is of no use without --prometheus-url"
        )
    return PrometheusOptions(url, parsed.prometheus_http_config, binary)


def _check(text: str) -> None:
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        plain = not (url.query or url.fragment)
    except ValueError:  # a port that is no number, or none that there is
        raise ConfigError(f"--prometheus-url {text}: expected http[s]://HOST[:PORT][/PREFIX]") from None
    if (
        url.username is not None or url.password is not None
    ):  # it would stand in the record and in the process list
        raise ConfigError(
            "--prometheus-url: holds a user or a password; give these by --prometheus-http-config"
        )
    if not (usable and plain):
        raise ConfigError(f"--prometheus-url {text}: expected http[s]://HOST[:PORT][/PREFIX]")
