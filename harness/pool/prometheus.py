"""A Prometheus of the run's own: where the binary is, what it scrapes, how it is started and ended.

It scrapes each member as the run's own scraper does, with the job and the recording rules of upstream's Prometheus
(cl2/pkg/prometheus/manifests: master-ip/master-serviceMonitor.yaml, prometheus-rules.yaml), so that upstream's queries
find what they ask for. It listens on this machine alone. Its data stay in the run's record; the token that it shows
lies in a private folder, and no secret stands in its configuration or its arguments.
"""

from __future__ import annotations

import http.client
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from harness.clusterloader.measurements.sloqueries import BY, RECORDED, RECORDED_OF
from harness.observe.scraper import Source
from harness.pool.certificates import write_private
from harness.pool.guardian import Guarded
from harness.pool.ports import HOST, free_ports
from harness.pool.process import Process, ProcessFailed
from harness.wire.errors import ConfigError

READY_WITHIN_S = 30.0
JOB, ENDPOINT = "master", "apiserver"
"""As upstream's targets are labelled."""
RULES_EVERY_S = 30
"""The Prometheus operator's default, which upstream's rules are evaluated at."""
_RULE_WINDOW = "1m"
_QUANTILES = ("0.99", "0.90", "0.50")
_LOOK_EVERY_S = 0.05
_TOKEN = "token"  # noqa: S105  # a file's name


def find_prometheus(explicit: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """The path of a binary: the one named, else TEST_ASSET_PROMETHEUS, else the first on PATH; "" where there is none.
    Raises ConfigError for one that is named and cannot be run."""
    for source, path in (
        ("--prometheus", explicit),
        ("TEST_ASSET_PROMETHEUS", environ.get("TEST_ASSET_PROMETHEUS", "")),
    ):
        if path and not (os.path.isfile(path) and os.access(path, os.X_OK)):
            raise ConfigError(f"prometheus: {path}, of {source}, is no executable file")
        if path:
            return path
    return shutil.which("prometheus", path=environ.get("PATH")) or ""


class PrometheusServer:
    """`folder` gets its configuration and its data, `secrets` the token's file; both must be there."""

    def __init__(
        self,
        binary: str,
        sources: Sequence[Source],
        folder: Path,
        secrets: Path,
        log: Path,
        *,
        interval_s: float = 5.0,
        on_exit: Callable[[Process, int], None] | None = None,
    ) -> None:
        """Raises ConfigError for members that no Prometheus can scrape."""
        headers = [name for source in sources for name, _ in source.headers]
        if headers:
            raise ConfigError(
                f"prometheus: the members want the header {headers[0]}, which it cannot send; give --prometheus-url of "
                "one that scrapes them, or --prometheus none"
            )
        self._binary = binary
        self._sources = sources
        self._folder = folder
        self._secrets = secrets
        self._log = log
        self._interval_s = interval_s
        self._on_exit = on_exit
        self._process: Process | None = None
        self._port = free_ports(1)[0]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """Of Prometheus itself, once it is started."""
        return 0 if self._process is None else int(self._process.ready["pid"])

    def start(self) -> None:
        """Blocks until it is ready to be asked. Raises ConfigError or ProcessFailed, with all stopped."""
        (self._folder / "rules.yml").write_text(yaml.safe_dump(rules(), sort_keys=False))
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(self._configuration(), sort_keys=False))
        self.use_token(self._sources[0].token)
        process = self._process = Process(
            "prometheus",
            "harness.pool.guardian",
            Guarded(self._arguments()),
            self._log,
            on_exit=self._on_exit,
        )
        try:
            process.wait_ready()
            self._wait_ready(process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Safe to call twice."""
        if self._process is not None:
            self._process.stop()

    def use_token(self, token: str) -> None:
        """Show this one from the next scrape on."""
        if token:
            path = self._secrets / _TOKEN
            partial = path.with_suffix(".partial")
            write_private(partial, token.encode())
            partial.replace(path)

    def describe(self) -> dict[str, Any]:
        return {"binary": self._binary, "data": str(self._folder / "data"), "interval_s": self._interval_s}

    def _arguments(self) -> list[str]:
        arguments = {
            "config.file": self._folder / "prometheus.yml",
            "storage.tsdb.path": self._folder / "data",
            "web.listen-address": f"{HOST}:{self._port}",
        }
        return [self._binary, *(f"--{name}={value}" for name, value in arguments.items())]

    def _configuration(self) -> dict[str, Any]:
        every = f"{round(self._interval_s * 1000)}ms"
        return {
            "global": {
                "scrape_interval": every,
                "scrape_timeout": every,
                "evaluation_interval": f"{RULES_EVERY_S}s",
            },
            "rule_files": ["rules.yml"],
            "scrape_configs": [scrape_config(self._sources, self._secrets / _TOKEN)],
        }

    def _wait_ready(self, process: Process) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while not self._is_ready():
            if not process.alive or time.monotonic() > deadline:
                why = f"not ready within {READY_WITHIN_S:g} s" if process.alive else "ended"
                raise ProcessFailed(
                    f"prometheus {self._binary}: {why}; its log {self._log} ends: {process.tail()}"
                )
            time.sleep(_LOOK_EVERY_S)

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=2)
        try:
            connection.request("GET", "/-/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def scrape_config(sources: Sequence[Source], token: Path) -> dict[str, Any]:
    """How the members of one target are scraped: alike, but for their addresses."""
    first, url = sources[0], urlsplit(sources[0].url)
    found: dict[str, Any] = {
        "job_name": JOB,
        "scheme": url.scheme,
        "metrics_path": url.path.rstrip("/") + "/metrics",
        "static_configs": [
            {
                "targets": [urlsplit(source.url).netloc],
                "labels": {"member": source.member, "endpoint": ENDPOINT},
            }
            for source in sources
        ],
    }
    if first.token:
        found["authorization"] = {"credentials_file": str(token)}
    if url.scheme == "https":
        files = {"ca_file": first.ca_file, "cert_file": first.cert_file, "key_file": first.key_file}
        if first.cert_file and not first.key_file:
            files["key_file"] = first.cert_file  # one file has both
        found["tls_config"] = {
            **{name: str(Path(path).resolve()) for name, path in files.items() if path},
            **({"server_name": first.server_name} if first.server_name else {}),
            **({} if first.ca_file else {"insecure_skip_verify": True}),
        }
    if first.proxy:
        found["proxy_url"] = first.proxy
    return found


def rules() -> dict[str, Any]:
    """The recording rules that upstream's measurements of apiservers look at: quantiles minute by minute."""
    return {
        "groups": [
            {
                "name": "apiserver",
                "rules": [
                    {
                        "record": RECORDED,
                        "expr": f"histogram_quantile({float(quantile):g}, "
                        f"sum(rate({RECORDED_OF}_bucket[{_RULE_WINDOW}])) by ({BY}))",
                        "labels": {"quantile": quantile},
                    }
                    for quantile in _QUANTILES
                ],
            }
        ]
    }
