"""The scraper writes what changed, marks gaps, and ends with its input."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest

from harness.observe.digest import Scraped
from harness.observe.record import read_table
from harness.observe.scraper import Plan, Scraper, Source
from tests.conftest import HANG_S


class _Metrics(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    value = 0
    steady = "steady 1\n"
    status = 200
    tokens: list[str | None] = []  # noqa: RUF012 - a class stands for the one server of a test

    def do_GET(self) -> None:
        type(self).tokens.append(self.headers["Authorization"])
        body = f"{type(self).steady}moving {type(self).value}\n".encode()
        self.send_response(type(self).status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    _Metrics.value, _Metrics.status, _Metrics.tokens, _Metrics.steady = 0, 200, [], "steady 1\n"
    with HTTPServer(("127.0.0.1", 0), _Metrics) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _source(server: HTTPServer) -> Source:
    return Source("member-0", f"http://127.0.0.1:{server.server_port}", token="secret")


def test_a_series_is_written_only_when_it_changed(tmp_path: Path, server: HTTPServer) -> None:
    scraper = Scraper(Plan(str(tmp_path), [_source(server)]))
    for _ in range(3):
        scraper.scrape()
        _Metrics.value += 1
    scraper.close()
    rows = read_table(tmp_path, "series").to_pylist()
    assert [row["value"] for row in rows if row["series"] == "moving"] == [0.0, 1.0, 2.0]
    assert [row["value"] for row in rows if row["series"] == "steady"] == [1.0]
    assert [row["value"] for row in rows if row["series"] == "up"] == [1.0, 1.0, 1.0]
    assert _Metrics.tokens == ["Bearer secret"] * 3


def test_a_series_that_is_gone_is_0_until_it_is_there_again(tmp_path: Path, server: HTTPServer) -> None:
    scraper = Scraper(Plan(str(tmp_path), [_source(server)]))
    for steady in (
        "steady 1\n",
        "",
        "",
        "steady 1\n",
    ):  # it restarted, and had nothing to show of it at first
        _Metrics.steady = steady
        scraper.scrape()
    scraper.close()
    rows = read_table(tmp_path, "series").to_pylist()
    assert [row["value"] for row in rows if row["series"] == "steady"] == [1.0, 0.0, 1.0]
    assert [row["value"] for row in rows if row["series"] == "moving"] == [0.0]


def test_a_member_that_does_not_answer_is_a_gap_and_is_tried_again(
    tmp_path: Path, server: HTTPServer
) -> None:
    scraper = Scraper(Plan(str(tmp_path), [_source(server)]))
    _Metrics.status = 500
    scraper.scrape()
    _Metrics.status = 200
    scraper.scrape()
    scraper.close()
    rows = read_table(tmp_path, "series").to_pylist()
    assert [row["value"] for row in rows if row["series"] == "up"] == [0.0, 1.0]


def test_the_process_scrapes_once_more_and_ends_when_its_input_ends(
    tmp_path: Path, server: HTTPServer
) -> None:
    plan = Plan(str(tmp_path), [_source(server)], interval_s=300)
    with subprocess.Popen(
        [sys.executable, "-m", "harness.observe.scraper"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(plan) + b"\n")
        process.stdin.write(msgspec.json.encode({"processes": {"scraper": process.pid}}) + b"\n")
        process.stdin.close()
        ready, *said = map(msgspec.json.decode, process.stdout.read().splitlines())
        assert process.wait(HANG_S) == 0
    assert ready == {"ready": True}
    rounds = [msgspec.convert(line, Scraped) for line in said]
    assert [set(round_.members) for round_ in rounds] == [{"member-0"}]
    assert rounds[0].members["member-0"] is not None
    rows = read_table(tmp_path, "series").to_pylist()
    assert sum(row["series"] == "up" for row in rows) == 2
    assert any(
        row["member"] == "scraper" and row["series"] == "swarmlet_process_resident_memory_bytes"
        for row in rows
    )
