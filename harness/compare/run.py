"""One run record as figures can be taken from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from harness.observe.exposition import split
from harness.observe.histogram import Histogram, bucket_middle_us
from harness.observe.record import Manifest, read_events, read_manifest, read_table

CREATE_BARRIER = "Waiting for 'create objects' to be completed"


class Run:
    """Times of all frames are seconds since the run's load phase began (its first object was created).

    Raises ConfigError where `folder` holds no record. `where` arguments of the methods pick series by label values.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: Manifest = read_manifest(folder)
        self.events: list[dict[str, Any]] = read_events(folder)
        self._frames: dict[str, pd.DataFrame] = {}

    # ---- phases ----------------------------------------------------------------------------------------------------
    @cached_property
    def load_began(self) -> float:
        """Seconds since 1970 of the first object created; the run's start where there was none."""
        return next((e["t"] for e in self.events if e["kind"] == "phase-started"), self.manifest.started)

    @cached_property
    def load_ended(self) -> float | None:
        """Seconds of the load phase: to the end of the create barrier, or of the last step without one."""
        ends = [e for e in self.events if e["kind"] == "step-finished"]
        barrier = [e["t"] for e in ends if e["name"] == CREATE_BARRIER]
        if barrier:
            return float(barrier[0]) - self.load_began
        return float(ends[-1]["t"]) - self.load_began if ends else None

    def step_s(self, name: str) -> float | None:
        """How long a step took; None where it did not end."""
        for event in self.events:
            if event["kind"] == "step-finished" and event["name"] == name:
                return float(event["seconds"])
        return None

    @cached_property
    def scenario(self) -> tuple[float, float]:
        """When the scenario began and ended, on the frames' time; open ends where it did not. The registration of the
        fleet comes before it, its disconnection (thousands of watches counted at once) after."""
        times = {
            e["kind"]: e["t"] - self.load_began for e in self.events if e["kind"].startswith("scenario-")
        }
        nodes = next(
            (e["t"] - self.load_began for e in self.events if e["kind"] == "nodes-ready"), float("-inf")
        )
        began = max(times.get("scenario-started", float("-inf")), nodes)
        return began, times.get("scenario-finished", float("inf"))

    @cached_property
    def wall_clock_s(self) -> float | None:
        """From the scenario's start to its end."""
        times = {
            e["kind"]: e["t"] for e in self.events if e["kind"] in ("scenario-started", "scenario-finished")
        }
        if len(times) < 2:
            return None
        return float(times["scenario-finished"] - times["scenario-started"])

    # ---- members' series -------------------------------------------------------------------------------------------
    @cached_property
    def _series(self) -> pd.DataFrame:
        table = read_table(self.folder, "series")
        frame: pd.DataFrame = table.to_pandas()
        for column in ("member", "series"):
            frame[column] = frame[column].astype("category")
        frame["t"] = frame["t"] - self.load_began
        return frame

    @cached_property
    def _names(self) -> dict[str, list[tuple[str, dict[str, str]]]]:
        """Metric name -> its series, as text and as labels."""
        names: dict[str, list[tuple[str, dict[str, str]]]] = {}
        for series in self._series["series"].cat.categories:
            name, labels = split(series)
            names.setdefault(name, []).append((series, labels))
        return names

    @cached_property
    def _last(self) -> dict[str, float]:
        """The last value of each series, members added up."""
        last = self._series.drop_duplicates(["member", "series"], keep="last")
        return {
            str(series): float(v)
            for series, v in last.groupby("series", observed=True)["value"].sum().items()
        }

    @cached_property
    def scrapes(self) -> pd.DataFrame:
        """`up` of each member at each scrape: index t, a column a member."""
        rows = self._series[self._series["series"] == "up"]
        return rows.pivot_table(index="t", columns="member", values="value", observed=True)

    def during_scenario(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows of a frame from the last scrape before the scenario to the last one before its end."""
        began, ended = self.scenario
        first = frame.index[frame.index <= began]
        return frame.loc[(first[-1] if len(first) else float("-inf")) : ended]

    @property
    def families(self) -> set[str]:
        """The names of all metrics that some member had."""
        return set(self._names)

    def exposes(self, metric: str) -> bool:
        """True where some member had the metric at all."""
        return metric in self._names

    def frame(
        self, metric: str, where: Mapping[str, str | tuple[str, ...]] | None = None, by: str = ""
    ) -> pd.DataFrame:
        """A metric at each scrape: index t, a column for each member (or each member and value of label `by`).

        Members only, not the other processes of a record. Series that differ in other labels are summed. Between two
        changes a value is carried forward; where a member did not answer there is NaN.
        """
        wide = self._wide(metric)
        groups = {
            series: labels.get(by, "")
            for series, labels in self._names.get(metric, ())
            if _matches(labels, where or {})
        }
        columns = [(str(column[0]), str(column[1])) for column in wide.columns]
        chosen = [index for index, (_, series) in enumerate(columns) if series in groups]
        if not chosen:
            return pd.DataFrame(index=self.scrapes.index)
        keys = [(columns[i][0], groups[columns[i][1]]) if by else columns[i][0] for i in chosen]
        picked = wide.iloc[:, chosen]
        picked.columns = pd.Index(range(len(keys)))
        summed = picked.T.groupby(pd.Series(keys)).sum().T
        if by:
            summed.columns = pd.MultiIndex.from_tuples(
                [(column[0], column[1]) for column in summed.columns], names=["member", by]
            )
        for column in summed.columns:
            member = column[0] if by else column
            summed.loc[self.scrapes[member] == 0, [column]] = float("nan")
        return summed

    def _wide(self, metric: str) -> pd.DataFrame:
        """All series of a metric at each scrape, a column for each (member, series); made once, as rows share it."""
        if metric not in self._frames:
            series = [series for series, _ in self._names.get(metric, ())]
            rows = self._series[self._series["series"].isin(series)]
            rows = rows[rows["member"].isin(self.scrapes.columns)]
            wide = rows.pivot_table(index="t", columns=["member", "series"], values="value", observed=True)
            self._frames[metric] = wide.reindex(self.scrapes.index).ffill().fillna(0.0)
        return self._frames[metric]

    def increase(self, metric: str, where: Mapping[str, str | tuple[str, ...]] | None = None) -> pd.Series:
        """How much a counter grew over the whole run, for each member: what it shows last, as members start with the
        run; with a target that was there before, less what it showed first."""
        frame = self.frame(metric, where)
        if frame.empty:
            return pd.Series(dtype=float)
        last = frame.ffill().iloc[-1]
        return last - frame.bfill().iloc[0] if self.manifest.target.get("backend") == "existing" else last

    def rate(
        self, metric: str, where: Mapping[str, str | tuple[str, ...]] | None = None, by: str = ""
    ) -> pd.DataFrame:
        """Growth of a counter a second between two scrapes, while the scenario ran; a counter that fell (a restart)
        counts as no growth."""
        frame = self.during_scenario(self.frame(metric, where, by))
        seconds = frame.index.to_series().diff()
        return frame.diff().clip(lower=0).div(seconds, axis=0).iloc[1:]

    def quantile_s(
        self, metric: str, q: float, where: Mapping[str, str | tuple[str, ...]], by: str
    ) -> dict[str, float]:
        """`histogram_quantile` over the whole run and all members together, for each value of label `by`."""
        found: dict[str, dict[float, float]] = {}
        for series, labels in self._names.get(f"{metric}_bucket", ()):
            if _matches(labels, where):
                bounds = found.setdefault(labels.get(by, ""), {})
                bound = float(labels["le"])
                bounds[bound] = bounds.get(bound, 0.0) + self._last[series]
        return {
            key: value
            for key, bounds in found.items()
            if (value := histogram_quantile(q, bounds)) is not None
        }

    # ---- clients' histograms ---------------------------------------------------------------------------------------
    @cached_property
    def requests(self) -> pd.DataFrame:
        """What the clients sent: t, user, verb, name, code, member, bucket, count."""
        frame: pd.DataFrame = read_table(self.folder, "requests").to_pandas()
        frame["t"] = frame["t"] - self.load_began
        return frame

    def sent(
        self, *, user: str = "", verb: str = "", names: tuple[str, ...] = (), code: int | None = None
    ) -> int:
        """How many requests the clients sent, of those that match."""
        frame = self.requests
        chosen = pd.Series(True, index=frame.index)
        if user:
            chosen &= frame["user"] == user
        if verb:
            chosen &= frame["verb"] == verb
        if names:
            chosen &= frame["name"].isin(names)
        if code is not None:
            chosen &= frame["code"] == code
        return int(frame.loc[chosen, "count"].sum())

    @cached_property
    def samples(self) -> pd.DataFrame:
        """What the machines measured: t, user, name, labels, bucket, count."""
        frame: pd.DataFrame = read_table(self.folder, "samples").to_pandas()
        return frame

    def sample_quantile_ms(self, user: str, name: str, q: float) -> float | None:
        """A quantile of what one kind of user measured under a name; None where it measured nothing."""
        rows = self.samples[(self.samples["user"] == user) & (self.samples["name"] == name)]
        histogram = Histogram()
        histogram.merge(zip(rows["bucket"], rows["count"], strict=True))
        value = histogram.quantile_us(q)
        return None if value is None else value / 1e3

    def sample_quantiles_ms(
        self, user: str, name: str, q: float, by: str, where: Mapping[str, str] | None = None
    ) -> dict[str, float]:
        """A quantile for each value of label `by`, of the samples whose labels match."""
        rows = self._samples_of(user, name, where or {})
        return _quantiles(rows, q, rows["labels"].map(lambda labels: _labels(labels).get(by, "")))

    def sample_quantiles_over_time(
        self, user: str, name: str, q: float, by: str, where: Mapping[str, str], window_s: float
    ) -> dict[float, dict[str, float]]:
        """`sample_quantiles_ms` of each window with samples, by the middle of the window (seconds since the load phase
        began). A sample is of the time at which its worker reported it, up to 3 s late."""
        rows = self._samples_of(user, name, where)
        values = rows["labels"].map(lambda labels: _labels(labels).get(by, ""))
        windows = (rows["t"] - self.load_began) // window_s
        return {
            (float(window) + 0.5) * window_s: _quantiles(
                rows[windows == window], q, values[windows == window]
            )
            for window in sorted(windows.unique())
        }

    def sample_count(self, user: str, name: str, where: Mapping[str, str] | None = None) -> int:
        """How many samples there are, of those whose labels match."""
        return int(self._samples_of(user, name, where or {})["count"].sum())

    def sample_sum(self, user: str, name: str, where: Mapping[str, str] | None = None) -> float:
        """The values of samples added up, each as exact as its bucket."""
        rows = self._samples_of(user, name, where or {})
        return sum(
            bucket_middle_us(int(bucket)) / 1e3 * int(count)
            for bucket, count in zip(rows["bucket"], rows["count"], strict=True)
        )

    def _samples_of(self, user: str, name: str, where: Mapping[str, str]) -> pd.DataFrame:
        rows = self.samples[(self.samples["user"] == user) & (self.samples["name"] == name)]
        rows = rows.assign(labels=rows["labels"].astype(str))
        chosen = {labels for labels in rows["labels"].unique() if _matches(_labels(labels), where)}
        return rows[rows["labels"].isin(chosen)]


def _labels(text: str) -> dict[str, str]:
    """Of a sample: ``member=m,kind=secrets``."""
    return dict(part.split("=", 1) for part in text.split(",") if part)


def _quantiles(rows: pd.DataFrame, q: float, values: pd.Series) -> dict[str, float]:
    found = {}
    for value, group in rows.groupby(values):
        histogram = Histogram()
        histogram.merge(zip(group["bucket"], group["count"], strict=True))
        quantile = histogram.quantile_us(q)
        assert quantile is not None  # a group has at least one row
        found[str(value)] = quantile / 1e3
    return found


def _matches(labels: Mapping[str, str], where: Mapping[str, str | tuple[str, ...]]) -> bool:
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
