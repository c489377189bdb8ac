"""EtcdMetrics, ResourceUsageSummary and MetricsForE2E, from what the scraper of a run kept.

Here they come together with the target: which series are a member's of etcd, which processes are the control plane's,
and why there is nothing to say. What the figures are is the business of `harness.clusterloader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from harness.clusterloader import e2emetrics, etcdmetrics, resourceusage
from harness.clusterloader.resourceusage import Constraint, Looks
from harness.clusterloader.series import Series
from harness.load.recordseries import families, values_at
from harness.load.scraping import etcd_sources
from harness.observe.exposition import split
from harness.observe.scraper import OWN_CPU, OWN_MEMORY, PROCESS_CPU, PROCESS_MEMORY, STORE_UNREAD, STORE_UP
from harness.pool.binaries.finding import CONTROLLER_MANAGER, SCHEDULER

UP = "up"
NOT_SCRAPED = "no member's /metrics was scraped"
NO_ANSWER = "its /metrics did not answer"
EMBEDDED = "the pool's embedded store is no etcd and has none of its figures; --etcd-servers gives the pool a real one"
NOT_SYNCED = (
    "without --data-dir the pool's etcd spares its fsync: how long it commits and writes is no disk's time"
)
UNKNOWN_ETCD = "nobody said where the target's etcd is"


class Skipped(NamedTuple):
    """What is not measured, at which of its calls, and why."""

    method: str
    identifier: str
    reason: str


class RecordWindow(msgspec.Struct, frozen=True):
    """What a `record-window` note says: a part of the test, in seconds since 1970."""

    method: str
    label: str
    identifier: str
    step: str
    from_s: float
    until_s: float
    limits: str = ""

    def skipped(self, reason: str, part: str = "") -> Skipped:
        """All of it, or a part."""
        return Skipped(f"{self.label} {part}".rstrip(), self.identifier, reason)


class Summary(NamedTuple):
    """A file of the artifacts."""

    name: str
    content: object


class Evaluated(NamedTuple):
    """What came of a window. `values` are for people; `violation` is "" where every limit holds; without `summaries` it
    is skipped."""

    summaries: Sequence[Summary]
    values: dict[str, object]
    skipped: Sequence[Skipped]
    violation: str = ""


class Evaluator:
    """`table` has the series of a record, `target` is its manifest's; `constraints` are limits by the path of their
    file."""

    def __init__(
        self, table: pa.Table, target: Mapping[str, Any], constraints: Mapping[str, Mapping[str, Constraint]]
    ) -> None:
        self._table = table
        self._target = target
        self._constraints = constraints
        self._members = [member["name"] for member in target.get("members", ())]
        self._etcd = [source.member for source in etcd_sources(target)]

    def evaluate(self, window: RecordWindow) -> Evaluated:
        """One call."""
        if window.method == etcdmetrics.METHOD:
            return self._etcd_metrics(window)
        if window.method == resourceusage.METHOD:
            return self._resource_usage(window)
        assert window.method == e2emetrics.METHOD, window.method
        return self._metrics_for_e2e(window)

    # ---- etcd ------------------------------------------------------------------------------------------------------
    def _etcd_metrics(self, window: RecordWindow) -> Evaluated:
        if not self._etcd:
            existing = self._target.get("backend") == "existing"
            return Evaluated((), {}, [window.skipped(UNKNOWN_ETCD if existing else EMBEDDED)])
        found = families(self._table, {*etcdmetrics.HISTOGRAMS, *etcdmetrics.SIZES, STORE_UP, STORE_UNREAD})
        read = [name for name in self._etcd if _answers(found.get(name, ()), STORE_UP, window)]
        skipped = [
            window.skipped(_why_unread(found.get(name, ()), window), name)
            for name in self._etcd
            if name not in read
        ]
        if not read:
            return Evaluated((), {}, skipped)
        store = self._target["store"]
        if "members" in store and not self._target["options"]["store"]["data_dir"]:
            skipped.append(window.skipped(NOT_SYNCED, "of a disk"))
        own = {name: etcdmetrics.summarize(found[name], window.from_s, window.until_s) for name in read}
        together = [series for name in read for series in found[name]]
        whole = etcdmetrics.summarize(together, window.from_s, window.until_s)
        summaries = [Summary(window.method, whole)]
        values = etcdmetrics.figures(whole)
        if len(self._etcd) > 1:
            for name, summary in own.items():
                summaries.append(Summary(f"{window.method}_{name}", summary))
                values.update((f"{name}: {text}", v) for text, v in etcdmetrics.figures(summary).items())
        return Evaluated(summaries, values, skipped)

    # ---- CPU and memory --------------------------------------------------------------------------------------------
    def _resource_usage(self, window: RecordWindow) -> Evaluated:
        found = families(
            self._table, {OWN_CPU, OWN_MEMORY, PROCESS_CPU, PROCESS_MEMORY, UP, STORE_UP, STORE_UNREAD}
        )
        looks: dict[str, Looks] = {}
        skipped: list[Skipped] = []
        for process, container in self._containers():
            seen, lacking = _looks(found.get(process, ()), window, scraped=container not in _UNSCRAPED)
            if seen is None:
                skipped.append(window.skipped(lacking, process))
            else:
                looks[f"{process}/{container}"] = seen
        summary = resourceusage.summarize(looks, window.from_s, window.until_s)
        for name in sorted(looks.keys() - {usage.name for usage in summary.get("100", ())}):
            skipped.append(window.skipped("it was not looked at twice", name.partition("/")[0]))
        if not summary:
            return Evaluated((), {}, skipped or [window.skipped(NOT_SCRAPED)])
        constraints = self._constraints.get(window.limits, {})
        measured = {usage.name.partition("/")[2] for usage in summary["100"]}
        for name in sorted(constraints.keys() - measured):
            skipped.append(window.skipped("no container of that name is measured", f"limits of {name}"))
        values = resourceusage.figures(summary)
        if self._target.get("backend") == "emulated":
            values["kube-apiserver"] = "modelled (docs/model.md)"
        violation = resourceusage.violation(summary, constraints)
        return Evaluated([Summary(window.method, summary)], values, skipped, violation)

    def _containers(self) -> Iterator[tuple[str, str]]:
        """The processes of the control plane, each with the name of its container. The rest of a run's processes are
        the harness's own: of the store and the balancer of an emulated pool no cluster has the like."""
        for name in self._members:
            yield name, "kube-apiserver"
        for name in self._etcd:
            yield name, "etcd"
        for name in self._target.get("processes", ()):
            component = name.rpartition("-")[0]
            if component in _UNSCRAPED:
                yield name, component

    # ---- /metrics --------------------------------------------------------------------------------------------------
    def _metrics_for_e2e(self, window: RecordWindow) -> Evaluated:
        found: list[e2emetrics.Scraped] = []
        up: dict[str, bool] = {}
        for member, text, value in values_at(self._table, window.until_s, self._members):
            name, labels = split(text)
            if name == UP:
                up[member] = value > 0
            elif name not in (PROCESS_CPU, PROCESS_MEMORY):  # what the system says of it
                found.append(e2emetrics.Scraped(member, {"__name__": name, **labels}, value))
        if not any(up.values()):
            return Evaluated((), {}, [window.skipped(NOT_SCRAPED)])
        skipped = [window.skipped(NO_ANSWER, name) for name in self._members if not up.get(name)]
        answered = [item for item in found if up.get(item.member)]
        values: dict[str, object] = {
            f"{name}: series": sum(item.member == name for item in answered)
            for name in sorted(up)
            if up[name]
        }
        content = e2emetrics.collect(answered)
        return Evaluated([Summary(window.method, content)], values, skipped)


_UNSCRAPED = (SCHEDULER, CONTROLLER_MANAGER)
"""The components of a pool whose /metrics nobody scrapes."""


def _answers(series: Sequence[Series], name: str, window: RecordWindow) -> bool:
    """Whether it answered in a window, or last before it."""
    return any(
        item.name == name and (item.highest(window.from_s, window.until_s) or 0.0) > 0 for item in series
    )


def _why_unread(series: Sequence[Series], window: RecordWindow) -> str:
    """The last reason why a member of etcd did not answer."""
    said = [
        (item.times[-1], item.labels["why"])
        for item in series
        if item.name == STORE_UNREAD and item.times[0] <= window.until_s
    ]
    return f"its /metrics cannot be read: {max(said)[1]}" if said else NO_ANSWER


def _looks(series: Sequence[Series], window: RecordWindow, *, scraped: bool) -> tuple[Looks | None, str]:
    """What is known of a process, or why nothing is."""
    named = {item.name: item for item in series}
    if not scraped:
        cpu, memory = named.get(PROCESS_CPU), named.get(PROCESS_MEMORY)
        if cpu is None or memory is None:
            return None, "it did not run"
        return Looks(tuple(cpu.times), cpu, memory), ""
    up = named.get(STORE_UP) or named.get(UP)
    if up is None or not _answers([up], up.name, window):
        return None, _why_unread(series, window)
    cpu, memory = named.get(OWN_CPU), named.get(OWN_MEMORY)
    if cpu is None or memory is None:
        return None, f"its /metrics has no {OWN_CPU if cpu is None else OWN_MEMORY}"
    times = tuple(t for t, value in zip(up.times, up.values, strict=True) if value > 0)
    return Looks(times, cpu, memory), ""
