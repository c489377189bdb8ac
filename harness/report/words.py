"""What a report says in sentences: what was compared, and what came out of it in five lines."""

from __future__ import annotations

from harness.compare.comparison import Arm, Compared, Comparison
from harness.compare.inference import Verdict
from harness.compare.run import Run
from harness.report import numbers

LINES = 5
FIRST = (
    *("barrier", "wall-clock", "pod-startup-p99", "claims*", "claim-bound-p99", "watches-busiest"),
    *("memory-busiest", "memory", "cpu-busiest", "request-rate", "rejects", "denials", "fallback-rate"),
    *("delivery-p99-busiest", "terminated-watchers", "informer-sync*"),
)
"""Keys of the rows that a summary prefers, the most important one first; with ``*`` what they begin with."""
_SHOWN = (Verdict.BETTER, Verdict.WORSE)
_SEEN = (Verdict.HIGHER, Verdict.LOWER)


def asked(comparison: Comparison) -> str:
    """One sentence on what was compared."""
    arms = comparison.arms
    if len(arms) == 1:
        return f"{_samples(arms[0])} of {arms[0].name}."
    return f"{', '.join(arm.name for arm in arms[1:])} against {arms[0].name}: {_numbers_of(arms)}."


def _numbers_of(arms: tuple[Arm, ...]) -> str:
    counts = {len(arm.runs) for arm in arms}
    if len(counts) == 1:
        return f"{_samples(arms[0])} of each"
    return ", ".join(f"{_samples(arm)} of {arm.name}" for arm in arms)


def _samples(arm: Arm) -> str:
    return f"{len(arm.runs)} sample{'' if len(arm.runs) == 1 else 's'}"


def noise(comparison: Comparison) -> str:
    """What so few samples leave open; "" where there are enough of each arm."""
    fewest = min((len(arm.runs) for arm in comparison.arms), default=0)
    if len(comparison.arms) < 2:
        return ""
    if fewest == 1:
        return "With one sample of an arm nothing can be said about noise: a difference may be chance."
    return ""


def verdict_lines(comparison: Comparison) -> list[str]:
    """The rows that matter most of each arm against the first, at most `LINES` of an arm: what differs comes first."""
    first = comparison.arms[0].name if comparison.arms else ""
    return [
        _line(compared, first, arm.name)
        for arm in comparison.arms[1:]
        for compared in _matter(comparison, arm.name)
    ]


def main_rows(comparison: Comparison) -> list[Compared]:
    """The rows that a short table has: those that a summary prefers, in the order of the page."""
    return [row for row in comparison.rows if row.row.shown and _preference(row) < len(FIRST)]


def _matter(comparison: Comparison, arm: str) -> list[Compared]:
    """Shown differences of preferred rows, other preferred rows, shown differences of other rows."""
    rows = [row for row in comparison.rows if row.row.shown and row.contrasts.get(arm) is not None]
    places = {row.row.key: (_importance(row, arm), place) for place, row in enumerate(rows)}
    chosen: dict[int, Compared] = {}
    for row in sorted(rows, key=lambda row: places[row.row.key]):
        preferred = _preference(row)
        if preferred < len(FIRST):
            chosen.setdefault(preferred, row)  # one row of those that begin alike
        else:
            chosen.setdefault(len(FIRST) + len(chosen), row)
    return list(chosen.values())[:LINES]


def _preference(row: Compared) -> int:
    key = row.row.key
    fits = (key.startswith(one[:-1]) if one.endswith("*") else key == one for one in FIRST)
    return next((place for place, fit in enumerate(fits) if fit), len(FIRST))


def _importance(row: Compared, arm: str) -> tuple[int, int]:
    contrast = row.contrasts[arm]
    assert contrast is not None
    preferred = _preference(row)
    if preferred < len(FIRST):
        return (0 if contrast.verdict in _SHOWN else 1 if contrast.verdict in _SEEN else 2), preferred
    return (3 if contrast.verdict in _SHOWN else 4), preferred


def _line(compared: Compared, first: str, arm: str) -> str:
    row = compared.row
    taken = "" if row.taken.value == "run" else f" ({row.taken.value})"
    mine, other = (
        numbers.number(compared.figures[name].median, row.unit, row.absent) for name in (arm, first)
    )
    difference = numbers.difference(compared, arm)
    verdict = numbers.verdict(compared.contrasts[arm])
    return f"{row.title}{taken}: {arm} {mine}, {first} {other}, difference {difference}: {verdict}"


def faults_of(run: Run) -> list[str]:
    """The faults that a run met, in words."""
    started = [event for event in run.events if event["kind"] == "fault-started"]
    return [f"{event['fault']} on {event['member']}{_length(event.get('seconds'))}" for event in started]


def _length(seconds: float | None) -> str:
    return "" if seconds is None else f" for {seconds:g} s"
