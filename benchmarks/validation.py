"""Experiments beside the 5,000-node comparison that was published: ``python -m benchmarks.validation``.

With an experiment's folder (``reports/runs/NAME``) the figures that can be compared are kept in
``benchmarks/results/validation``; without one the tables of docs/validation.md are written anew from what is kept. Arms
that were run apart (``--arm``) are kept together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec

from harness.experiment.ledger import read_ledger
from harness.experiment.plan import ExperimentPlan
from harness.observe.record import Manifest, read_manifest
from harness.wire.errors import ConfigError

KEPT = Path(__file__).parent / "results" / "validation"
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
BEGIN, END = "<!-- {}: python -m benchmarks.validation -->", "<!-- end -->"
ARMS = ("1 master", "HA, 3 masters")
"""What was published, as our experiments name it."""
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


class Made(msgspec.Struct):
    """What an arm's figures were made by: the commit (``-dirty`` with changes that are not in it), the Python, the
    model's pace, how many samples."""

    commit: str
    python: str
    pace: float
    samples: int


class Kept(msgspec.Struct):
    """What stays of an experiment: for each arm, by row (``barrier run``), one value of each sample; and what made
    it."""

    name: str
    title: str
    arms: dict[str, dict[str, list[float]]]
    made: dict[str, Made] = {}


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


def made(manifests: Sequence[Manifest]) -> dict[str, Made]:
    """By arm, of the runs that count. Where several commits or Pythons made samples of an arm, all are named."""
    found: dict[str, Made] = {}
    for arm in dict.fromkeys(manifest.arm for manifest in manifests):
        own = [manifest for manifest in manifests if manifest.arm == arm]
        commits, pythons = (
            ", ".join(dict.fromkeys(manifest.versions.get(key, "unknown") for manifest in own))
            for key in ("commit", "python")
        )
        found[arm] = Made(commits, pythons, own[0].pace.factor, len(own))
    return found


def joined(before: Kept, now: Kept, order: Sequence[str]) -> Kept:
    """Arms of both, those of `now` where both have one, in this order; one that is not in it is no arm any more."""
    arms, by = before.arms | now.arms, before.made | now.made
    names = [name for name in order if name in arms]
    return Kept(
        now.name,
        now.title,
        {name: arms[name] for name in names},
        {name: by[name] for name in names if name in by},
    )


def beside_published(kept: Kept) -> Iterator[str]:
    """Lines of a table: one master and three, their ratio, and the published one. An arm that was not run yet has no
    figures."""
    yield "| figure | published: 1 master | HA | ratio | here: 1 master | HA | ratio | off by |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for each in PUBLISHED:
        key = f"{each.row} {each.members}"
        found = [kept.arms.get(arm, {}).get(key) for arm in ARMS]
        if not any(found):
            continue
        one, three = (median(values) * each.scale if values else None for values in found)
        theirs = each.three / each.one if each.one else None
        ours = three / one if one and three is not None else None
        cells = [each.title + (f", {each.unit}" if each.unit else "")]
        cells += [_number(value) for value in (each.one, each.three, theirs, one, three, ours)]
        cells.append("" if theirs is None or one is None or three is None else _off(theirs, ours))
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


def tables(kept: Sequence[Kept]) -> list[Kept]:
    """What has a table each: the experiments, and `disturbed`: one master of ha-500 beside the three of why-403s that
    were restarted and late as the published three were."""
    by = {each.name: each for each in kept}
    if not {"ha-500", "why-403s"} <= set(by):
        return list(kept)
    one, three = by["ha-500"].arms[ARMS[0]], by["why-403s"].arms["both"]
    return [*kept, Kept("disturbed", "", {ARMS[0]: one, ARMS[1]: three})]


def made_lines(kept: Kept) -> Iterator[str]:
    """Below a table: what each arm was made by."""
    for arm, by in kept.made.items():
        samples = f"{by.samples} sample{'' if by.samples == 1 else 's'}"
        pace = "real time" if by.pace == 1 else f"pace {by.pace:g}"
        yield f"- *{arm}*: {samples}, {pace}, commit {by.commit}, Python {by.python}."


def written(document: str, kept: Sequence[Kept]) -> str:
    """The document with the table of each experiment that it has marks for. One master and three stand beside the
    published ones."""
    for each in tables(kept):
        begin = BEGIN.format(each.name)
        before, found, rest = document.partition(begin)
        if found:
            table = list(beside_published(each) if _are_published(each) else by_arm(each))
            below = list(made_lines(each))
            text = "\n".join([*table, *([""] if below else []), *below])
            document = f"{before}{begin}\n{text}\n{END}{rest.partition(END)[2]}"
    return document


def load() -> list[Kept]:
    return [msgspec.json.decode(path.read_bytes(), type=Kept) for path in sorted(KEPT.glob("*.json"))]


def of_experiment(folder: Path, plan: ExperimentPlan) -> Kept:
    """What an experiment's report and records give, with what is kept of its other arms. Raises ConfigError without a
    report."""
    path = folder / "report.json"
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file; name an experiment's folder that holds a report")
    report = msgspec.json.decode(path.read_bytes())
    now = keep(report, plan.name, [(each.row, each.members) for each in PUBLISHED])
    counted = [sample for arm in report["arms"] for sample in arm["samples"] if not sample["left_out"]]
    now.made = made([read_manifest(folder / "samples" / sample["record"]) for sample in counted])
    before = next((each for each in load() if each.name == plan.name), now)
    return joined(before, now, plan.named(()))


def _are_published(kept: Kept) -> bool:
    return set(kept.arms) <= set(ARMS)


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


def _number(value: float | None) -> str:
    """Three significant digits or more, thousands apart."""
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value:,.0f}" if value < 1e6 else f"{value / 1e6:,.4g} M"
    return f"{value:.3g}"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) > 1:
        print("usage: python -m benchmarks.validation [EXPERIMENT'S FOLDER]", file=sys.stderr)
        return 2
    for argument in arguments:
        folder = Path(argument)
        try:
            kept = of_experiment(folder, read_ledger(folder).plan)
        except ConfigError as error:
            print(error, file=sys.stderr)
            return 2
        KEPT.mkdir(parents=True, exist_ok=True)
        data = msgspec.json.format(msgspec.json.encode(kept), indent=1)
        (KEPT / f"{kept.name}.json").write_bytes(data + b"\n")
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), load()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
