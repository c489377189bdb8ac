"""A Prometheus in virtual time: it answers what it is told to, and keeps what it was asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from harness.clusterloader.messages import AnyMessage, Queried, Query
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import FakeCluster
from tests.clusterloader.together import LEADER, Together

Vector = Sequence[tuple[Mapping[str, str], float]]
Said = Vector | Queried
HEAD = """\
name: measured
namespace: {number: 1, prefix: ns}
tuningSets: [{name: ten, qpsLoad: {qps: 10}}]
steps:
"""


def answered(number: int, vector: Vector, at_s: float = 0.0) -> Queried:
    elements = [{"metric": labels, "value": [at_s, str(value)]} for labels, value in vector]
    body = {"status": "success", "data": {"resultType": "vector", "result": elements}}
    return Queried(number=number, status=200, body=json.dumps(body).encode())


class FakePrometheus:
    """`answers` by a regular expression that the query must hold; a list gives one answer after the other, and the last
    for ever. Without one a query has an empty vector."""

    def __init__(self, answers: Mapping[str, Said | list[Said]] | None = None) -> None:
        self.answers = {re.compile(pattern): said for pattern, said in (answers or {}).items()}
        self.asked: list[Query] = []

    def __call__(self, by: str, message: AnyMessage) -> AnyMessage:
        assert isinstance(message, Query)
        self.asked.append(message)
        said = next(
            (said for pattern, said in self.answers.items() if pattern.search(message.expression)), ()
        )
        if isinstance(said, list) and (not said or isinstance(said[0], Queried)):
            said = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(said, Queried):
            return Queried(number=message.number, status=said.status, body=said.body, error=said.error)
        return answered(message.number, said, message.at_s)  # type: ignore[arg-type]

    @property
    def queries(self) -> list[str]:
        return [query.expression for query in self.asked]


def measured(
    write: Write, text: str, prometheus: FakePrometheus | None, **environ: str
) -> tuple[FakeCluster, list[str], list[str]]:
    """The cluster after a test with these steps, its failures and its violations; without a `prometheus`, a run that
    has none."""
    cluster = FakeCluster()
    machine = loader(write(HEAD + text, **environ), prometheus=prometheus is not None)
    finished = cluster.run(Together({LEADER: machine}, master=prometheus))
    assert finished is not None
    assert cluster.idle
    return cluster, list(finished.failures), list(finished.violations)


def between(method: str, start: str, gather: str = "", seconds: int = 90) -> str:
    """A measurement around a pause: started with these parameters, gathered with those."""
    return (
        _step("begin", method, f"action: start, {start}")
        + f"- {{name: pause, measurements: [{{method: Sleep, identifier: s, params: {{duration: {seconds}s}}}}]}}\n"
        + _step("end", method, f"action: gather, {gather}")
    )


def _step(name: str, method: str, params: str) -> str:
    return f"- {{name: {name}, measurements: [{{method: {method}, identifier: id, params: {{{params}}}}}]}}\n"
