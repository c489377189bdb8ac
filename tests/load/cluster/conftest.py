"""An API server of a test's own: it answers from a table, and remembers what it was asked."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.load.cluster import members
from harness.load.cluster.errands import Errands
from harness.load.plan import Target, TargetMember
from tests.conftest import HANG_S

Answer = tuple[int, Any]


class Api:
    """`answer(method, path, query, body)` says what is answered; 404 where it gives None."""

    def __init__(self) -> None:
        self.answer: Callable[[str, str, str, Any], Answer | None] = lambda *_: None
        self.asked: list[tuple[str, str, str, Any]] = []
        self.headers: list[Any] = []
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                request = (self.command, url.path, url.query, json.loads(body) if body else None)
                api.asked.append(request)
                api.headers.append(self.headers)
                code, thing = api.answer(*request) or (404, {"message": "not found"})
                text = json.dumps(thing).encode()
                self.send_response(code)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_DELETE = do_PUT = do_PATCH = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.port: int = self._server.server_address[1]

    def of(self, method: str) -> list[tuple[str, Any]]:
        """Paths and bodies of the requests of a method."""
        return [(path, body) for given, path, _, body in self.asked if given == method]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that are there are reached, however slow this machine is."""
    monkeypatch.setattr(members, "unreachable", partial(members.unreachable, within_s=HANG_S))


@pytest.fixture
def errands(api: Api) -> Iterator[Errands]:
    member = TargetMember("apiserver", "127.0.0.1", api.port)
    with Errands(Target((member,), tls=False, context="prod"), HANG_S) as made:
        yield made
