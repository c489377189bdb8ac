"""Members in this process over one store, in virtual time; each request goes to one of them, drawn by a seed."""

from __future__ import annotations

from random import Random

from tests.apiserver.member.fakemember import ADMIN, Server
from tests.conformance.recorded import Answered, Sent

TOKEN = ADMIN
_STEP_S = 0.05
_WHOLE_ANSWER_S = 61.0


class VirtualPool:
    def __init__(self, members: int = 1, seed: int = 0) -> None:
        self._server = Server(members=members, server_address="127.0.0.1:16443")
        self._rng = Random(seed)

    def close(self) -> None:
        self._server.close()

    def wait(self, seconds: float) -> None:
        self._server.settle(max(seconds, _STEP_S))

    def ask(self, *requests: Sent) -> list[Answered]:
        return [self._ask(request) for request in requests]

    def _ask(self, request: Sent) -> Answered:
        member = self._rng.randrange(len(self._server.members))
        exchange = self._server.exchange(request.method, request.path, request.headers, request.body, member)
        left_s = request.watch_s if request.watch_s is not None else _WHOLE_ANSWER_S
        while not exchange.finished and left_s > 0:
            self._server.settle(0.1)
            left_s -= 0.1
        if not exchange.finished:
            exchange.leave()
        return Answered(exchange.status, exchange.answer_headers, exchange.data)
