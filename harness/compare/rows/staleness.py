"""How far a member's watch caches are behind the foremost member's, at each scrape.

Of all its caches a member's newest is taken: any one cache stands still between etcd's progress notifications while
its resource has no events, so that one cache alone says how quiet its resource is. Members are scraped at the same
moment but answer some milliseconds apart, so a few revisions under load are no staleness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.compare.rows import families
from harness.compare.rows.row import ONE_MEMBER, Row, Taken, busiest, peak
from harness.compare.run import Run, Window

METRIC = "apiserver_watch_cache_resource_version"


def staleness_rows(runs: Sequence[Run]) -> list[Row]:
    """The member that is most behind, and each member; none of one member alone."""
    rows = []
    for key, unit, what, behind in (
        ("revisions", "", "revisions", revisions_behind),
        ("seconds", "s", "seconds since the foremost was where this one is", seconds_behind),
    ):
        source = (
            f"{METRIC}, the newest of a member's caches: {what}, behind the foremost member at the same scrape, highest"
            " of all scrapes"
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
                absent=ONE_MEMBER,
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
    """At each scrape, of each member; no columns where there are no several members that tell."""
    newest = _newest(run)
    return newest.rsub(newest.max(axis=1), axis=0)


def seconds_behind(run: Run) -> pd.DataFrame:
    """The same in time: how long ago the foremost member was where this member is, between scrapes in proportion."""
    newest = _newest(run)
    times = newest.index.to_numpy(dtype=float)
    lead = newest.max(axis=1).ffill().fillna(0.0).to_numpy()
    return pd.DataFrame(
        {
            member: [_age(times, lead, k, revision) for k, revision in enumerate(newest[member])]
            for member in newest.columns
        },
        index=newest.index,
    )


def _newest(run: Run) -> pd.DataFrame:
    """The newest revision in any of each member's caches."""
    caches = run.frame(METRIC, by="resource")
    members = caches.columns.get_level_values("member") if len(caches.columns) else pd.Index([])
    if members.nunique() < 2:
        return pd.DataFrame(index=caches.index)
    newest = caches.T.groupby(level="member").max().T
    return newest.where(newest > 0)  # 0: no cache was there yet


def _age(times: npt.NDArray[np.float64], lead: npt.NDArray[np.float64], now: int, revision: float) -> float:
    """How long before scrape `now` the foremost passed this revision."""
    if np.isnan(revision):
        return float("nan")
    if revision >= lead[now]:
        return 0.0
    k = int(
        np.searchsorted(lead[: now + 1], revision, side="right")
    )  # the first scrape at which it was beyond
    if k == 0:
        return float(times[now] - times[0])
    share = (revision - lead[k - 1]) / (lead[k] - lead[k - 1])
    return float(times[now] - (times[k - 1] + share * (times[k] - times[k - 1])))
