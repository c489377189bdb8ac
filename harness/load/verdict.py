"""Did this machine keep up with what it modelled?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from harness.observe.record import read_table

LATE_SHARE = 0.05
"""More late than this, of jobs or of beats, and the run's times were this machine's, not the modelled one's."""

COUNTED_AT_LEAST = 100
"""Of fewer, a share says nothing: 100 beats are 10 s of one worker."""


@dataclass(frozen=True)
class Lateness:
    """Modelled jobs of all members that ended, and those that ended more than 20 ms after they should have; beats of
    all workers' event loops, and those more than 20 ms late (`looplag`)."""

    jobs: float
    late: float
    beats: float = 0
    late_beats: float = 0

    @property
    def excuses(self) -> list[str]:
        """Why the run's times are this machine's; empty where it kept up."""
        counted = (
            (self.late, self.jobs, "modelled jobs of the members"),
            (self.late_beats, self.beats, "beats of the workers' event loops"),
        )
        return [
            f"{late / of:.1%} of {of:.0f} {what} were more than 20 ms late, at most {LATE_SHARE:.0%} may be"
            for late, of, what in counted
            if of >= COUNTED_AT_LEAST and late / of > LATE_SHARE
        ]


def host_kept_up(record: Path, loop: Mapping[str, float]) -> Lateness:
    """Lateness over the whole run: from the members' own counters, zeros where the target has none, and from the sums
    of what workers reported (`LoopLag.take`)."""
    series = read_table(record, "series")
    return Lateness(
        jobs=_last_sum(series, "swarmlet_modelled_jobs_total"),
        late=_last_sum(series, "swarmlet_late_jobs_total"),
        beats=loop.get("beats", 0),
        late_beats=loop.get("late", 0),
    )


def _last_sum(series: pa.Table, name: str) -> float:
    rows = series.filter(pc.starts_with(series["series"].cast("string"), name))
    last: dict[tuple[str, str], float] = {}
    for row in rows.to_pylist():
        last[row["member"], row["series"]] = row["value"]
    return sum(last.values())
