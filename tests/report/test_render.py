"""The three files hold the figures, and nothing from anywhere else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.compare.run import Run
from harness.report.render import render
from tests.records import make_record


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
    runs.append(Run(make_record(tmp_path / "runs" / "late", arm="3 masters", marks=(("late <host>", True),))))
    render(runs, tmp_path, "One master or three?")
    return tmp_path


def test_all_three_files_say_the_same_barrier(folder: Path) -> None:
    data = msgspec.json.decode((folder / "report.json").read_bytes())
    barrier = next(row for row in data["rows"] if row["key"] == "barrier")
    assert barrier["arms"]["3 masters"] == {
        "n": 2,
        "values": [21.0, 22.0],
        "median": 21.5,
        "range": [21.0, 22.0],
    }
    against = barrier["against_first"]["3 masters"]
    assert (against["difference"], against["verdict"], against["more"]) == (-20.0, "too few samples", 2)
    assert (
        "| 41.5 s (41 s to 42 s) | 21.5 s (21 s to 22 s) | −20 s (×0.518) | too few samples: 2 more of each |"
        in (folder / "report.md").read_text()
    )
    assert "21.5 s" in (folder / "report.html").read_text()


def test_markdown_tables_are_whole(folder: Path) -> None:
    lines = (folder / "report.md").read_text().splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("| figure | members | 1 master"))
    columns = lines[head].count("|")
    assert columns == 7
    end = lines.index("", head)
    assert end - head > 15
    assert {line.count("|") for line in lines[head:end]} == {columns}


def test_pictures_of_the_markdown_exist(folder: Path) -> None:
    text = (folder / "report.md").read_text()
    pictures = [line.split("](")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert "charts/watches-busiest.svg" in pictures
    assert all((folder / picture).read_text().startswith("<svg") for picture in pictures)


def test_html_needs_nothing_from_the_network_and_escapes_text(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    assert "<script src" not in text
    assert "<link" not in text
    assert "late &lt;host&gt;" in text


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_what_was_not_equal_stands_above_the_table(folder: Path, name: str) -> None:
    text = (folder / name).read_text()
    assert "target.members" in text
    assert "seeds" in text  # one arm has a sample more


def test_what_is_declared_is_not_said_to_be_unequal(tmp_path: Path) -> None:
    runs = [Run(make_record(tmp_path / f"r{n}", arm=str(n), members=n)) for n in (1, 3)]
    render(runs, tmp_path, "declared", ["pool.members"])
    assert msgspec.json.decode((tmp_path / "report.json").read_bytes())["findings"] == []
