"""GenericPrometheusQuery: PromQL of the config's own, with thresholds.

Mirrors cl2/pkg/measurement/common/generic_query_measurement.go. ``%v`` in a query is the length of the window; samples
with the same dimensions become one row, with a column for each query. Its parameters are read when it starts, by Go's
JSON rules: keys in any case.
"""

from __future__ import annotations

import msgspec

from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Params, Result
from harness.clusterloader.measurements.prometheus import Window
from harness.clusterloader.perfdata import DataItem, PerfData
from harness.clusterloader.schema import decode
from harness.wire.errors import ConfigError
from harness.wire.promql import VectorSample

METHOD = "GenericPrometheusQuery"


class GenericQuery(msgspec.Struct, frozen=True, rename="camel"):
    """`threshold` is the most that is allowed, the least with `lower_bound`; None allows everything."""

    name: str = ""
    query: str = ""
    threshold: float | None = None
    lower_bound: bool = False
    require_samples: bool = False


class Queries(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters. Upstream refuses an empty unit, and with it its own load test's terminated watches."""

    metric_name: str = ""
    metric_version: str = ""
    unit: str = ""
    queries: list[GenericQuery] = []
    dimensions: list[str] = []


def queries_of(params: Params) -> Queries:
    """Raises MeasurementError naming the parameter, the value and what is allowed."""
    try:
        found = decode(params.given, Queries, lambda key: "")
    except ConfigError as error:
        raise MeasurementError(f"params.{str(error).removeprefix(': ')}") from error
    for key, value in (("metricName", found.metric_name), ("metricVersion", found.metric_version)):
        if not value:
            raise MeasurementError(f"params.{key}: missing; it is required")
    for index, query in enumerate(found.queries):
        for key, value in (("name", query.name), ("query", query.query)):
            if not value:
                raise MeasurementError(f"params.queries[{index}].{key}: missing; it is required")
    return found


class GenericQueries:
    def __init__(self) -> None:
        self._asked = Queries()

    def configure(self, params: Params) -> None:
        self._asked = queries_of(params)

    async def gather(self, window: Window, call: Call) -> Outcome:
        asked = self._asked
        table = _Table(asked.dimensions)
        problems: list[str] = []
        empty: list[str] = []
        for query in asked.queries:
            samples = await window.vector(query.query.replace("%v", window.range))
            if not samples:
                empty.append(query.name)
                if query.require_samples:
                    problems.append(f"{query.name}: query returned no samples for {asked.metric_name}")
            for sample in samples:
                problems += table.add(query.name, sample)
                problems += _beyond(query, sample.value)
        result = Result(f"{METHOD} {asked.metric_name}", table.values(asked.unit), table.perf_data(asked))
        failure = f"{asked.metric_name}: {'; '.join(problems)}" if problems else ""
        nothing = not failure and len(empty) == len(asked.queries)
        skipped = f"Prometheus has no samples of {asked.metric_name} ({', '.join(empty)})" if nothing else ""
        return Outcome((result,), failure, skipped)


def _beyond(query: GenericQuery, value: float) -> list[str]:
    """In a list, what is wrong with a value."""
    limit = query.threshold
    if limit is None or (value >= limit if query.lower_bound else value <= limit):
        return []
    side, allowed = ("below", "at least") if query.lower_bound else ("above", "at most")
    return [f"{query.name}: sample {side} threshold: got {value:g}, allowed is {allowed} {limit:g}"]


class _Table:
    """Rows by the values of their dimensions, columns by query."""

    def __init__(self, dimensions: list[str]) -> None:
        self._dimensions = dimensions
        self._rows: dict[tuple[str, ...], dict[str, float]] = {}

    def add(self, column: str, sample: VectorSample) -> list[str]:
        """In a list, that there is one of this row and column already; the first one stays."""
        key = tuple(sample.labels.get(name, "") for name in self._dimensions)
        row = self._rows.setdefault(key, {})
        if column in row:
            where = f" of {', '.join(key)}" if key else ""
            return [f"{column}: too many samples{where}: {row[column]:g} and {sample.value:g}, expected one"]
        row[column] = sample.value
        return []

    def values(self, unit: str) -> dict[str, object]:
        found: dict[str, object] = {"unit": unit}
        for key, row in sorted(self._rows.items()):
            where = f" ({', '.join(key)})" if key else ""
            found.update((f"{column}{where}", value) for column, value in row.items())
        return found

    def perf_data(self, asked: Queries) -> PerfData:
        items = [
            DataItem(row, asked.unit, dict(zip(self._dimensions, key, strict=True)))
            for key, row in sorted(self._rows.items())
        ]
        return PerfData(asked.metric_version, items)
