"""A request that is handed to a member in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.apiserver.exchange import ClientCertificate


class VirtualExchange:
    """An `Exchange` (harness.apiserver.exchange) that keeps its answer: `status`, `answer_headers`, `data`; `finished`
    says that the answer is complete, `aborted` that the server broke it off. Answering twice is an error of the
    server's and asserted. Nothing is ever buffered: a client here takes what it is sent at once."""

    http2 = True
    buffered = 0

    def __init__(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        certificate: ClientCertificate | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.headers: Mapping[str, str] = headers
        self.body = body
        self.peer = "127.0.0.1"
        self.certificate = certificate
        self.status = 0
        self.answer_headers: dict[str, str] = {}
        self.data = b""
        self.finished = False
        self.aborted = False
        self._gone: list[Callable[[], None]] = []

    def respond(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        assert not self.status, "answered twice"
        self.status, self.answer_headers, self.data, self.finished = status, dict(headers), body, True

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        assert not self.status, "answered twice"
        self.status, self.answer_headers = status, dict(headers)

    def write(self, data: bytes) -> None:
        assert self.status
        assert not self.finished
        self.data += data

    def finish(self) -> None:
        self.finished = True

    def abort(self, code: int = 2) -> None:
        self.aborted = True

    def go_away(self) -> None:
        """A connection of its own for each client makes this no more than a hint."""

    def on_drain(self, callback: Callable[[], None]) -> None:
        raise AssertionError("nothing is ever buffered")

    def on_gone(self, callback: Callable[[], None], *, instead: bool = False) -> None:
        self._gone = [callback] if instead else [*self._gone, callback]

    def leave(self) -> None:
        """The client gives up or disconnects."""
        for callback in self._gone:
            callback()
