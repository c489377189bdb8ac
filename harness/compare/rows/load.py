"""Load of the members: watches, goroutines, memory, Go's heap, file descriptors, CPU, threads and collector of the Go
runtime. Of each the busiest member and all together, of most how uneven they are, and each member."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from harness.compare.rows import families
from harness.compare.rows.builders import busiest_and_sum, counter, imbalance, text
from harness.compare.rows.row import Row, Taken, busiest, total
from harness.compare.run import Run, Window
from harness.compare.series import Where

WATCHES: Where = {"verb": "WATCH"}
_MODELLED = " (an emulated member's is modelled: docs/model.md)"
_REAL = " (a real member's alone)"
_CPU = "process_cpu_seconds_total"


def load_rows(runs: Sequence[Run]) -> list[Row]:
    """In the order of a report."""
    return [
        *_gauges(runs, "watches", "Peak watches", "", "apiserver_longrunning_requests", WATCHES),
        *_gauges(runs, "goroutines", "Goroutines, peak", "", "go_goroutines", remark=_MODELLED),
        *_gauges(
            runs,
            "memory",
            "Resident memory, peak",
            "bytes",
            "process_resident_memory_bytes",
            remark=_MODELLED,
        ),
        *_gauges(
            runs, "heap", "Go heap in use, peak", "bytes", "go_memstats_heap_inuse_bytes", remark=_MODELLED
        ),
        *_gauges(runs, "fds", "Open file descriptors, peak", "", "process_open_fds", remark=_MODELLED),
        *_cpu_rows(runs),
        *busiest_and_sum("threads", "Threads of the Go runtime, peak", "", "go_threads", remark=_REAL),
        *(
            counter(
                f"gc-pauses-{taken.value}",
                "Pauses of Go's collector, together",
                "go_gc_duration_seconds_sum",
                taken,
                unit="s",
                window=Window.LOAD,
            )
            for taken in (Taken.BUSIEST, Taken.SUM)
        ),
    ]


def _gauges(
    runs: Sequence[Run],
    key: str,
    title: str,
    unit: str,
    metric: str,
    where: Where | None = None,
    remark: str = "",
) -> list[Row]:
    source = f"{text(metric, where or {})}, highest of all scrapes{remark}"
    return [
        *busiest_and_sum(key, title, unit, metric, where=where, remark=remark),
        imbalance(key, f"{title}: imbalance", metric, where=where, remark=remark),
        *families.members(runs, key, title, unit, source, families.peaks(metric, where or {})),
    ]


# ---- CPU -----------------------------------------------------------------------------------------------------------
def _cpu_rows(runs: Sequence[Run]) -> list[Row]:
    source = f"increase of {_CPU} over the load phase's seconds{_MODELLED}"

    def row(
        taken: Taken,
        figure: Callable[[dict[str, float]], float | None],
        over: Callable[[pd.DataFrame], pd.Series] | None = None,
    ) -> Row:
        return Row(
            f"cpu-{'imbalance' if taken is Taken.RATIO else taken.value}",
            "CPU: imbalance" if taken is Taken.RATIO else "CPU in the load phase",
            "cores" if over else "",
            taken,
            Window.LOAD.value,
            source,
            lambda run: figure(found) if (found := _cores(run)) else None,
            series=None if over is None else lambda run: over(run.rate(_CPU)),
        )

    each = families.members(runs, "cpu", "CPU in the load phase", "cores", source, _cores, Window.LOAD)
    return [
        row(Taken.BUSIEST, lambda cores: max(cores.values()), busiest),
        row(Taken.SUM, lambda cores: sum(cores.values()), total),
        row(Taken.RATIO, _uneven),
        *each,
    ]


def _cores(run: Run) -> dict[str, float]:
    """CPU seconds a second of each member; {} where the target does not tell, or there was no load phase."""
    bounds = run.bounds(Window.LOAD)
    if bounds is None or not run.exposes(_CPU):
        return {}
    seconds = run.scraped_s(Window.LOAD)
    return (
        {str(member): grown / seconds for member, grown in run.increase(_CPU, window=Window.LOAD).items()}
        if seconds
        else {}
    )


def _uneven(cores: dict[str, float]) -> float | None:
    whole = sum(cores.values())
    return max(cores.values()) * len(cores) / whole if whole else None
