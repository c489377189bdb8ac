"""What the members' /metrics showed at every scrape, as sums, growths and quantiles are taken of it.

A record has a series when its value changed, thousands of them a member; a comparison asks for a hundred figures of
some forty metrics. So a metric's rows are found once, laid out as scrapes by series, and every figure of it is taken of
that array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.observe.exposition import split

Where = Mapping[str, str | tuple[str, ...]]
Key = tuple[str, ...]
_Array = npt.NDArray[Any]


@dataclass(frozen=True)
class _Wide:
    """All series of a metric: a line a scrape, a column a (member, labels). Carried forward between two changes, over
    gaps too; 0 before a series was there."""

    values: _Array
    members: list[str]
    labels: list[dict[str, str]]


class MemberSeries:
    """`table` has t, member, series, value, in the order of time; members are those with `up`. `fresh`: the members
    began with the run, so that what a counter shows first grew within it."""

    def __init__(self, table: pd.DataFrame, fresh: bool) -> None:
        self._fresh = fresh
        self._t = table["t"].to_numpy()
        self._value = table["value"].to_numpy()
        self._member, members = pd.factorize(table["member"])
        series, texts = pd.factorize(table["series"])
        self._members: list[str] = [str(member) for member in members]
        self._order = np.argsort(series, kind="stable")
        self._bounds = np.searchsorted(series[self._order], np.arange(len(texts) + 1))
        self._names: dict[str, list[tuple[int, dict[str, str]]]] = {}
        for code, text in enumerate(texts):
            name, labels = split(str(text))
            self._names.setdefault(name, []).append((code, labels))
        self._wides: dict[tuple[str, bool], _Wide] = {}
        self._frames: dict[tuple[Any, ...], pd.DataFrame] = {}

    @property
    def families(self) -> set[str]:
        return set(self._names)

    @cached_property
    def up(self) -> pd.DataFrame:
        """Whether each member answered (1 or 0): index t, a column a member."""
        rows = self._rows("up")
        frame = pd.DataFrame(
            {
                "t": self._t[rows],
                "member": [self._members[code] for code in self._member[rows]],
                "value": self._value[rows],
            }
        )
        return frame.pivot_table(index="t", columns="member", values="value", observed=True)

    def _rows(self, metric: str) -> npt.NDArray[np.intp]:
        found = [
            self._order[self._bounds[code] : self._bounds[code + 1]]
            for code, _ in self._names.get(metric, ())
        ]
        return np.concatenate(found) if found else np.empty(0, dtype=np.intp)

    def _wide(self, metric: str, members: bool = True) -> _Wide:
        """Of the members, or of the run's other processes."""
        known = self._wides.get((metric, members))
        if known is not None:
            return known
        times = self.up.index.to_numpy() if members else np.unique(self._t)
        columns: list[_Array] = []
        owners: list[str] = []
        labels: list[dict[str, str]] = []
        for code, found in self._names.get(metric, ()):
            rows = self._order[self._bounds[code] : self._bounds[code + 1]]
            for owner in np.unique(self._member[rows]):
                name = self._members[owner]
                if (name in self.up.columns) is not members:
                    continue
                mine = rows[self._member[rows] == owner]
                columns.append(_carried(times, self._t[mine], self._value[mine]))
                owners.append(name)
                labels.append(found)
        values = np.array(columns).T if columns else np.empty((len(times), 0))
        self._wides[metric, members] = wide = _Wide(values, owners, labels)
        return wide

    # ---- at each scrape ----------------------------------------------------------------------------------------
    def frame(self, metric: str, where: Where, by: str = "") -> pd.DataFrame:
        """Index t, a column for each member (or member and value of label `by`), series that differ otherwise summed;
        NaN where a member did not answer. Not to be changed: it is kept."""
        key = (metric, tuple(sorted(where.items())), by)
        if key not in self._frames:
            wide = self._wide(metric)
            columns: dict[Any, _Array] = {}
            for index, member in _chosen(wide, where):
                column = (member, wide.labels[index].get(by, "")) if by else member
                columns[column] = columns.get(column, 0.0) + wide.values[:, index]
            frame = pd.DataFrame({column: columns[column] for column in sorted(columns)}, index=self.up.index)
            if by and columns:
                frame.columns.names = ["member", by]
            down = self.up == 0
            for column in frame.columns:
                frame.loc[down[column[0] if by else column], [column]] = float("nan")
            self._frames[key] = frame
        return self._frames[key]

    def processes(self, metric: str) -> pd.DataFrame:
        """Of the run's processes that are no members: index t, a column a process."""
        wide = self._wide(metric, members=False)
        return pd.DataFrame(dict(zip(wide.members, wide.values.T, strict=True)), index=np.unique(self._t))

    # ---- over a window -----------------------------------------------------------------------------------------
    def increases(
        self, metric: str, where: Where, by: Key, began: float, ended: float
    ) -> dict[Key, dict[str, float]]:
        """How much a counter grew from the last scrape before a window to the last one in it: for each combination of
        the labels `by`, for each member. As Prometheus has it, a counter that fell began anew."""
        wide = self._wide(metric)
        found: dict[Key, dict[str, float]] = {}
        growths = self._growths(wide, began, ended)
        for index, member in _chosen(wide, where):
            key = tuple(wide.labels[index].get(label, "") for label in by)
            members = found.setdefault(key, {})
            members[member] = members.get(member, 0.0) + growths[index]
        return found

    def _growths(self, wide: _Wide, began: float, ended: float) -> list[float]:
        """Of each column."""
        times = self.up.index.to_numpy()
        last = int(np.searchsorted(times, ended, side="right"))  # exclusive
        first = int(np.searchsorted(times, began, side="right")) - 1
        starts = {member: self._first_answer(member, max(first, 0)) for member in set(wide.members)}
        growths = []
        for index, member in enumerate(wide.members):
            values = wide.values[starts[member] : last, index]
            if not len(values):
                growths.append(0.0)
                continue
            steps = np.diff(values)
            grown = float(np.where(steps < 0, values[1:], steps).sum())
            growths.append(grown + (float(values[0]) if first < 0 and self._fresh else 0.0))
        return growths

    def _first_answer(self, member: str, scrape: int) -> int:
        """The first scrape from this one on that the member answered; what it showed before is not known."""
        answered = np.flatnonzero(self.up[member].to_numpy()[scrape:] == 1)
        return scrape + (int(answered[0]) if len(answered) else 0)

    def rates(self, metric: str, by: Key, began: float, ended: float) -> dict[Key, pd.Series]:
        """Growth of a counter a second between two scrapes, from the last one before a window to the last one in it,
        all members together, for each combination of the labels `by`. A counter that fell counts as no growth; nothing
        where a member did not answer."""
        wide, times = self._wide(metric), self.up.index.to_numpy()
        last = int(np.searchsorted(times, ended, side="right"))
        first = max(int(np.searchsorted(times, began, side="right")) - 1, 0)
        seconds = np.diff(times[first:last])
        down = (self.up.to_numpy()[first:last] != 1).any(axis=1)
        unknown = down[1:] | down[:-1]
        summed: dict[Key, _Array] = {}
        for index, labels in enumerate(wide.labels):
            key = tuple(labels.get(label, "") for label in by)
            summed[key] = summed.get(key, 0.0) + np.clip(np.diff(wide.values[first:last, index]), 0, None)
        return {
            key: pd.Series(np.where(unknown, np.nan, grown / seconds), index=times[first + 1 : last])
            for key, grown in summed.items()
        }

    def buckets(
        self, metric: str, where: Where, by: Key, began: float, ended: float
    ) -> dict[Key, dict[float, float]]:
        """What a histogram counted in a window, all members together: for each combination of the labels `by`, upper
        bound -> cumulative count."""
        found: dict[Key, dict[float, float]] = {}
        grown = self.increases(f"{metric}_bucket", where, (*by, "le"), began, ended)
        for (*key, bound), members in grown.items():
            found.setdefault(tuple(key), {})[float(bound)] = sum(members.values())
        return found

    def bucket_steps(
        self, metric: str, where: Where, began: float, ended: float
    ) -> Iterator[tuple[float, dict[float, float]]]:
        """What a histogram counted between each two scrapes of a window, all members together: the later one's time,
        upper bound -> cumulative count. A counter that fell began anew."""
        wide, times = self._wide(f"{metric}_bucket"), self.up.index.to_numpy()
        last = int(np.searchsorted(times, ended, side="right"))
        first = max(int(np.searchsorted(times, began, side="right")) - 1, 0)
        bounds: dict[float, _Array] = {}
        for index, _ in _chosen(wide, where):
            values = wide.values[first:last, index]
            steps = np.diff(values)
            grown = np.where(steps < 0, values[1:], steps)
            bound = float(wide.labels[index]["le"])
            bounds[bound] = bounds.get(bound, 0.0) + grown
        for step, t in enumerate(times[first + 1 : last]):
            yield float(t), {bound: float(grown[step]) for bound, grown in bounds.items()}


def _carried(times: _Array, at: _Array, values: _Array) -> _Array:
    """Values at the scrapes, each until the next change."""
    index = np.searchsorted(at, times, side="right") - 1
    return np.where(index >= 0, values[np.maximum(index, 0)], 0.0)


def _chosen(wide: _Wide, where: Where) -> Iterator[tuple[int, str]]:
    """(column, member) of the series whose labels match."""
    for index, (member, labels) in enumerate(zip(wide.members, wide.labels, strict=True)):
        if matches(labels, where):
            yield index, member


def matches(labels: Mapping[str, str], where: Where) -> bool:
    """Whether labels have the wanted values; of a tuple one of them."""
    return all(
        labels.get(key, "") in (value if isinstance(value, tuple) else (value,))
        for key, value in where.items()
    )


def histogram_quantile(q: float, bounds: Mapping[float, float]) -> float | None:
    """Prometheus' histogram_quantile: `bounds` maps an upper bound (le, inf included) to its cumulative count.

    Linear within a bucket; a quantile in the last bucket gives the highest finite bound; None without observations.
    """
    ordered = sorted(bounds.items())
    if not ordered or ordered[-1][1] <= 0:
        return None
    rank = q * ordered[-1][1]
    lower, below = 0.0, 0.0
    for upper, count in ordered:
        if count >= rank:
            if upper == float("inf"):
                return lower
            inside = count - below
            return lower + (upper - lower) * ((rank - below) / inside if inside else 1.0)
        lower, below = upper, count
    return lower


