"""Ways to a member: a proxy, a certificate for another name, a path in front, tokens that are replaced."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.observe.record import read_table
from harness.observe.scraper import Plan, Scraper, Source
from harness.pool.certificates import ServingFiles, make_serving_files


class Metrics(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str | None, list[str] | None]] = []  # noqa: RUF012 - of the one server of a test

    def do_GET(self) -> None:
        seen = (self.path, self.headers["Authorization"], self.headers.get_all("Impersonate-Group"))
        type(self).seen.append(seen)
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"a 1\n")

    def log_message(self, *_: object) -> None:
        pass


class Connect(BaseHTTPRequestHandler):
    """A proxy; `heads` are the targets and credentials it was given."""

    heads: list[tuple[str, str | None]] = []  # noqa: RUF012

    def do_CONNECT(self) -> None:
        type(self).heads.append((self.path, self.headers["Proxy-Authorization"]))
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                for ready in select.select([self.connection, there], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    (there if ready is self.connection else self.connection).sendall(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(server: HTTPServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def files(tmp_path: Path) -> ServingFiles:
    return make_serving_files(tmp_path, ["api.example"], [])


@pytest.fixture
def tls(files: ServingFiles) -> Iterator[int]:
    Metrics.seen, Connect.heads = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    server.daemon_threads = False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as port:
        yield port


def ups(folder: Path, *sources: Source) -> list[float]:
    scraper = Scraper(Plan(str(folder), list(sources)))
    scraper.scrape()
    scraper.close()
    rows = read_table(folder, "series").to_pylist()
    return [row["value"] for row in rows if row["series"] == "up"]


def test_a_certificate_is_checked_for_the_name_that_is_given(
    tmp_path: Path, files: ServingFiles, tls: int
) -> None:
    url = f"https://127.0.0.1:{tls}"
    assert ups(tmp_path / "a", Source("m", url, files.ca)) == [0.0]
    assert ups(tmp_path / "b", Source("m", url, files.ca, server_name="api.example")) == [1.0]
    assert ups(tmp_path / "c", Source("m", url)) == [1.0], "nothing is checked"


def test_a_proxy_is_gone_through_with_its_credentials(tmp_path: Path, files: ServingFiles, tls: int) -> None:
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Connect)
    proxy.daemon_threads = False
    with serving(proxy) as port:
        source = Source(
            "m",
            f"https://127.0.0.1:{tls}/prefix/",
            files.ca,
            server_name="api.example",
            proxy=f"http://u:p%40@127.0.0.1:{port}",
            headers=[("Impersonate-Group", "a"), ("Impersonate-Group", "b")],
        )
        assert ups(tmp_path / "a", source) == [1.0]
    assert Connect.heads == [(f"127.0.0.1:{tls}", "Basic dTpwQA==")]
    assert Metrics.seen == [("/prefix/metrics", None, ["a", "b"])]


def test_a_token_is_replaced_for_all_members(tmp_path: Path, tls: int) -> None:
    url = f"https://127.0.0.1:{tls}"
    scraper = Scraper(
        Plan(str(tmp_path / "a"), [Source("m", url, token="one"), Source("n", url, token="one")])
    )
    scraper.scrape()
    scraper.use_token("two")
    scraper.scrape()
    scraper.close()
    assert sorted(str(token) for _, token, _ in Metrics.seen) == ["Bearer one"] * 2 + ["Bearer two"] * 2
