"""How late a scenario's operations started, against the times that its tuning sets fixed for them: by tuning set and by
executor, where there were several."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from harness.observe.histogram import Histogram
from harness.observe.record import read_table

SAMPLE = "operation_late_ms"
NAME = "OperationLateness"


def lateness(record: Path) -> list[dict[str, Any]]:
    """One measurement, as a scenario's own are kept; none where nothing was due at a time."""
    samples = read_table(record, "samples")
    rows = samples.filter(pc.equal(samples["name"].cast("string"), SAMPLE))
    found: defaultdict[tuple[str, ...], Histogram] = defaultdict(Histogram)
    for labels, bucket, count in zip(
        rows["labels"].to_pylist(), rows["bucket"].to_pylist(), rows["count"].to_pylist(), strict=True
    ):
        found[_part(labels)].merge([(bucket, count)])
    if not found:
        return []
    values: dict[str, float | int] = {}
    for part, histogram in sorted(found.items()):
        what = ", ".join(part)
        values[f"{what}: operations"] = histogram.total
        for name, quantile in (("perc50", 0.5), ("perc99", 0.99), ("max", 1.0)):
            values[f"{what}: late {name}, ms"] = (histogram.quantile_us(quantile) or 0.0) / 1e3
    return [{"name": NAME, "method": NAME, "identifier": "", "step": "", "values": values}]


def _part(labels: str) -> tuple[str, ...]:
    """``tuning_set=fast,executor=1`` is ("fast", "executor 1")."""
    given = dict(label.partition("=")[::2] for label in labels.split(","))
    executor = given.get("executor")
    return (given["tuning_set"], f"executor {executor}") if executor else (given["tuning_set"],)
