"""Clients: what they waited, retried and read anew, and whether the harness itself kept up."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from harness.compare.rows.builders import clients
from harness.compare.rows.families import chosen
from harness.compare.rows.lateness import lateness_rows
from harness.compare.rows.queues import queue_rows
from harness.compare.rows.row import Row, peak
from harness.compare.rows.throttle import throttle_rows
from harness.compare.run import Run, Window
from harness.observe.histogram import Histogram

_CPU = "swarmlet_process_cpu_seconds_total"
_LOCUST = "locust"  # its processes' names begin so
_LONG = ("WATCH", "CONNECT")  # counted when they end
_OPENED = ("watch", "watchlist")
_TRANSPORT = (
    ("retried", "Requests sent again, as the peer had not begun them"),
    ("lost", "Connections lost under requests"),
    ("dial-failed", "Connections that were not established"),
    ("redialled", "Connections made in place of another"),
    ("stream-reset", "Requests that the peer reset"),
)


def client_rows(runs: Sequence[Run]) -> list[Row]:
    """In the order of a report."""
    return [
        *throttle_rows(),
        *queue_rows(runs),
        *_failures(),
        *_transport_rows(),
        *_reflector_rows(runs),
        *lateness_rows(),
        *_own_rows(),
    ]


# ---- answers and connections ---------------------------------------------------------------------------------------
def _failures() -> list[Row]:
    return [
        clients(
            "client-429s",
            "Answers 429 that clients got",
            "",
            "all clients, by their own count",
            lambda run: float(run.sent(code=429)),
        ),
        clients(
            "client-5xx",
            "Answers of 500 and above that clients got",
            "",
            "all clients, by their own count",
            lambda run: _sent_with(run, run.requests["code"] >= 500),
        ),
        clients(
            "client-unanswered",
            "Requests that got no answer",
            "",
            "all clients: broken connections and time-outs",
            lambda run: _sent_with(run, run.requests["code"] == 0),
        ),
        clients(
            "counted-share",
            "Requests that clients counted, of those that members did",
            "share",
            "answers to clients over the increase of apiserver_request_total, watches and requests for no resource left"
            " out; less than 100 %: those under way at the end, those of a lost worker, and other clients'",
            _counted_share,
            lower_is_better=None,
        ),
    ]


def _counted_share(run: Run) -> float | None:
    grown = run.increases("apiserver_request_total", ("verb", "resource"))
    members = sum(
        sum(values.values()) for (verb, resource), values in grown.items() if verb not in _LONG and resource
    )
    return (
        _sent_with(run, (run.requests["code"] > 0) & ~run.requests["verb"].isin(_OPENED)) / members
        if members
        else None
    )


def _sent_with(run: Run, chosen_rows: pd.Series) -> float:
    return float(run.requests.loc[chosen_rows, "count"].sum())


def _transport_rows() -> list[Row]:
    def count(run: Run, name: str) -> float | None:
        members = run.manifest.results.get("connections")
        return None if members is None else float(sum(counts.get(name, 0) for counts in members.values()))

    return [
        clients(
            f"connections-{name}",
            title,
            "",
            f"all clients' transports: {name}",
            lambda run, name=name: count(run, name),  # type: ignore[misc]
        )
        for name, title in _TRANSPORT
    ]


# ---- reflectors ----------------------------------------------------------------------------------------------------
def _reflector_rows(runs: Sequence[Run]) -> list[Row]:
    """What made reflectors read a state again; without a reflector that did the figure is 0."""

    def counted(run: Run, sample: str, how: str = "") -> float | None:
        if not _reflecting(run):
            return None
        where = {"how": how} if how else {}
        return float(sum(run.sample_count(user, sample, where) for user in run.users))

    rows = [
        clients(
            "relists",
            "States that reflectors read by LIST",
            "",
            "all clients' reflectors: states that came by LIST and not by watch-list, first ones too",
            lambda run: counted(run, "reflector_sync_ms", "list"),
        ),
        clients(
            "reflector-expired",
            "Reflectors: answers 410, revision gone",
            "",
            "all clients' reflectors: lists and watches that had to begin anew",
            lambda run: counted(run, "reflector_expired"),
        ),
        clients(
            "reflector-fallbacks",
            "Reflectors: watch-lists that became LISTs",
            "",
            "all clients' reflectors",
            lambda run: counted(run, "reflector_fallbacks"),
        ),
        clients(
            "reflector-unfinished",
            "Reflectors: watch-lists that ended early",
            "",
            "all clients' reflectors: streams that ended before their initial events did",
            lambda run: counted(run, "reflector_unfinished_watch_lists"),
        ),
    ]
    rows[2:3] = [
        rows[2],
        *chosen(
            runs,
            _fallbacks_by_cause,
            lambda cause: [
                clients(
                    f"reflector-fallbacks-{cause.replace(' ', '-')}",
                    f"Reflectors: watch-lists that became LISTs: {cause}",
                    "",
                    f"all clients' reflectors, cause {cause}",
                    lambda run: _fallbacks_by_cause(run).get(cause, 0.0) if _reflecting(run) else None,
                )
            ],
            top=4,
        ),
    ]
    for q in (0.5, 0.99):
        rows.append(
            clients(
                f"reflector-sync-p{q * 100:.0f}",
                f"Reflectors: time to a whole state p{q * 100:.0f}",
                "ms",
                "all clients' reflectors: from a list's or watch-list's beginning to its whole state",
                lambda run, q=q: _sync_ms(run, q),  # type: ignore[misc]
            )
        )
    return rows


def _reflecting(run: Run) -> bool:
    return any(run.sample_count(user, "reflector_sync_ms") for user in run.users)


def _fallbacks_by_cause(run: Run) -> dict[str, float]:
    found: dict[str, float] = {}
    for user in run.users:
        for cause, count in run.sample_counts(user, "reflector_fallbacks", "cause").items():
            found[cause] = found.get(cause, 0.0) + count
    return found


def _sync_ms(run: Run, q: float) -> float | None:
    histogram = Histogram()
    for user in run.users:
        rows = run.samples_of(user, "reflector_sync_ms")
        histogram.merge(zip(rows["bucket"], rows["count"], strict=True))
    found = histogram.quantile_us(q)
    return None if found is None else found / 1e3


# ---- the harness itself --------------------------------------------------------------------------------------------
def _own_rows() -> list[Row]:
    return [
        clients(
            "locust-cpu",
            "Locust's own CPU",
            "cores",
            f"increase of {_CPU} of all Locust processes, over the scenario's seconds of real time",
            _locust_cores,
            window=Window.SCENARIO.value,
            series=_locust_rate,
        ),
        clients(
            "locust-cpu-highest",
            "Locust's busiest process, highest CPU",
            "cores",
            f"{_CPU} of each Locust process, growth a real second between two scrapes, highest; 1 is all it can have",
            lambda run: peak(_locust_rates(run).max(axis=1)),
            window=Window.SCENARIO.value,
        ),
        clients(
            "loop-late",
            "Beats of the workers' loops over 20 ms late",
            "share",
            "results.host of the manifest: late beats / beats of all workers' event loops",
            lambda run: _share(run, "late_beats", "beats"),
        ),
        clients(
            "jobs-late",
            "Modelled jobs over 20 ms late",
            "share",
            "results.host of the manifest: jobs of emulated members that this machine completed late / jobs",
            lambda run: _share(run, "late", "jobs"),
        ),
    ]


def _share(run: Run, late: str, of: str) -> float | None:
    host = run.manifest.results.get("host", {})
    return host[late] / host[of] if host.get(of) else None


def _locust_rates(run: Run) -> pd.DataFrame:
    frame = run.processes(_CPU)
    mine = run.during(frame[[name for name in frame.columns if name.startswith(_LOCUST)]], Window.SCENARIO)
    if mine.empty:
        return pd.DataFrame()
    # This machine's cores, whose seconds are real ones.
    seconds = run.manifest.pace.real_s(1.0) * mine.index.to_series().diff()
    return mine.where(mine > 0).diff().clip(lower=0).div(seconds, axis=0).iloc[1:]


def _locust_rate(run: Run) -> pd.Series:
    return _locust_rates(run).sum(axis=1, min_count=1)


def _locust_cores(run: Run) -> float | None:
    rates = _locust_rate(run).dropna()
    if rates.empty:
        return None
    seconds = pd.Series(rates.index, index=rates.index).diff()
    seconds.iloc[0] = seconds.iloc[1:].median() if len(seconds) > 1 else 1.0
    return float((rates * seconds).sum() / seconds.sum())
