"""Rows about claims and the provisioners that serve them.

A claim's time is from the answer to its creation to its being seen Bound. Requests are all that the provisioners' own
clients sent, watches and leases included; waits for a token of a client's bucket are in no latency, since that begins
with the sending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pandas as pd

from harness.compare.rows.row import Row, Taken
from harness.compare.rows.throttle import throttle_rows
from harness.compare.run import Run

CLAIMS, PROVISIONER = "claims", "provisioner"
TOP_KINDS = 8  # rows of requests by verb and resource; one more has all others together
_SEEN = "claims: from the answer to a claim's creation to its being seen Bound"


def provisioner_rows(runs: Iterable[Run]) -> list[Row]:
    """In the order of a report; none where no run had claims. The kinds of requests with rows of their own are those
    that all runs together had most of."""
    mine = [run for run in runs if _claims(run)]
    if not mine:
        return []
    rows = [
        _row("claims-bound", "Claims bound", "", f"{_SEEN}; the chart has them over time", _bound),
        _row(
            "claims-all-bound",
            "Until every claim was bound",
            "s",
            "from the first claim's creation",
            _all_bound,
        ),
    ]
    rows[0] = _charted(rows[0])
    for q in (0.5, 0.99):
        rows.append(
            _row(f"claim-bound-p{q * 100:.0f}", f"Claim bound p{q * 100:.0f}", "s", _SEEN, _quantile(q))
        )
    rows += [
        _row("claim-bound-last", "Claim bound, the last", "s", _SEEN, _of_event("claims-bound", "last_s")),
        _row(
            "claims-deleted",
            "Until every volume was deleted",
            "s",
            "from the first claim's deletion",
            _of_event("claims-deleted", "seconds"),
        ),
        _row(
            "claim-requests",
            "Provisioners' requests per claim",
            "",
            "all they sent, per bound claim",
            _per_claim,
        ),
    ]
    rows += _kind_rows(_kinds(mine))
    rows += [
        _row("claim-conflicts", "409s to provisioners", "", "answers 409", _codes(409)),
        _row("claim-rejects", "429s to provisioners", "", "answers 429", _codes(429)),
        _row(
            "claim-leader-changes",
            "Leader changes",
            "",
            "locks, of claims or of the one Lease, that a replica took over from another",
            _count("leader_changes"),
        ),
        _row(
            "claim-failures",
            "Failed CreateVolume calls",
            "",
            "of all replicas",
            _count("provisioning_failures"),
        ),
    ]
    return rows + throttle_rows(PROVISIONER, "provisioners", _claims)


def _row(key: str, title: str, unit: str, source: str, value: Callable[[Run], float | None]) -> Row:
    return Row(
        key, title, unit, Taken.RUN, "whole run", source, lambda run: value(run) if _claims(run) else None
    )


def _charted(row: Row) -> Row:
    return replace(row, lower_is_better=None, series=_progress)


def _claims(run: Run) -> bool:
    return any(event["kind"] == "claims-progress" for event in run.events)


def _progress(run: Run) -> pd.Series:
    """How many were bound, each time that the number changed."""
    points = {
        event["t"] - run.load_began: float(event["bound"])
        for event in run.events
        if event["kind"] == "claims-progress"
    }
    return pd.Series({0.0: 0.0, **points} if points else {}, dtype=float)


def _bound(run: Run) -> float | None:
    return max(
        (float(event["bound"]) for event in run.events if event["kind"] == "claims-progress"), default=None
    )


def _all_bound(run: Run) -> float | None:
    return _of_event("claims-bound", "seconds")(run)


def _of_event(kind: str, field: str) -> Callable[[Run], float | None]:
    """Of the event that ends a phase; None where the run never came so far."""

    def value(run: Run) -> float | None:
        return next(
            (float(event[field]) for event in run.events if event["kind"] == kind and field in event), None
        )

    return value


def _quantile(q: float) -> Callable[[Run], float | None]:
    def value(run: Run) -> float | None:
        found = run.sample_quantile_ms(CLAIMS, "claim_bound_ms", q)
        return None if found is None else found / 1e3

    return value


def _per_claim(run: Run) -> float | None:
    bound = _bound(run)
    return run.sent(user=PROVISIONER) / bound if bound else None


def _codes(code: int) -> Callable[[Run], float | None]:
    return lambda run: float(run.sent(user=PROVISIONER, code=code))


def _count(sample: str) -> Callable[[Run], float | None]:
    return lambda run: float(run.sample_count(PROVISIONER, sample))


def _kinds(runs: list[Run]) -> list[tuple[str, str]]:
    """Verb and resource of all requests of provisioners, the most frequent first."""
    frames = [run.requests[run.requests["user"] == PROVISIONER] for run in runs]
    counts = pd.concat(frames).groupby(["verb", "name"], observed=True)["count"].sum()
    return [(str(verb), str(name)) for verb, name in counts.sort_values(ascending=False, kind="stable").index]


def _kind_rows(kinds: list[tuple[str, str]]) -> list[Row]:
    """Their sum is what provisioners sent."""
    top, others = kinds[:TOP_KINDS], kinds[TOP_KINDS:]
    if len(others) == 1:
        return [_kind_row(*kind) for kind in kinds]  # a row of all others would be no shorter
    return [*(_kind_row(*kind) for kind in top), *([_others_row(others)] if others else [])]


def _others_row(kinds: list[tuple[str, str]]) -> Row:
    what = ", ".join(sorted(f"{verb} {name}" for verb, name in kinds))
    return _row(
        "claim-requests-others",
        "Provisioners' requests: all others",
        "",
        f"all replicas: {what}",
        lambda run: float(sum(run.sent(user=PROVISIONER, verb=verb, names=(name,)) for verb, name in kinds)),
    )


def _kind_row(verb: str, name: str) -> Row:
    return _row(
        f"claim-requests-{verb}-{name.replace('/', '-')}",
        f"Provisioners' requests: {verb} {name}",
        "",
        "all replicas",
        lambda run: float(run.sent(user=PROVISIONER, verb=verb, names=(name,))),
    )
