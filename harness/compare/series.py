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
        member, members = pd.factorize(table["member"])
        series, texts = pd.factorize(table["series"])
        self._members: list[str] = [str(member) for member in members]
        pairs = series * max(1, len(members)) + member
        self._order = np.argsort(pairs, kind="stable")
        self._bounds = np.searchsorted(pairs[self._order], np.arange(len(texts) * max(1, len(members)) + 1))
        self._names: dict[str, list[tuple[int, str]]] = {}
        for code, text in enumerate(map(str, texts)):
            self._names.setdefault(text.partition("{")[0], []).append((code, text))
        self._wides: dict[tuple[str, bool], _Wide] = {}
        self._frames: dict[tuple[Any, ...], pd.DataFrame] = {}
        self._grown: dict[tuple[str, float, float], _Array] = {}
        self._matching: dict[tuple[Any, ...], list[int]] = {}

    @cached_property
    def families(self) -> set[str]:
        """The metrics of the members; etcd and the run's other processes have some of their own."""
        members = [code for code, name in enumerate(self._members) if name in self._answering]
        return {
            name
            for name, known in self._names.items()
            if any(len(self._rows(code, member)) for code, _ in known for member in members)
        }

    @cached_property
    def _answering(self) -> set[str]:
        """The members: those that say `up`."""
        return set(self.up.columns)

    @cached_property
    def up(self) -> pd.DataFrame:
        """Whether each member answered (1 or 0): index t, a column a member."""
        columns = {
            name: pd.Series(self._value[rows], index=self._t[rows])
            for code, _ in self._names.get("up", ())
            for member, name in enumerate(self._members)
            if len(rows := self._rows(code, member))
        }
        return pd.DataFrame({name: columns[name] for name in sorted(columns)}, dtype=float)

    def _rows(self, series: int, member: int) -> _Array:
        """Where the table has a series of a member, in the order of time."""
        pair = series * len(self._members) + member
        rows: _Array = self._order[self._bounds[pair] : self._bounds[pair + 1]]
        return rows

    def _wide(self, metric: str, members: bool = True) -> _Wide:
        """Of the members, or of the run's other processes."""
        known = self._wides.get((metric, members))
        if known is not None:
            return known
        times = self.up.index.to_numpy() if members else np.unique(self._t)
        wanted = [code for code, name in enumerate(self._members) if (name in self._answering) is members]
        found: list[tuple[str, dict[str, str]]] = []
        pieces: list[_Array] = []
        for code, text in self._names.get(metric, ()):
            labels = split(text)[1]
            for member in wanted:
                rows = self._rows(code, member)
                if len(rows):
                    found.append((self._members[member], labels))
                    pieces.append(rows)
        values = self._laid_out(times, pieces)
        self._wides[metric, members] = wide = _Wide(
            values, [member for member, _ in found], [labels for _, labels in found]
        )
        return wide

    def _laid_out(self, times: _Array, pieces: list[_Array]) -> _Array:
        """The rows of each series as a column, carried forward."""
        values = np.full((len(times), len(pieces)), np.nan)
        if not pieces or not len(times):
            return values
        rows = np.concatenate(pieces)
        columns = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
        at = np.searchsorted(times, self._t[rows])
        known = at < len(times)  # not what came after the last scrape
        values[at[known], columns[known]] = self._value[rows[known]]
        latest = np.where(np.isnan(values), 0, np.arange(len(times))[:, None])
        np.maximum.accumulate(latest, axis=0, out=latest)
        carried: _Array = np.nan_to_num(np.take_along_axis(values, latest, axis=0), nan=0.0)
        return carried

    # ---- at each scrape ----------------------------------------------------------------------------------------
    def frame(self, metric: str, where: Where, by: str = "") -> pd.DataFrame:
        """Index t, a column for each member (or member and value of label `by`), series that differ otherwise summed;
        NaN where a member did not answer. Not to be changed: it is kept."""
        key = (metric, tuple(sorted(where.items())), by)
        if key not in self._frames:
            wide = self._wide(metric)
            columns: dict[Any, _Array] = {}
            for index in self._chosen(metric, where):
                member = wide.members[index]
                column = (member, wide.labels[index].get(by, "")) if by else member
                columns[column] = columns.get(column, 0.0) + wide.values[:, index]
            frame = pd.DataFrame({column: columns[column] for column in sorted(columns)}, index=self.up.index)
            if by and columns:
                frame.columns.names = ["member", by]
            for column in frame.columns:
                down = self._down(column[0] if by else column)
                if down.any():
                    frame.loc[down, [column]] = float("nan")
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
        growths = self._growths(metric, began, ended)
        for index in self._chosen(metric, where):
            member = wide.members[index]
            key = tuple(wide.labels[index].get(label, "") for label in by)
            members = found.setdefault(key, {})
            members[member] = members.get(member, 0.0) + growths[index]
        return found

    def _growths(self, metric: str, began: float, ended: float) -> _Array:
        """Of each column."""
        key = (metric, began, ended)
        if key not in self._grown:
            wide, times = self._wide(metric), self.up.index.to_numpy()
            last = int(np.searchsorted(times, ended, side="right"))  # exclusive
            first = int(np.searchsorted(times, began, side="right")) - 1
            self._grown[key] = grown = np.zeros(len(wide.members))
            for member in dict.fromkeys(wide.members):
                mine = [index for index, name in enumerate(wide.members) if name == member]
                values = wide.values[self._first_answer(member, max(first, 0)) : last, mine]
                if len(values):
                    grown[mine] = _steps(values).sum(axis=0) + (
                        values[0] if first < 0 and self._fresh else 0.0
                    )
        return self._grown[key]

    def _down(self, member: str) -> npt.NDArray[np.bool_]:
        """At which scrapes a member did not answer."""
        return np.asarray(self.up[member] == 0)

    def _chosen(self, metric: str, where: Where) -> list[int]:
        """The columns whose labels match."""
        key = (metric, tuple(where.items()))
        if key not in self._matching:
            labels = self._wide(metric).labels
            self._matching[key] = [index for index, found in enumerate(labels) if matches(found, where)]
        return self._matching[key]

    def _first_answer(self, member: str, scrape: int) -> int:
        """The first scrape from this one on that the member answered; what it showed before is not known."""
        answered = np.flatnonzero(~self._down(member)[scrape:])
        return scrape + (int(answered[0]) if len(answered) else 0)

    def rates(self, metric: str, by: Key, began: float, ended: float) -> dict[Key, pd.Series]:
        """Growth of a counter a second between two scrapes, from the last one before a window to the last one in it,
        all members together, for each combination of the labels `by`. A counter that fell counts as no growth; nothing
        where a member did not answer."""
        wide, times = self._wide(metric), self.up.index.to_numpy()
        last = int(np.searchsorted(times, ended, side="right"))
        first = max(int(np.searchsorted(times, began, side="right")) - 1, 0)
        seconds = np.diff(times[first:last])
        down = (self.up.to_numpy()[first:last] == 0).any(axis=1)
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
        columns = self._chosen(f"{metric}_bucket", where)
        for index, grown in zip(columns, _steps(wide.values[first:last, columns]).T, strict=True):
            bound = float(wide.labels[index]["le"])
            bounds[bound] = bounds.get(bound, 0.0) + grown
        for step, t in enumerate(times[first + 1 : last]):
            yield float(t), {bound: float(grown[step]) for bound, grown in bounds.items()}


def _steps(values: _Array) -> _Array:
    """Growth from each line to the next; a counter that fell began anew."""
    steps = np.diff(values, axis=0)
    return np.where(steps < 0, values[1:], steps)


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
