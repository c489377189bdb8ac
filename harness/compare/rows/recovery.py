"""Rows about what a member that goes does to watches: how long kubelets were without some of theirs, and on which
members the watches were before and after.

A kubelet is whole again when every watch that it had is open again. The rows of members are there where some run had a
member that ended and came back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from harness.compare.rows import families
from harness.compare.rows.builders import clients, text
from harness.compare.rows.row import Row
from harness.compare.run import Run, Window
from harness.compare.series import Where
from harness.observe.histogram import Histogram

USER = "kubelet"
MISSING, LEFT = "watches_missing_ms", "watches_left_missing"  # as harness.load.missing names them
_LOST = {"why": "lost"}
_WATCHES, _OPEN = "apiserver_longrunning_requests", {"verb": "WATCH"}
_SOURCE = "kubelets: from the first of its watches that broke until all that it had are open again"
_ENDED, _BACK = "member-ended", "member-restarted"


def recovery_rows(runs: Sequence[Run]) -> list[Row]:
    """In the order of a report."""
    rows = [
        clients(
            f"kubelet-whole-{name}",
            f"Kubelets without some of their watches, {words}",
            "ms",
            _SOURCE + more,
            partial(_missing_ms, q),
        )
        for name, words, q, more in (
            ("p50", "p50", 0.5, ""),
            ("p99", "p99", 0.99, ""),
            ("last", "longest", 1.0, "; of the last one, so after it all are whole"),
        )
    ]
    rows += [
        clients(
            "kubelet-losses",
            "Times that a kubelet lost watches",
            "",
            "kubelets: losses of watches by a broken connection, those at one time counted once",
            lambda run: _count(run, MISSING) if _has_kubelets(run) else None,
        ),
        clients(
            "kubelet-never-whole",
            "Kubelets that did not get all watches back",
            "",
            "kubelets: stopped at the end of the run with a watch still missing after a broken connection",
            lambda run: _count(run, LEFT) if _has_kubelets(run) else None,
        ),
    ]
    return [*rows, *_moves(runs)]


def _missing_ms(q: float, run: Run) -> float | None:
    rows = run.samples_of(USER, MISSING, _LOST)
    histogram = Histogram()
    histogram.merge(zip(rows["bucket"], rows["count"], strict=True))
    found = histogram.quantile_us(q)
    return None if found is None else found / 1e3


def _count(run: Run, sample: str) -> float:
    return float(run.sample_count(USER, sample, _LOST))


def _has_kubelets(run: Run) -> bool:
    return run.sample_count(USER, "reflector_sync_ms") > 0


# ---- where the watches went ------------------------------------------------------------------------------------------
def _moves(runs: Sequence[Run]) -> list[Row]:
    where: Where = _OPEN
    told = text(_WATCHES, where)
    rows = []
    for key, title, source, at in (
        (
            "watches-before-restart",
            "Watches before a member ended",
            f"{told}, last scrape before it that the member answered",
            _before,
        ),
        (
            "watches-after-restart",
            "Watches after it came back",
            f"{told}, last scrape before objects are created or deleted again, or before the last step's end",
            _after,
        ),
    ):
        rows += families.members(runs, key, title, "", source, cache(partial(_at, at)))
    return rows


def _at(when: Callable[[Run], float | None], run: Run) -> dict[str, float]:
    """Open watches of each member at its last scrape up to then; {} where no member ended and came back. One that was
    told to end answers no scrape any more, long before its watches end with it."""
    t = when(run)
    if t is None:
        return {}
    frame = run.during(run.frame(_WATCHES, _OPEN), Window.WHOLE).loc[:t]
    if frame.empty:
        return {}
    last = frame.ffill().iloc[-1].dropna()
    return {str(member): float(value) for member, value in last.items()}


def _before(run: Run) -> float | None:
    """The end of the first member, where one came back later."""
    ended = [_t(run, event) for event in run.events if event["kind"] == _ENDED]
    return ended[0] if ended and _back(run) is not None else None


def _after(run: Run) -> float | None:
    """The last moment of what was at rest after the last member's coming back."""
    back = _back(run)
    if back is None:
        return None
    times = {
        kind: [_t(run, event) for event in run.events if event["kind"] == kind and _t(run, event) > back]
        for kind in ("phase-started", "step-finished")
    }
    if times["phase-started"]:
        return times["phase-started"][0]
    return times["step-finished"][-1] if times["step-finished"] else None


def _back(run: Run) -> float | None:
    found = [_t(run, event) for event in run.events if event["kind"] == _BACK]
    return found[-1] if found else None


def _t(run: Run, event: dict[str, object]) -> float:
    t = event["t"]
    assert isinstance(t, float)
    return t - run.load_began
