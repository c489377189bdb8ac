"""Experiments beside the 5,000-node comparison that was published: ``python -m benchmarks.validation``.

With a report's folder (``reports/runs/NAME``) the figures that can be compared are kept in
``benchmarks/results/validation``; without one the tables of docs/validation.md are written anew from what is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

KEPT = Path(__file__).parent / "results" / "validation"
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
BEGIN, END = "<!-- {}: python -m benchmarks.validation -->", "<!-- end -->"
OFF = 2.0
"""A ratio further from the published one than this is marked, and the document gives the reason."""


class Published(NamedTuple):
    """One figure of the published runs, `one` 0 where one master can have none. `row` and `members` name a report's
    row, `scale` multiplies its values."""

    title: str
    row: str
    members: str
    one: float
    three: float
    scale: float = 1.0
    unit: str = ""


PUBLISHED = (
    Published("Barrier of creation", "barrier", "run", 38.2, 15.3, 1 / 60, "min"),
    Published("Wall clock", "wall-clock", "run", 119.4, 75.8, 1 / 60, "min"),
    Published("Peak watches, busiest", "watches-busiest", "busiest", 174_476, 106_612),
    Published("Goroutines, busiest", "goroutines-busiest", "busiest", 385_559, 232_634),
    Published("Go heap, busiest", "heap-busiest", "busiest", 55.4, 40.3, 1e-9, "GB"),
    Published("Events delivered, busiest", "watch-events-busiest", "busiest", 729e6, 340e6),
    Published("Peak request rate", "request-rate", "sum", 9_329, 15_879, 1.0, "/s"),
    Published("etcd p99, highest", "etcd-p99-create-highest", "sum", 700, 100, 1.0, "ms"),
    Published("Rejects", "rejects", "sum", 1_098_233, 240_336),
    Published("Queue of `system`, peak", "queue-system", "busiest", 3_707, 3_118),
    Published("Terminated watchers", "terminated-watchers", "sum", 38_039, 17_276),
    Published("403s by the node authorizer", "denials", "sum", 100, 78_848),
    Published("Watch-lists of configmaps and secrets", "watchlists", "sum", 422_979, 399_121),
    Published("Their fallback LISTs", "lists", "sum", 8_120, 27_535),
    Published("Fallback rate", "fallback-rate", "sum", 1.9, 6.5, 100, "%"),
    Published("Nodes that talked to several members", "several-members", "run", 0, 2_584),
)


class Kept(msgspec.Struct):
    """What stays of an experiment: for each arm, by row (``barrier run``), one value of each sample."""

    name: str
    title: str
    arms: dict[str, dict[str, list[float]]]


def keep(report: Mapping[str, Any], name: str, rows: Sequence[tuple[str, str]]) -> Kept:
    """Of a report.json these rows, as (key, members). A row that it lacks, or a sample without a value, is left out."""
    found = {(row["key"], row["members"]): row for row in report["rows"]}
    arms: dict[str, dict[str, list[float]]] = {arm["name"]: {} for arm in report["arms"]}
    for key, members in rows:
        for arm, figure in found.get((key, members), {"arms": {}})["arms"].items():
            values = [float(f"{value:.6g}") for value in figure["values"] if value is not None]
            if values:
                arms[arm][f"{key} {members}"] = values
    return Kept(name, report["title"], arms)


def beside_published(kept: Kept) -> Iterator[str]:
    """Lines of a table: the first arm and the second, their ratio, and the published one."""
    one, three = kept.arms.values()
    yield "| figure | published: 1 master | HA | ratio | here: 1 master | HA | ratio | off by |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for each in PUBLISHED:
        key = f"{each.row} {each.members}"
        if key not in one or key not in three:
            continue
        here = [median(arm[key]) * each.scale for arm in (one, three)]
        theirs = each.three / each.one if each.one else None
        ours = here[1] / here[0] if here[0] else None
        cells = [each.title + (f", {each.unit}" if each.unit else "")]
        cells += [_number(each.one), _number(each.three), "–" if theirs is None else _number(theirs)]
        cells += [_number(here[0]), _number(here[1]), "–" if ours is None else _number(ours)]
        cells.append("" if theirs is None else _off(theirs, ours))
        yield f"| {' | '.join(cells)} |"


def by_arm(kept: Kept) -> Iterator[str]:
    """Lines of a table: every arm's rows, median and range."""
    names = list(kept.arms)
    yield f"| figure | {' | '.join(names)} |"
    yield f"| --- |{' ---: |' * len(names)}"
    for each in PUBLISHED:
        key = f"{each.row} {each.members}"
        if any(key in arm for arm in kept.arms.values()):
            cells = [_range(arm.get(key, ()), each.scale) for arm in kept.arms.values()]
            yield f"| {each.title + (f', {each.unit}' if each.unit else '')} | {' | '.join(cells)} |"


def written(document: str, kept: Sequence[Kept]) -> str:
    """The document with the table of each experiment that it has marks for. One master and three stand beside the
    published ones."""
    for each in kept:
        begin = BEGIN.format(each.name)
        before, found, rest = document.partition(begin)
        if found:
            table = "\n".join(beside_published(each) if _are_published(each) else by_arm(each))
            document = f"{before}{begin}\n{table}\n{END}{rest.partition(END)[2]}"
    return document


def load(folder: Path = KEPT) -> list[Kept]:
    return [msgspec.json.decode(path.read_bytes(), type=Kept) for path in sorted(folder.glob("*.json"))]


def _are_published(kept: Kept) -> bool:
    return list(kept.arms) == ["1 master", "HA, 3 masters"]


def _off(theirs: float, ours: float | None) -> str:
    """By which factor the ratio differs; in bold where that is much."""
    if ours is None:
        return "**no figure**"
    if not ours:
        return "**none here**"
    factor = max(ours / theirs, theirs / ours)
    return f"**{_number(factor)}**" if factor > OFF else _number(factor)


def _range(values: Sequence[float], scale: float) -> str:
    if not values:
        return "–"
    scaled = [value * scale for value in values]
    low, high = _number(min(scaled)), _number(max(scaled))
    return _number(median(scaled)) + (f" ({low} to {high})" if low != high else "")


def _number(value: float) -> str:
    """Three significant digits or more, thousands apart."""
    if value >= 1000:
        return f"{value:,.0f}" if value < 1e6 else f"{value / 1e6:,.4g} M"
    return f"{value:.3g}"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) > 1:
        print("usage: python -m benchmarks.validation [REPORT'S FOLDER]", file=sys.stderr)
        return 2
    for argument in arguments:
        path = Path(argument) / "report.json"
        if not path.is_file():
            print(f"{path}: there is no such file; name a folder that holds a report", file=sys.stderr)
            return 2
        rows = [(each.row, each.members) for each in PUBLISHED]
        kept = keep(msgspec.json.decode(path.read_bytes()), Path(argument).resolve().name, rows)
        KEPT.mkdir(parents=True, exist_ok=True)
        data = msgspec.json.format(msgspec.json.encode(kept), indent=1)
        (KEPT / f"{kept.name}.json").write_bytes(data + b"\n")
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), load()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
