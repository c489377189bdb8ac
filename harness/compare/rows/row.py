"""What a row is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import pandas as pd

from harness.compare.run import Run

Value = Callable[[Run], float | None]
Series = Callable[[Run], pd.Series]

GROUPS = (
    *("throughput", "load", "requests", "watches", "etcd", "cache and authorizer", "clients"),
    *("provisioners", "informers"),
)
"""The order of a report."""


NOT_EXPOSED = "not exposed"
NO_SUCH_MEMBER = "no such member"
ONE_MEMBER = "one member alone"
NOTHING_OBSERVED = "nothing observed"


class Taken(Enum):
    """How a figure over members was made one."""

    BUSIEST = "busiest"  # the member with the highest figure
    MEDIAN = "median"  # the member in the middle; of an even number the lower of the two
    SUM = "sum"  # all members added up, at one moment
    MEMBER = "member"  # of one member, which the title names
    RATIO = "max/mean"  # the busiest over the mean of all members, at one moment
    RUN = "run"  # of the run as a whole; members do not come into it


@dataclass(frozen=True)
class Row:
    """One row. `value` gives None where there is no figure, and `absent` says why; `lower_is_better` is None where
    neither direction is good in itself. `series` gives what the row's chart shows: index seconds since the load phase
    began, values of the figure, or its growth a second where it is a counter's; `series_unit` is theirs, None where it
    is the row's. `group` is one of `GROUPS`, set where all rows come together (`harness.compare.rows.every`); a row
    that is not `shown` stands in report.json alone."""

    key: str
    title: str
    unit: str
    taken: Taken
    window: str
    source: str
    value: Value
    lower_is_better: bool | None = True
    series: Series | None = None
    series_unit: str | None = None
    group: str = ""
    shown: bool = True
    absent: str = NOT_EXPOSED


def busiest(frame: pd.DataFrame) -> pd.Series:
    """At each scrape the member with the highest value."""
    return frame.max(axis=1)


def total(frame: pd.DataFrame) -> pd.Series:
    """At each scrape all members together; nothing where one of them did not answer."""
    return frame.sum(axis=1, min_count=max(1, len(frame.columns)))


def uneven(frame: pd.DataFrame) -> pd.Series:
    """At each scrape the busiest member over the mean of all; nothing where one did not answer, or all show 0."""
    whole = total(frame)
    return busiest(frame) / (whole / max(1, len(frame.columns))).where(whole > 0)


def peak(series: pd.Series) -> float | None:
    value = series.max() if len(series) else float("nan")
    return None if pd.isna(value) else float(value)
