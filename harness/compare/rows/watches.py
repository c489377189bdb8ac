"""Watches: what members sent to watchers and what they broke off; delivery as clients see it is `delivery`'s, and what
the loss of a member did to them `recovery`'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.compare.rows import families
from harness.compare.rows.builders import counter, quantile, quantile_source
from harness.compare.rows.delivery import delivery_rows
from harness.compare.rows.families import slug, words
from harness.compare.rows.recovery import recovery_rows
from harness.compare.rows.row import NOTHING_OBSERVED, Row, Taken
from harness.compare.run import Run, Window
from harness.compare.series import Key

_EVENTS = "apiserver_watch_events_total"
_BYTES = "apiserver_watch_events_sizes_sum"
_INIT = "apiserver_init_events_total"
_TERMINATED = "apiserver_terminated_watchers_total"
_WATCH_LIST = "apiserver_watch_list_duration_seconds"
_ANY = "apiserver_longrunning_requests"  # there on every target that serves watches
_RESOURCE = ("resource",)


def watch_rows(runs: Sequence[Run]) -> list[Row]:
    """In the order of a report."""
    rows = []
    for key, title, metric, unit in (
        ("watch-events", "Watch events delivered", _EVENTS, ""),
        ("watch-bytes", "Bytes of watch events delivered", _BYTES, "bytes"),
    ):
        rows += [
            counter(f"{key}-{taken.value}", title, metric, taken, unit=unit, lower_is_better=None)
            for taken in (Taken.BUSIEST, Taken.SUM)
        ]
    title = "Watch events delivered"
    rows += families.counters(runs, "watch-events", title, _EVENTS, _RESOURCE, top=4, lower_is_better=None)
    title = "Initial events that watch caches sent"
    rows.append(counter("init-events", title, _INIT, Taken.SUM, requires=_ANY))
    rows += families.counters(runs, "init-events", title, _INIT, _RESOURCE, requires=_ANY, top=3)
    title = "Terminated watchers"
    rows.append(counter("terminated-watchers", title, _TERMINATED, Taken.SUM, requires=_ANY))
    rows += families.counters(
        runs, "terminated-watchers", title, _TERMINATED, _RESOURCE, requires=_ANY, top=4
    )
    return [*rows, *_watch_lists(runs), *delivery_rows(), *recovery_rows(runs)]


def _watch_lists(runs: Sequence[Run]) -> list[Row]:
    rows = [
        quantile(
            f"watch-list-p{q * 100:.0f}",
            f"Watch-list until its initial events were sent p{q * 100:.0f}",
            _WATCH_LIST,
            q,
        )
        for q in (0.5, 0.99)
    ]

    def make(labels: Key, value: Callable[[Run], float | None]) -> list[Row]:
        source = quantile_source(_WATCH_LIST, 0.99, {"resource": labels[0]})
        key, title = f"watch-list-p99-{slug(labels)}", f"Watch-list p99: {words(labels)}"
        return [Row(key, title, "ms", Taken.SUM, Window.WHOLE.value, source, value, absent=NOTHING_OBSERVED)]

    return rows + families.quantiles(runs, _WATCH_LIST, _RESOURCE, make, top=4)
