"""What an experiment and a run show on the screen while they go on."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from harness.experiment.ledger import Attempt


def progress_line(event: dict[str, Any]) -> str:
    """What a screen shows of an event; "" for those it does not show."""
    match event["kind"]:
        case "target-ready":
            return f"{len(event['members'])} apiserver(s) ready"
        case "nodes-ready":
            return f"{event['ready']} nodes ready"
        case "step-finished":
            return f"{event['name']}: {event['seconds']:.1f} s"
        case "mark":
            return f"noticed: {event['text']}"
        case "fault-started":
            length = "" if event["seconds"] is None else f" for {event['seconds']:g} s"
            return f"fault: {event['fault']} on {event['member']}{length}"
        case "fault-failed":
            return f"fault {event['fault']} on {event['member']} failed: {event['error']}"
        case "executors" if event["count"] > 1:
            return f"operations by {event['count']} executors: {', '.join(event['members'])}"
        case "exec-started":
            return f"exec: {' '.join(event['command'])}"
        case "exec-output":
            return f"  | {event['line']}"
        case "exec-ended" if event["error"]:
            return f"exec: {event['error']}"
        case "member-ended":
            return f"{event['member']} ended after {event['seconds']:.1f} s, to be started again"
        case "member-restarted":
            return f"{event['member']} serves again, {event['seconds']:.1f} s after it was told to end"
        case "member-restart-failed":
            return f"{event['member']} did not come back: {event['error']}"
        case "run-ended":
            return f"run {event['status']}"
        case _:
            return ""


def left_s(attempts: Iterable[Attempt], arms: Sequence[str]) -> float | None:
    """How long samples of `arms` will take: as long as those of the same arm did; as all did where there is none yet.
    None where there is no sample at all."""
    taken: dict[str, list[float]] = {}
    for attempt in attempts:
        taken.setdefault(attempt.arm, []).append(attempt.seconds)
    if not taken:
        return None
    typical = {arm: statistics.median(seconds) for arm, seconds in taken.items()}
    other = statistics.mean(typical.values())
    return sum(typical.get(arm, other) for arm in arms)


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.0f} s"
