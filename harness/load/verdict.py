"""Did this machine keep up with what it modelled?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from harness.observe.record import read_table

LATE_SHARE = 0.05
"""More late jobs than this and the model's times were this machine's, not the modelled one's."""


@dataclass(frozen=True)
class Lateness:
    """Modelled jobs of all members that ended, and those that ended more than 20 ms after they should have."""

    jobs: float
    late: float

    @property
    def share(self) -> float:
        return self.late / self.jobs if self.jobs else 0.0

    @property
    def invalid(self) -> bool:
        return self.share > LATE_SHARE

    def __str__(self) -> str:
        return (
            f"{self.share:.1%} of {self.jobs:.0f} modelled jobs were more than 20 ms late, at most 5% may be"
        )


def host_kept_up(record: Path) -> Lateness:
    """Lateness over the whole run, from the members' own counters; zeros where the target has none."""
    series = read_table(record, "series")
    return Lateness(
        _last_sum(series, "swarmlet_modelled_jobs_total"), _last_sum(series, "swarmlet_late_jobs_total")
    )


def _last_sum(series: pa.Table, name: str) -> float:
    rows = series.filter(pc.starts_with(series["series"].cast("string"), name))
    last: dict[tuple[str, str], float] = {}
    for row in rows.to_pylist():
        last[row["member"], row["series"]] = row["value"]
    return sum(last.values())
