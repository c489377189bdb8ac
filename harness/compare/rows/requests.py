"""Requests: how many, of which kind, with which answer; what flow control did with them; how long they took."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.compare.rows import families
from harness.compare.rows.builders import (
    busiest_and_sum,
    clients,
    counter,
    peak_rate,
    quantile,
    quantile_source,
    text,
)
from harness.compare.rows.families import chosen, peaks, slug, words
from harness.compare.rows.row import NOTHING_OBSERVED, Row, Taken
from harness.compare.run import Run, Window
from harness.compare.series import Key
from harness.observe.histogram import Histogram

_TOTAL = "apiserver_request_total"
_DURATION = "apiserver_request_duration_seconds"
_WAIT = "apiserver_flowcontrol_request_wait_duration_seconds"
_REJECTED = "apiserver_flowcontrol_rejected_requests_total"
_QUEUE = "apiserver_flowcontrol_current_inqueue_requests"
_SEATS = "apiserver_flowcontrol_current_executing_seats"
_LIMITS = (
    "apiserver_flowcontrol_nominal_limit_seats"  # there on every target with flow control, from its start
)
_SHORT = ("GET", "LIST", "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")
_LONG = ("watch", "watchlist")


def request_rows(runs: Sequence[Run]) -> list[Row]:
    """In the order of a report."""
    return [
        peak_rate("request-rate", "Peak request rate", _TOTAL, Taken.SUM),
        peak_rate("request-rate-busiest", "Peak request rate", _TOTAL, Taken.BUSIEST),
        *families.peak_rates(
            runs, "request-rate", "Peak request rate", _TOTAL, ("verb", "resource", "code"), top=8
        ),
        *_answers(runs),
        *_flow_control(runs),
        *_durations(runs),
    ]


def _answers(runs: Sequence[Run]) -> list[Row]:
    """Refusals and failures by code."""

    def errors(run: Run) -> dict[Key, float]:
        grown = run.increases(_TOTAL, ("code",))
        return {key: sum(members.values()) for key, members in grown.items() if key[0] >= "400"}

    return chosen(
        runs,
        errors,
        lambda labels: [
            counter(
                f"answers-{labels[0]}",
                f"Answers {labels[0]}",
                _TOTAL,
                Taken.SUM,
                where={"code": labels[0]},
            )
        ],
        top=4,
    )


# ---- flow control --------------------------------------------------------------------------------------------------
def _flow_control(runs: Sequence[Run]) -> list[Row]:
    return [
        counter("rejects", "Flow-control rejects", _REJECTED, Taken.SUM, requires=_LIMITS),
        *families.counters(
            runs,
            "rejects",
            "Flow-control rejects",
            _REJECTED,
            ("priority_level", "reason"),
            requires=_LIMITS,
            top=4,
        ),
        *busiest_and_sum("queue", "Queued requests, peak", "", _QUEUE, requires=_LIMITS),
        *_levels(runs, "queue", "Queue of priority level", _QUEUE),
        *busiest_and_sum("seats", "Seats in use, peak", "", _SEATS, requires=_LIMITS),
        *_levels(runs, "seats", "Seats in use of priority level", _SEATS),
        *(
            quantile(
                f"queue-time-p{q * 100:.0f}",
                f"Time in a queue p{q * 100:.0f}",
                _WAIT,
                q,
                where={"execute": "true"},
                window=Window.LOAD,
            )
            for q in (0.5, 0.99)
        ),
    ]


def _levels(runs: Sequence[Run], key: str, title: str, metric: str) -> list[Row]:
    """The busiest member's peak for each priority level."""

    def largest(run: Run) -> dict[str, float]:
        frame = run.frame(metric, by="priority_level")
        names = sorted({str(level) for level in frame.columns.get_level_values(-1)})
        return {
            name: max(peaks(metric, {"priority_level": name})(run).values(), default=0.0) for name in names
        }

    def make(level: str) -> list[Row]:
        where = {"priority_level": level}
        return [
            Row(
                f"{key}-{level}",
                f"{title} {level}, peak",
                "",
                Taken.BUSIEST,
                Window.WHOLE.value,
                f"{text(metric, where)}, highest of all scrapes",
                lambda run: (
                    max(peaks(metric, where)(run).values(), default=0.0) if run.exposes(_LIMITS) else None
                ),
                series=lambda run: run.frame(metric, where).max(axis=1),
            )
        ]

    return chosen(runs, largest, make, top=4)


# ---- durations -----------------------------------------------------------------------------------------------------
def _durations(runs: Sequence[Run]) -> list[Row]:
    rows = []
    for q in (0.5, 0.99):
        p = f"p{q * 100:.0f}"
        rows += [
            quantile(
                f"request-time-{p}",
                f"Request duration {p}, watches aside",
                _DURATION,
                q,
                where={"verb": _SHORT},
                window=Window.LOAD,
            ),
            clients(
                f"client-time-{p}",
                f"Request duration {p} as clients see it, watches aside",
                "ms",
                "all clients: from the sending of a request to the end of its answer; reported up to 1 s later",
                lambda run, q=q: _client_ms(run, q),  # type: ignore[misc]
                window=Window.LOAD.value,
            ),
        ]

    def make(labels: Key, value: Callable[[Run], float | None]) -> list[Row]:
        where = {"verb": labels[0], "resource": labels[1]}
        return [
            Row(
                f"request-time-p99-{slug(labels)}",
                f"Request duration p99: {words(labels)}",
                "ms",
                Taken.SUM,
                Window.LOAD.value,
                quantile_source(_DURATION, 0.99, where),
                value,
                absent=NOTHING_OBSERVED,
            )
        ]

    by = ("verb", "resource")
    return rows + families.quantiles(runs, _DURATION, by, make, where={"verb": _SHORT}, window=Window.LOAD)


def _client_ms(run: Run, q: float) -> float | None:
    frame = run.reported(run.requests, Window.LOAD)
    short = frame[~frame["verb"].isin(_LONG)]
    histogram = Histogram()
    histogram.merge(zip(short["bucket"], short["count"], strict=True))
    found = histogram.quantile_us(q)
    return None if found is None else found / 1e3
