"""The scraper of a run: what it is told of members, processes and credentials, and how it ends.

It is a process of its own (`harness.observe.scraper`): reading the members' /metrics takes longer than Locust's loop
may be held up. The target's certificates lie in a private folder until the run ends, not in the record.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.load.plan import Target
from harness.observe.scraper import More, Plan, Source
from harness.pool import folders
from harness.pool.process import Process
from harness.wire.pace import REAL, Pace

_ENDS_WITHIN_S = 20.0


class Scraping:
    """`record` is the run's folder; `on_exit` is called with the process and its code when it ends unasked, and
    `on_scraped` with what it says of each round (`observe.digest.Scraped`). Times are at `pace`."""

    def __init__(
        self,
        record: Path,
        interval_s: float,
        on_exit: Callable[[Process, int], None],
        on_scraped: Callable[[Mapping[str, Any]], None],
        pace: Pace = REAL,
    ) -> None:
        self._record = record
        self._interval_s = interval_s
        self._on_exit = on_exit
        self._on_scraped = on_scraped
        self._pace = pace
        self.sources: list[Source] = []
        """The members, once it is started."""
        self._process: Process | None = None
        self._secrets: tempfile.TemporaryDirectory[str] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    def start(self, target: Target, processes: Mapping[str, int], stores: Sequence[Source] = ()) -> None:
        """Scrape the target's members and `stores`, members of etcd; watch `processes`, name to pid, and the scraper
        itself."""
        self.sources = self._sources(target)
        plan = Plan(
            str(self._record), self.sources, self._interval_s, dict(processes), self._pace, list(stores)
        )
        log = self._record / "logs" / "scraper.log"
        self._process = Process(
            "scraper",
            "harness.observe.scraper",
            plan,
            log,
            on_exit=self._on_exit,
            on_message=self._on_scraped,
        )
        self._process.send(More({"scraper": self._process.pid}))

    def watch(self, name: str, pid: int) -> None:
        """One more process of this machine."""
        if self._process is not None:
            self._process.send(More({name: pid}))

    def refresh(self, target: Target) -> None:
        """Go on with the target's credentials as they are now."""
        self._write_certificate(target)
        if self._process is not None:
            self._process.send(More(token=target.token))

    def end(self) -> None:
        """One last scrape, then its end."""
        if self._process is not None:
            self._process.end_input(_ENDS_WITHIN_S)
        if self._secrets is not None:
            self._secrets.cleanup()

    def _sources(self, target: Target) -> list[Source]:
        ca_file = "" if target.insecure else ssl.get_default_verify_paths().cafile or ""
        if target.ca:
            ca_file = self._private("ca.crt", target.ca)
        cert_file = self._write_certificate(target)
        scheme = "https" if target.tls else "http"
        headers = [(name, value) for name, values in target.headers.items() for value in values]
        return [
            Source(
                m.name,
                f"{scheme}://{f'[{m.host}]' if ':' in m.host else m.host}:{m.port}{target.path_prefix}",
                ca_file,
                target.token,
                cert_file,
                server_name=target.server_name,
                proxy=target.proxy,
                headers=headers,
            )
            for m in target.members
        ]

    def _write_certificate(self, target: Target) -> str:
        """The path of the file, "" where there is no certificate. A new one is used from the next connection on."""
        if not target.cert:
            return ""
        return self._private("client.pem", f"{target.key}\n{target.cert}")

    def _private(self, name: str, text: str) -> str:
        """The path of a file that goes with the run."""
        if self._secrets is None:
            self._secrets = tempfile.TemporaryDirectory(prefix=folders.prefix())
        path = Path(self._secrets.name) / name
        path.write_text(text)
        return str(path)


def etcd_sources(target: Mapping[str, Any]) -> list[Source]:
    """The members of a target's etcd, from what the manifest has of it: those that the pool runs, else those whose
    addresses it was given; none where it has an embedded store, or the target is no pool."""
    store = target.get("store") or {}
    if store.get("kind") != "etcd":
        return []
    own = [(member["name"], member["url"]) for member in store.get("members", ())]
    named = [(f"etcd-{index}", url) for index, url in enumerate(store.get("servers", ()))]
    files = target["options"]["store"]
    ca_file = files["etcd_cafile"] or ssl.get_default_verify_paths().cafile or ""
    return [
        Source(
            name,
            url.rstrip("/"),
            ca_file if url.startswith("https:") else "",
            cert_file=files["etcd_certfile"],
            key_file=files["etcd_keyfile"],
        )
        for name, url in (*own, *named)
    ]
