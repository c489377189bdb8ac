"""Two sets of records as the arms of one comparison."""

from __future__ import annotations

from collections.abc import Sequence

from harness.compare.run import Run

Side = tuple[Sequence[Run], str]
"""Runs, and what they are called where their own arms do not say."""


def as_sides(first: Side, other: Side) -> tuple[list[Run], tuple[str, str]]:
    """All runs, those of `first` in front, with arms that tell the sides apart; and a name for each side.

    Runs keep the arms that they were made for. Those that were made for none are samples of one arm, named by their
    side's label; an arm that both sides have gets that label behind its name, and a number where labels are equal too.
    """
    labels = (first[1], other[1]) if first[1] != other[1] else (f"{first[1]} 1", f"{other[1]} 2")
    arms = []
    for (runs, _), label in zip((first, other), labels, strict=True):
        for run in runs:
            run.manifest.arm = run.manifest.arm or label
        arms.append(list(dict.fromkeys(run.manifest.arm for run in runs)))
    both = set(arms[0]) & set(arms[1])
    names = []
    for (runs, _), label, own in zip((first, other), labels, arms, strict=True):
        for run in runs:
            if run.manifest.arm in both:
                run.manifest.arm = f"{run.manifest.arm} ({label})"
        names.append(own[0] if len(own) == 1 and own[0] not in both else label)
    return [*first[0], *other[0]], (names[0], names[1])
