"""Charts: the lines over samples, what is marked, what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import altair as alt
import pandas as pd
import pytest

from harness.compare.comparison import Comparison, compare
from harness.compare.run import Run
from harness.report.charts import Chart, charts
from harness.report.charts.chart import EVENT, MEDIAN, POINTS, SAMPLE
from harness.report.charts.lines import event_marks, median_line, spread, with_time
from harness.report.charts.palette import DARK_COLOURS, DASHES, LIGHT_COLOURS, MARKS
from harness.report.charts.timeseries import LEAST, MOST, in_unit, points_of_a_line
from tests.records import LOAD, make_record


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("charts")
    paths = [
        make_record(
            folder / f"{members}-{n}", arm=f"{members} members", sample=n, members=members, barrier_s=30.0 + n
        )
        for n in (1, 2)
        for members in (1, 3)
    ]
    for path in paths:
        if path.name.startswith("3"):
            later = path.name.endswith("2")
            line = {"t": LOAD + 10 + 2 * later, "kind": "fault-started", "fault": "lag", "member": "member-1"}
            with (path / "events.jsonl").open("a") as events:
                events.write(json.dumps({**line, "seconds": 5.0}) + "\n")
    return compare([Run(path) for path in paths])


@pytest.fixture(scope="module")
def by_key(compared: Comparison) -> dict[str, Chart]:
    return {chart.key: chart for chart in charts(compared)}


def test_each_kind_of_chart_is_there_and_valid_vega_lite(by_key: dict[str, Chart]) -> None:
    for key in ("barrier", "request-rate", "watches-busiest", "members-watches", "latency-requests"):
        chart = by_key[key]
        spec = {**chart.drawing, "datasets": {POINTS: chart.data.head(3).astype(object).to_dict("records")}}
        alt.Chart.from_dict(spec, validate=True)
        assert chart.data.isna().sum().drop("value", errors="ignore").sum() == 0


def test_every_axis_says_what_it_counts(by_key: dict[str, Chart]) -> None:
    for chart in by_key.values():
        layers = chart.drawing.get("spec", chart.drawing)["layer"]
        for axis in ("x", "y"):
            titles = {layer["encoding"][axis].get("title") for layer in layers if axis in layer["encoding"]}
            assert titles - {None} or (axis == "y" and "seconds" in chart.data), chart.key
    assert by_key["barrier"].drawing["layer"][0]["encoding"]["x"]["title"] == "seconds"


def test_each_row_of_a_chart_is_linked(compared: Comparison, by_key: dict[str, Chart]) -> None:
    keys = {row.row.key for row in compared.rows}
    assert {"watches-busiest", "watches-sum"} <= set(by_key["watches-busiest"].rows)
    assert all(set(chart.rows) <= keys for chart in by_key.values())
    assert "pod-startup-p99" not in by_key  # a distribution shows it
    assert set(by_key["watches-busiest"].data["panel"]) == {"busiest", "sum"}


def test_members_have_a_panel_each(by_key: dict[str, Chart]) -> None:
    panels = set(by_key["members-watches"].data["panel"])
    assert panels == {"1 members: member-0", *(f"3 members: member-{k}" for k in range(3))}


def test_a_fault_is_marked_once_an_arm_at_the_median_time(
    compared: Comparison, by_key: dict[str, Chart]
) -> None:
    marks = event_marks(compared.arms)
    assert marks[["t", "arm", "sample"]].to_numpy().tolist() == [[11.0, "3 members", "lag on member-1, 5 s"]]
    data = by_key["watches-busiest"].data
    assert set(data.loc[data["what"] == EVENT, "panel"]) == {"busiest", "sum"}
    members = by_key["members-watches"].data
    marked = set(members.loc[members["what"] == EVENT, "panel"])
    assert marked == {f"3 members: member-{k}" for k in range(3)}  # not the arm that had none
    assert "lag on member-1" in by_key["watches-busiest"].svg()


def test_what_does_not_change_has_no_chart(by_key: dict[str, Chart]) -> None:
    assert not [key for key in by_key if key.startswith("rejects")]


def test_columns_hold_texts_once_and_numbers_short(by_key: dict[str, Chart]) -> None:
    columns = by_key["watches-busiest"].columns()
    assert columns["arm"]["texts"] == ["1 members", "3 members"]
    assert len(columns["arm"]["codes"]) == len(columns["t"]) == len(columns["value"])
    assert None in columns["value"]  # an event has no value


# ---- lines ---------------------------------------------------------------------------------------------------------
def series(*pairs: tuple[float, float]) -> pd.Series:
    return pd.Series(dict(pairs), dtype=float)


def test_the_median_is_read_off_each_line_where_half_of_them_have_one() -> None:
    one, two = series((0, 0), (10, 10)), series((0, 10), (10, 20), (20, 30))
    three = series((20, 50), (30, 50))
    found = median_line([one, two, three], 5)
    assert found.to_dict() == {0.0: 5.0, 5.0: 10.0, 10.0: 15.0, 20.0: 40.0}


def test_one_sample_is_bold_itself_and_several_are_thin() -> None:
    line = series((0, 1), (5, 2))
    alone = spread({"a": [line]}, {"a": ["sample 1"]}, 100)
    assert set(alone["what"]) == {MEDIAN}
    assert set(alone["sample"]) == {"sample 1"}
    both = spread({"a": [line, line]}, {"a": ["sample 1", "sample 2"]}, 100)
    assert both.groupby("what")["sample"].unique().map(list).to_dict() == {
        MEDIAN: ["median of samples"],
        SAMPLE: ["sample 1", "sample 2"],
    }


def test_a_long_line_keeps_its_peaks() -> None:
    line = pd.Series([0.0] * 503 + [9.0] + [0.0] * 496, index=[float(t) for t in range(1000)])
    found = spread({"a": [line]}, {"a": ["s"]}, 50)
    assert len(found) <= 51
    assert found["value"].max() == 9.0


def test_arms_without_points_have_no_lines() -> None:
    found = spread({"a": [pd.Series(dtype=float)], "b": []}, {"a": ["s"], "b": []}, 50)
    assert found.empty


def test_times_are_minutes_from_five_minutes_on() -> None:
    frame = pd.DataFrame({"t": [0.0, 300.0]})
    assert with_time(frame)[1] == "seconds"
    longer, unit = with_time(pd.DataFrame({"t": [0.0, 301.0 * 60]}))
    assert (unit, longer["t"].max()) == ("minutes", 301.0)


@pytest.mark.parametrize(
    ("unit", "highest", "value", "name"),
    [
        ("bytes", 100.0, 100.0, "bytes"),
        ("bytes", 3 * 2**20, 3.0, "MiB"),
        ("bytes", 3 * 2**30, 3.0, "GiB"),
        ("ms", 4_999.0, 4_999.0, "milliseconds"),
        ("ms", 5_000.0, 5.0, "seconds"),
        ("share", 0.5, 50.0, "per cent"),
        ("/s", 1.0, 1.0, "per second"),
    ],
)
def test_axes_have_a_unit_that_fits(unit: str, highest: float, value: float, name: str) -> None:
    data, found = in_unit(pd.DataFrame({"value": [0.0, highest]}), unit)
    assert (data["value"].max(), found) == (value, name)


def test_lines_have_fewer_points_the_more_there_are(compared: Comparison) -> None:
    assert points_of_a_line(compared, 1) == MOST
    assert points_of_a_line(compared, 10_000) == LEAST
    assert LEAST < points_of_a_line(compared, 100) < MOST


def test_arms_differ_in_more_than_colour() -> None:
    assert len(set(LIGHT_COLOURS)) == len(set(DARK_COLOURS)) == len(set(MARKS)) == len(LIGHT_COLOURS)
    assert len({tuple(dash) for dash in DASHES}) == len(DASHES) == len(LIGHT_COLOURS)


def test_a_process_that_ended_and_one_that_is_back_are_marked_too(tmp_path: Path) -> None:
    folder = make_record(tmp_path / "r")
    with (folder / "events.jsonl").open("a") as events:
        events.write(
            json.dumps({"t": LOAD + 3, "kind": "process-exited", "process": "member-0", "code": 1})
            + "\n"
            + json.dumps({"t": LOAD + 9, "kind": "member-restarted", "member": "member-0", "seconds": 6.0})
            + "\n"
        )
    marks = event_marks(compare([Run(folder)]).arms)
    assert marks["sample"].tolist() == ["member-0 ended", "member-0 is back"]
