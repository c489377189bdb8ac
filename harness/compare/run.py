"""One run record as figures can be taken from it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from harness.compare.series import Key, MemberSeries, Where, histogram_quantile, matches
from harness.observe.histogram import Histogram, bucket_middle_us
from harness.observe.record import REPORTED_EVERY_S, Manifest, read_events, read_manifest, read_table

CREATE_BARRIER = "Waiting for 'create objects' to be completed"


class Window(Enum):
    """The part of a run that a figure is of."""

    WHOLE = "whole run"
    SCENARIO = "scenario"  # without the fleet's coming and going
    LOAD = "load phase"  # from the first object's creation to the end of the create barrier


class Run:
    """Times of all frames are seconds since the run's load phase began (its first object was created).

    Raises ConfigError where `folder` holds no record. `where` arguments of the methods pick series by label values.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: Manifest = read_manifest(folder)
        self.events: list[dict[str, Any]] = read_events(folder)
        self._over_time: dict[tuple[Any, ...], pd.Series] = {}

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
    def barriers(self) -> dict[str, bool]:
        """The steps that waited for objects, in their order, and whether all that they waited for came."""
        passed: dict[str, bool] = {}
        for event in self.events:
            if event["kind"] == "barrier":
                passed[event["step"]] = passed.get(event["step"], True) and bool(event["passed"])
        return passed

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

    def bounds(self, window: Window) -> tuple[float, float] | None:
        """When a window began and ended, on the frames' time; None where the run had no load phase that ended."""
        if window is Window.LOAD:
            began = any(e["kind"] == "phase-started" for e in self.events)
            return (0.0, self.load_ended) if began and self.load_ended is not None else None
        return self.scenario if window is Window.SCENARIO else (float("-inf"), float("inf"))

    # ---- members' series -------------------------------------------------------------------------------------------
    @cached_property
    def _series(self) -> MemberSeries:
        frame: pd.DataFrame = read_table(self.folder, "series").to_pandas()
        frame["t"] = frame["t"] - self.load_began
        return MemberSeries(frame, fresh=self.manifest.target.get("backend") != "existing")

    @property
    def scrapes(self) -> pd.DataFrame:
        """`up` of each member at each scrape: index t, a column a member."""
        return self._series.up

    def during(self, frame: pd.DataFrame, window: Window) -> pd.DataFrame:
        """The scrapes of a frame that lie in a window."""
        bounds = self.bounds(window)
        return frame.iloc[:0] if bounds is None else frame.loc[bounds[0] : bounds[1]]

    def scraped_s(self, window: Window) -> float:
        """The seconds that `increase` of a window is of: from the last scrape before it to the last one in it."""
        bounds, times = self.bounds(window), self.scrapes.index
        if bounds is None or not len(times):
            return 0.0
        before, inside = times[times <= bounds[0]], times[times <= bounds[1]]
        return float(inside[-1] - (before[-1] if len(before) else times[0])) if len(inside) else 0.0

    @property
    def families(self) -> set[str]:
        """The names of all metrics that some member had."""
        return self._series.families

    def exposes(self, metric: str) -> bool:
        """True where some member had the metric at all."""
        return metric in self._series.families

    def frame(self, metric: str, where: Where | None = None, by: str = "") -> pd.DataFrame:
        """A metric at each scrape: index t, a column for each member (or each member and value of label `by`).

        Members only, not the other processes of a record. Series that differ in other labels are summed. Between two
        changes a value is carried forward; where a member did not answer there is NaN. Not to be changed.
        """
        return self._series.frame(metric, where or {}, by)

    def processes(self, metric: str) -> pd.DataFrame:
        """A metric of the run's processes that are no members: index t, a column a process."""
        return self._series.processes(metric)

    def increase(self, metric: str, where: Where | None = None, window: Window = Window.WHOLE) -> pd.Series:
        """How much a counter grew in a window, for each member: from the last scrape before it to the last one in it.
        A counter that fell began anew. Over the whole run what a member showed first counts too, as members begin with
        the run; not with a target that was there before."""
        return pd.Series(self.increases(metric, (), where, window).get((), {}), dtype=float)

    def increases(
        self, metric: str, by: Key, where: Where | None = None, window: Window = Window.WHOLE
    ) -> dict[Key, dict[str, float]]:
        """`increase` for each combination of the labels `by`."""
        bounds = self.bounds(window)
        return {} if bounds is None else self._series.increases(metric, where or {}, by, *bounds)

    def rate(self, metric: str, where: Where | None = None, by: str = "") -> pd.DataFrame:
        """Growth of a counter a second between two scrapes, while the scenario ran; a counter that fell (a restart)
        counts as no growth. It begins with the last scrape before the scenario."""
        frame = self.frame(metric, where, by)
        began, ended = self.scenario
        before = frame.index[frame.index <= began]
        frame = frame.loc[(before[-1] if len(before) else float("-inf")) : ended]
        seconds = frame.index.to_series().diff()
        return frame.diff().clip(lower=0).div(seconds, axis=0).iloc[1:]

    def rates(self, metric: str, by: Key) -> dict[Key, pd.Series]:
        """`rate` of all members together, for each combination of the labels `by`."""
        return self._series.rates(metric, by, *self.scenario)

    def quantiles(
        self, metric: str, q: float, by: Key, where: Where | None = None, window: Window = Window.WHOLE
    ) -> dict[Key, float]:
        """`histogram_quantile` of what a window added to the buckets of all members together, for each combination of
        the labels `by`; in the histogram's unit. None had an observation where one is missing."""
        bounds = self.bounds(window)
        if bounds is None:
            return {}
        found = self._series.buckets(metric, where or {}, by, *bounds)
        told = {key: histogram_quantile(q, counts) for key, counts in found.items()}
        return {key: value for key, value in told.items() if value is not None}

    def quantile_over_time(
        self, metric: str, q: float, where: Where | None = None, window: Window = Window.WHOLE
    ) -> pd.Series:
        """`histogram_quantile` between each two scrapes of a window with observations, by the later one's time."""
        key = (metric, q, tuple((where or {}).items()), window)
        bounds = self.bounds(window)
        if key not in self._over_time:
            steps = self._series.bucket_steps(metric, where or {}, *bounds) if bounds else ()
            found = {t: histogram_quantile(q, counts) for t, counts in steps}
            self._over_time[key] = pd.Series(
                {t: value for t, value in found.items() if value is not None}, dtype=float
            )
        return self._over_time[key]

    def reported(self, rows: pd.DataFrame, window: Window) -> pd.DataFrame:
        """Of the rows of clients, on the frames' time, those that were reported in a window or right behind it: what
        happened in it is complete, and up to `REPORTED_EVERY_S` of what came next may be among it."""
        bounds = self.bounds(window)
        if bounds is None:
            return rows.iloc[:0]
        return rows[(rows["t"] >= bounds[0]) & (rows["t"] <= bounds[1] + REPORTED_EVERY_S)]

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

    @cached_property
    def _samples_by(self) -> dict[tuple[str, str], pd.DataFrame]:
        frame = self.samples.astype({"user": str, "name": str, "labels": str})
        return {(str(user), str(name)): rows for (user, name), rows in frame.groupby(["user", "name"])}

    def sample_quantile_ms(self, user: str, name: str, q: float) -> float | None:
        """A quantile of what one kind of user measured under a name; None where it measured nothing."""
        rows = self.samples_of(user, name, {})
        histogram = Histogram()
        histogram.merge(zip(rows["bucket"], rows["count"], strict=True))
        value = histogram.quantile_us(q)
        return None if value is None else value / 1e3

    def sample_quantiles_ms(
        self, user: str, name: str, q: float, by: str, where: Mapping[str, str] | None = None
    ) -> dict[str, float]:
        """A quantile for each value of label `by`, of the samples whose labels match."""
        rows = self.samples_of(user, name, where or {})
        return _quantiles(rows, q, rows["labels"].map(lambda labels: label(labels, by)))

    def sample_quantiles_over_time(
        self, user: str, name: str, q: float, by: str, where: Mapping[str, str], window_s: float
    ) -> dict[float, dict[str, float]]:
        """`sample_quantiles_ms` of each window with samples, by the middle of the window (seconds since the load phase
        began). A sample is of the time at which its worker reported it, up to 1 s late."""
        rows = self.samples_of(user, name, where)
        values = rows["labels"].map(lambda labels: label(labels, by))
        windows = (rows["t"] - self.load_began) // window_s
        return {
            (float(window) + 0.5) * window_s: _quantiles(
                rows[windows == window], q, values[windows == window]
            )
            for window in sorted(windows.unique())
        }

    def sample_count(self, user: str, name: str, where: Mapping[str, str] | None = None) -> int:
        """How many samples there are, of those whose labels match."""
        return int(self.samples_of(user, name, where or {})["count"].sum())

    def sample_counts(self, user: str, name: str, by: str) -> dict[str, int]:
        """How many samples there are for each value of label `by`."""
        rows = self.samples_of(user, name)
        counts = rows.groupby(rows["labels"].map(lambda labels: label(labels, by)))["count"].sum()
        return {str(value): int(count) for value, count in counts.items()}

    def sample_sum(self, user: str, name: str, where: Mapping[str, str] | None = None) -> float:
        """The values of samples added up, each as exact as its bucket."""
        rows = self.samples_of(user, name, where or {})
        return sum(
            bucket_middle_us(int(bucket)) / 1e3 * int(count)
            for bucket, count in zip(rows["bucket"], rows["count"], strict=True)
        )

    @property
    def users(self) -> list[str]:
        """The kinds of users that measured something."""
        return sorted({user for user, _ in self._samples_by})

    def samples_of(self, user: str, name: str, where: Mapping[str, str] | None = None) -> pd.DataFrame:
        """The rows of what one kind of user measured under a name, of those whose labels match."""
        rows = self._samples_by.get((user, name))
        if rows is None:
            return self.samples.iloc[:0]
        if not where:
            return rows
        chosen = {labels for labels in rows["labels"].unique() if matches(_labels(labels), where)}
        return rows[rows["labels"].isin(chosen)]


def label(text: str, name: str) -> str:
    """Of a sample's labels one, "" where it has none of that name."""
    return _labels(text).get(name, "")


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
