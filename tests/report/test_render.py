"""The files of a report hold the figures, and nothing from anywhere else."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pandas as pd
import pytest
import vl_convert

from harness.compare.comparison import compare
from harness.compare.run import Run
from harness.report import words
from harness.report.charts import Chart
from harness.report.charts.timeseries import ALL_POINTS
from harness.report.data import SCHEMA_VERSION, Report, report_data
from harness.report.render import render
from tests.records import make_record

HOSTILE = "<script>alert(1)</script> | `x` *y*"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of two arms with two samples each, and one sample that does not count."""
    tmp_path = tmp_path_factory.mktemp("report")
    runs = [
        Run(
            make_record(
                tmp_path / "runs" / f"{arm}-{n}", arm=arm, sample=n, members=members, barrier_s=barrier + n
            )
        )
        for n in (1, 2)
        for arm, members, barrier in (("1 master", 1, 40.0), ("3 masters", 3, 20.0))
    ]
    runs.append(Run(make_record(tmp_path / "runs" / "late", arm="3 masters", marks=((HOSTILE, True),))))
    template = tmp_path / "short.txt.j2"
    template.write_text(
        "{{ report.title }}: {% for row in report.rows if row.key == 'barrier' %}"
        "{{ row.arms['1 master'].median | number(row.unit) }}{% endfor %}"
    )
    render(runs, tmp_path, "One master or three?", template=template)
    return tmp_path


def report(folder: Path) -> Report:
    """As its own schema reads it; unknown fields are refused."""
    return msgspec.json.decode((folder / "report.json").read_bytes(), type=Report)


def test_all_files_say_the_same_barrier(folder: Path) -> None:
    barrier = next(row for row in report(folder).rows if row.key == "barrier")
    figure = barrier.arms["3 masters"]
    assert (figure.n, figure.values, figure.median, figure.range) == (2, [21.0, 22.0], 21.5, (21.0, 22.0))
    against = barrier.against_first["3 masters"]
    assert against is not None
    assert (against.difference, against.verdict, against.more) == (-20.0, "too few samples", 2)
    assert (
        "| 41.5 s (41 to 42 s) | 21.5 s (21 to 22 s) | −20 s (×0.518) | too few samples: 2 more of each |"
        in (folder / "report.md").read_text()
    )
    assert "21.5 s" in (folder / "report.html").read_text()
    assert (folder / "short.txt").read_text() == "One master or three?: 41.5 s"


def test_report_json_has_its_schemas_fields_in_its_order(folder: Path) -> None:
    found = msgspec.json.decode((folder / "report.json").read_bytes())
    assert found["schema_version"] == SCHEMA_VERSION
    assert list(found) == list(Report.__struct_fields__)
    left_out = [sample for arm in report(folder).arms for sample in arm.samples if sample.left_out]
    assert [(sample.record, sample.left_out) for sample in left_out] == [("late", HOSTILE)]
    assert all((folder / chart).is_file() for row in report(folder).rows for chart in row.charts)


def test_every_field_of_report_json_is_documented(folder: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "report-json.md").read_text()
    row = report(folder).rows[0]
    contrast = next(each for row in report(folder).rows for each in row.against_first.values() if each)
    figure = next(iter(row.arms.values()))
    for struct in (report(folder), row, contrast, figure):
        assert [name for name in struct.__struct_fields__ if f"`{name}`" not in text] == []
    assert f"`schema_version` is {SCHEMA_VERSION}" in text


def test_markdown_begins_with_the_verdict_and_folds_the_rest(folder: Path) -> None:
    lines = (folder / "report.md").read_text().splitlines()
    assert lines[0] == "# One master or three?"
    assert lines[2] == "3 masters against 1 master: 2 samples of each."
    assert lines[4].startswith("- Barrier")
    heads = [index for index, line in enumerate(lines) if line.startswith("| figure | 1 master |")]
    folded = next(index for index, line in enumerate(lines) if line.startswith("<details>"))
    assert heads[0] < folded < heads[1]
    for head in heads:
        end = lines.index("", head)
        assert end - head > 2
        assert {line.count("|") for line in lines[head:end]} == {6}
    assert sum("<details>" in line for line in lines) == sum("</details>" in line for line in lines)


def test_pictures_of_the_markdown_exist_and_are_svg_with_axes(folder: Path) -> None:
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (folder / "report.md").read_text())
    assert "charts/watches-busiest.svg" in pictures
    for picture in pictures:
        assert (folder / picture).read_text().startswith("<svg")
    watches = (folder / "charts" / "watches-busiest.svg").read_text()
    assert "seconds since the load phase began" in watches
    assert ">count<" in watches


def test_html_needs_nothing_from_the_network_is_small_and_escapes_text(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    assert "<script src" not in text
    assert "<link" not in text
    assert "default-src 'none'" in text
    assert "<script>alert(1)</script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; | `x` *y*" in text
    assert len(text) < 5_000_000


def test_every_link_of_the_page_has_its_place(folder: Path) -> None:
    text = (folder / "report.html").read_text().split("<script>")[0]
    places = set(re.findall(r'id="([^"]+)"', text))
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert {"group-throughput", "group-load", "conditions", "chart-barrier"} <= links
    assert links <= places
    assert len(re.findall(r'id="([^"]+)"', text)) == len(places)


def test_every_shown_row_says_its_source_and_window_beside_it(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    shown = [row for row in report(folder).rows if row.shown]
    assert len(re.findall(r"<dt>source</dt>", text)) == len(shown)
    assert all(f'id="row-{row.key}"' in text for row in shown)


def test_markdown_escapes_what_came_from_outside(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    assert r"&lt;script&gt;alert(1)&lt;/script&gt; \| \`x\` \*y\*" in text
    assert "<script>" not in text


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_what_was_not_equal_stands_above_the_table(folder: Path, name: str) -> None:
    text = (folder / name).read_text()
    table = text.index("| figure |" if name.endswith("md") else "<table")
    assert text.index("target.members") < table
    assert text.index("Noticed") < table


def test_what_is_declared_is_not_said_to_be_unequal_and_one_sample_says_nothing_of_noise(
    tmp_path: Path,
) -> None:
    runs = [Run(make_record(tmp_path / f"r{n}", arm=str(n), members=n)) for n in (1, 3)]
    comparison = compare(runs, ["pool.members"])
    assert report_data(comparison, "declared", []).findings == []
    assert "nothing can be said about noise" in words.noise(comparison)


def test_one_arm_has_a_report_without_differences(tmp_path: Path) -> None:
    comparison = compare([Run(make_record(tmp_path / "r", arm="only"))])
    data = report_data(comparison, "one run", [])
    assert (data.asked, data.verdicts, words.noise(comparison)) == ("1 sample of only.", [], "")
    assert all(row.against_first == {} for row in data.rows)


def test_a_page_of_as_many_points_as_there_may_be_is_below_5_mb() -> None:
    times = [float(k) * 5.123 for k in range(1000)]
    data = pd.DataFrame({"t": times, "value": [t * 17.77 for t in times]})
    data = data.assign(arm="HA, 3 masters", sample="sample 1", what="sample", panel="busiest")
    chart = Chart("key", "title", "load", {}, data)
    a_point = len(msgspec.json.encode(chart.columns())) / len(data)
    scripts = len(vl_convert.javascript_bundle())  # type: ignore[call-arg]  # the stub forgets the default
    assert scripts + a_point * ALL_POINTS < 4_500_000
