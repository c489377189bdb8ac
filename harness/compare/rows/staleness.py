"""How far a member's watch caches are behind the foremost member's, at each scrape.

Members are scraped at the same moment, but answer some milliseconds apart, so differences of a few revisions under load
are no staleness. A cache's revision moves with its own resource's events and with etcd's progress notifications, so only
caches of resources that the load writes all the time are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.compare.rows import families
from harness.compare.rows.row import Row, Taken, busiest, peak
from harness.compare.run import Run, Window

METRIC = "apiserver_watch_cache_resource_version"
RESOURCES = ("pods", "leases")


def staleness_rows(runs: Sequence[Run]) -> list[Row]:
    """The member that is most behind, and each member; none of one member alone."""
    rows = []
    for key, unit, what, behind in (
        ("revisions", "", "revisions", revisions_behind),
        ("seconds", "s", "seconds since the foremost was where this one is", seconds_behind),
    ):
        source = (
            f"{METRIC} of {' and '.join(RESOURCES)}, the worse of both: {what}, behind the foremost member at the same"
            " scrape, highest of all scrapes"
        )
        title = f"Cache behind the foremost member, {key}"
        behind = cache(behind)
        rows.append(
            Row(
                f"staleness-{key}",
                title,
                unit,
                Taken.BUSIEST,
                Window.SCENARIO.value,
                source,
                lambda run, behind=behind: peak(busiest(_during(run, behind(run)))),  # type: ignore[misc]
                series=lambda run, behind=behind: busiest(behind(run)),  # type: ignore[misc]
            )
        )
        figures = _highest(behind)
        rows += families.members(runs, f"staleness-{key}", title, unit, source, figures, Window.SCENARIO)
    return rows


def _during(run: Run, frame: pd.DataFrame) -> pd.DataFrame:
    return run.during(frame, Window.SCENARIO)


def _highest(behind: Callable[[Run], pd.DataFrame]) -> Callable[[Run], Mapping[str, float]]:
    def found(run: Run) -> dict[str, float]:
        frame = _during(run, behind(run))
        highest = {str(member): peak(frame[member]) for member in frame.columns}
        return {member: value for member, value in highest.items() if value is not None}

    return found


def revisions_behind(run: Run) -> pd.DataFrame:
    """At each scrape, of each member; empty where there are no several members, or none that tells."""
    return _worst(frame.rsub(frame.max(axis=1), axis=0) for frame in _frames(run))


def seconds_behind(run: Run) -> pd.DataFrame:
    """The same in time: how long ago the foremost member was where this member is, between scrapes in proportion."""
    return _worst(_ages(frame) for frame in _frames(run))


def _frames(run: Run) -> list[pd.DataFrame]:
    found = []
    for resource in RESOURCES:
        frame = run.frame(METRIC, {"resource": resource})
        if len(frame.columns) > 1:
            found.append(frame.where(frame > 0))  # 0: the cache was not there yet
    return found


def _worst(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    worst = pd.DataFrame()
    for frame in frames:
        worst = frame if worst.empty else worst.where(worst >= frame, frame)
    return worst


def _ages(frame: pd.DataFrame) -> pd.DataFrame:
    times = frame.index.to_numpy(dtype=float)
    lead = frame.max(axis=1).ffill().fillna(0.0).to_numpy()
    ages = {}
    for member in frame.columns:
        mine = frame[member].to_numpy()
        ages[member] = [_age(times, lead, k, revision) for k, revision in enumerate(mine)]
    return pd.DataFrame(ages, index=frame.index)


def _age(
    times: npt.NDArray[np.float64], lead: npt.NDArray[np.float64], now: int, revision: float
) -> float:
    """How long before scrape `now` the foremost passed this revision."""
    if np.isnan(revision):
        return float("nan")
    if revision >= lead[now]:
        return 0.0
    k = int(np.searchsorted(lead[: now + 1], revision, side="right"))  # the first scrape at which it was beyond
    if k == 0:
        return float(times[now] - times[0])
    share = (revision - lead[k - 1]) / (lead[k] - lead[k - 1])
    return float(times[now] - (times[k - 1] + share * (times[k] - times[k - 1])))
