"""A Prometheus over HTTP that answers the query API with what was recorded, and wants credentials where it is told."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from harness.pool.certificates import ServingFiles

UNDERSTOOD = ("vector(1)",)


class RecordedPrometheus:
    """`answers` by the whole expression: vectors as (labels, value); another expression is bad data, but for
    `UNDERSTOOD`. `refuses` may answer a request first: path and headers to status and body."""

    def __init__(
        self,
        answers: Mapping[str, Any] | None = None,
        *,
        prefix: str = "",
        tls: ServingFiles | None = None,
        ask_certificate: bool = False,
    ) -> None:
        self.answers = dict(answers or {})
        self.prefix = prefix
        self.authorization = ""
        self.status = 0
        self.body = b""
        self.version = "2.42.0"
        self.seen: list[tuple[str, dict[str, str]]] = []
        recorded = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                recorded.seen.append((self.path, headers))
                status, body = recorded.reply(self.path, headers)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=tls.ca)
            context.load_cert_chain(tls.cert, tls.key)
            if ask_certificate:
                context.verify_mode = ssl.CERT_REQUIRED
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_address[1])
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}{prefix}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        if self.authorization and headers.get("authorization") != self.authorization:
            return 401, b"Unauthorized"
        if self.status:
            return self.status, self.body
        url = urlsplit(path)
        api = url.path.removeprefix(self.prefix)
        query = parse_qs(url.query).get("query", [""])[0]
        if api == "/api/v1/query":
            return self._vector(query)
        if api == "/api/v1/format_query":
            known = query in self.answers or query in UNDERSTOOD
            return (200, b'{"status":"success","data":"x"}') if known else _bad("parse error")
        if api == "/api/v1/status/buildinfo" and self.version:
            return 200, json.dumps({"status": "success", "data": {"version": self.version}}).encode()
        return 404, b"404 page not found"

    def _vector(self, query: str) -> tuple[int, bytes]:
        rows = [[{}, 1.0]] if query in UNDERSTOOD else self.answers.get(query)
        if rows is None:
            return _bad("parse error")
        elements = [{"metric": labels, "value": [1.0, str(value)]} for labels, value in rows]
        body = {"status": "success", "data": {"resultType": "vector", "result": elements}}
        return 200, json.dumps(body).encode()


def _bad(why: str) -> tuple[int, bytes]:
    return 400, json.dumps({"status": "error", "errorType": "bad_data", "error": why}).encode()
