"""Prometheus' HTTP API as values: the path of an instant query, and what its answer says.

Mirrors prometheus/web/api/v1 (docs: querying/api); only instant vectors are read, which is what ClusterLoader2 asks
for (cl2/pkg/measurement/util/prometheus.go). Nothing here knows sockets or time.
"""

from __future__ import annotations

import math
from urllib.parse import urlencode

import msgspec

from harness.wire.errors import SwarmletError

QUERY_PATH = "/api/v1/query"
PARSE_PATH = "/api/v1/format_query"
_SHOWN = 200  # characters of an answer that a message quotes


class QueryFailed(SwarmletError):
    """An answer that holds no vector; the message is Prometheus' own where it gave one."""


class VectorSample(msgspec.Struct, frozen=True):
    """One element of an instant vector; `at_s` is in seconds since 1970."""

    labels: dict[str, str]
    value: float
    at_s: float


class _Element(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct):
    kind: str = msgspec.field(default="", name="resultType")
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Failure(msgspec.Struct):
    error_type: str = msgspec.field(default="", name="errorType")
    error: str = ""


class _Answer(_Failure):
    status: str = ""
    data: _Data | None = None


def query_path(expression: str, at_s: float) -> str:
    """Path and query of an instant query, below the server's own prefix."""
    return f"{QUERY_PATH}?{urlencode({'query': expression, 'time': f'{at_s:.3f}'})}"


def parse_path(expression: str) -> str:
    """Path and query of the request that tells whether an expression is PromQL (and formats it)."""
    return f"{PARSE_PATH}?{urlencode({'query': expression})}"


def parse_error(body: bytes) -> str:
    """What Prometheus says to an expression that it does not understand; "" for any other answer, as of a server that
    cannot tell."""
    try:
        answer = msgspec.json.decode(body, type=_Failure)
    except msgspec.MsgspecError:
        return ""
    return answer.error if answer.error_type == "bad_data" else ""


def range_of(seconds: float) -> str:
    """A range as upstream writes it, in whole seconds (ToPrometheusTime); at least 1, as PromQL has no range of 0."""
    return f"{max(1, int(seconds))}s"


def read_vector(status: int, body: bytes) -> list[VectorSample]:
    """The samples of an answer, those that are no number left out as upstream leaves them out. Raises QueryFailed."""
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError:
        text = " ".join(body.decode("utf-8", "replace").split())
        raise QueryFailed(f"HTTP {status}, not an answer of Prometheus: {text[:_SHOWN]!r}") from None
    if answer.status != "success" or answer.data is None:
        said = f"{answer.error_type}: {answer.error}" if answer.error else f"HTTP {status}"
        raise QueryFailed(said)
    if answer.data.kind != "vector":
        raise QueryFailed(f"the query gives a {answer.data.kind or 'nothing'}, not an instant vector")
    try:
        elements = msgspec.json.decode(answer.data.result, type=list[_Element])
        found = [
            VectorSample(item.metric, float(item.value[1]), item.value[0]) for item in elements if item.value
        ]
    except (msgspec.MsgspecError, ValueError) as error:
        raise QueryFailed(f"a vector that cannot be read: {error}") from None
    return [sample for sample in found if not math.isnan(sample.value)]
