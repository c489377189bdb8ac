"""Choosing benchmarks, and keeping and comparing their results."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import results, suites
from benchmarks.child import ChildFailed, in_child
from benchmarks.registry import MANY, Benchmark, Better, Line, Plan, Run, benchmarks, measure

suites.register_all()


def _shown(lines: list[Line], before: list[Line]) -> str:
    console = Console(file=io.StringIO(), width=140, force_terminal=True, color_system="standard")
    with console.capture() as shown:
        console.print(results.table(lines, {line.name: line for line in before}))
    return shown.get()


def test_only_takes_a_suite_by_its_name_and_lines_by_pattern() -> None:
    assert {each.name.partition("/")[0] for each in benchmarks(["codec", "member"])} == {"codec", "member"}
    assert [each.name for each in benchmarks(["*/paths"])] == ["wire/paths"]
    assert benchmarks(["nothing"]) == []
    assert len(benchmarks()) == len({each.name for each in benchmarks()})


def test_a_saved_result_is_read_back_to_four_digits(tmp_path: Path) -> None:
    line = Line("codec/get", "us", [1.23456, 2.0], Better.HIGHER, 3.0)
    results.save(tmp_path / "new" / "2026-01-01.json", results.make_results([line], repeats=2, size=1.0))
    loaded = results.load(tmp_path / "new" / "2026-01-01.json")
    assert loaded.by_name()["codec/get"] == Line("codec/get", "us", [1.235, 2.0], Better.HIGHER, 3.0)
    assert loaded.machine["cores"]


@pytest.mark.parametrize(("better", "colour"), [(Better.LOWER, "\x1b[32m"), (Better.HIGHER, "\x1b[31m")])
def test_a_difference_is_coloured_by_which_way_is_better(better: Better, colour: str) -> None:
    now, then = Line("a", "us", [5.0, 5.0], better), Line("a", "us", [10.0, 10.0], better)
    text = _shown([now], [then])
    assert "×0.50" in text
    assert colour in text


def test_a_difference_within_the_ranges_is_not_coloured() -> None:
    text = _shown([Line("a", "us", [5.0, 10.0])], [Line("a", "us", [10.0, 12.0])])
    assert " ×0.68" in text


def test_an_aim_is_met_or_missed_by_the_median() -> None:
    text = _shown([Line("a", "us", [4.0, 5.0, 9.0], real=10.0, aim=5.0), Line("b", "us", [6.0], aim=5.0)], [])
    assert "5.00 met" in text
    assert "5.00 missed" in text


def test_a_line_without_a_predecessor_is_not_compared() -> None:
    assert "–" in _shown([Line("new", "us", [5.0])], [Line("old", "us", [5.0])])


def test_committed_results_can_be_read() -> None:
    newest = results.latest()
    assert newest is not None
    assert results.load(newest).by_name()[results.MACHINE].values


def test_a_failing_child_says_why() -> None:
    with pytest.raises(ChildFailed, match="ValueError: invalid width -1"):
        in_child(textwrap.shorten, text="two words", width=-1)


def test_counts_scale_and_have_a_floor() -> None:
    assert Plan(size=0.5).count(100) == 50
    assert Plan(size=0.001).count(100) == 4


def test_repeats_are_taken_in_rounds_and_few_of_what_is_slow() -> None:
    order = []

    def run(name: str) -> Run:
        def lines(plan: Plan) -> Iterator[Line]:
            assert plan.repeats == 1
            order.append(name)
            yield Line(name, "us", [float(len(order))])

        return lines

    chosen = [Benchmark("quick", run("quick"), MANY), Benchmark("slow", run("slow"), 1)]
    quick, slow = measure(chosen, Plan(repeats=2), lambda text: None)
    assert order == ["quick", "slow", "quick"]
    assert (quick.values, slow.values) == ([1.0, 3.0], [2.0])
