"""Members of etcd are scraped beside the apiservers: their own series alone, and why they cannot be read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.observe.exposition import split
from harness.observe.record import read_table
from harness.observe.scraper import STORE_UNREAD, STORE_UP, Plan, Scraper, Source

METRICS = (
    'etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 7\n'
    "process_cpu_seconds_total 3.5\nprocess_resident_memory_bytes 1e+06\n"
    "process_open_fds 9\ngrpc_server_started_total 5\n"
)


class _Etcd(BaseHTTPRequestHandler):
    status = 200
    tokens: list[str | None] = []  # noqa: RUF012 - a class stands for the one server of a test

    def do_GET(self) -> None:
        type(self).tokens.append(self.headers["Authorization"])
        self.send_response(type(self).status)
        self.send_header("Content-Length", str(len(METRICS)))
        self.end_headers()
        self.wfile.write(METRICS.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def etcd() -> Iterator[Source]:
    _Etcd.status, _Etcd.tokens = 200, []
    with HTTPServer(("127.0.0.1", 0), _Etcd) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Source("etcd-0", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


def rows(record: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_table(record, "series").to_pylist()
    return found


def test_a_store_is_no_member_and_only_its_own_series_are_kept(tmp_path: Path, etcd: Source) -> None:
    scraper = Scraper(Plan(str(tmp_path), [], stores=[etcd]))
    scraper.use_token("the target's")
    shown = scraper.scrape()
    scraper.close()
    assert shown.members == {}
    assert [(row["member"], split(row["series"])[0]) for row in rows(tmp_path)] == [
        ("etcd-0", STORE_UP),
        ("etcd-0", "etcd_disk_wal_fsync_duration_seconds_bucket"),
        ("etcd-0", "process_cpu_seconds_total"),
        ("etcd-0", "process_resident_memory_bytes"),
    ]
    assert _Etcd.tokens == [None]


def test_why_a_store_cannot_be_read_is_told(tmp_path: Path, etcd: Source) -> None:
    tls = Source("etcd-1", etcd.url.replace("http:", "https:"), ca_file="/nowhere/ca.crt")
    scraper = Scraper(Plan(str(tmp_path), [], stores=[etcd, tls]))
    _Etcd.status = 403
    scraper.scrape()
    _Etcd.status = 200
    scraper.scrape()
    scraper.close()
    up = [(row["member"], row["value"]) for row in rows(tmp_path) if row["series"] == STORE_UP]
    assert up == [("etcd-0", 0.0), ("etcd-1", 0.0), ("etcd-0", 1.0), ("etcd-1", 0.0)]
    why = {
        (row["member"], split(row["series"])[1]["why"])
        for row in rows(tmp_path)
        if row["series"].startswith(STORE_UNREAD)
    }
    assert why == {
        ("etcd-0", "GET /metrics was answered by status 403"),
        ("etcd-1", "[Errno 2] No such file or directory"),
    }
