"""The master's oversight of its workers while a run goes on: who is lost and what then, whose nodes go where, whether
all that was counted has come."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from harness.load.arguments import RunOptions
from harness.load.users import replaceable
from harness.load.workers.nodes import NODES_NAMED, Handover, LostWorker
from harness.load.workers.roster import Lost, Roster, only
from harness.observe.record import RunRecord

logger = logging.getLogger("swarmlet")


class Oversight:
    """`shares` says whether a worker, by name, does a share of the scenario's operations; `fail` ends the run."""

    def __init__(
        self,
        environment: Any,
        options: RunOptions,
        record: RunRecord,
        shares: Callable[[str], bool],
        fail: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._options = options
        self._record = record
        self._shares = shares
        self._fail = fail
        self._roster = Roster(environment.runner)
        self._handover = Handover(options.kubelets, take_over=options.lost_worker is LostWorker.TAKE_OVER)
        self._placed: Counter[str] = Counter()
        """What became of kubelets that were started after the others, since it was told last."""

    @property
    def distributed(self) -> bool:
        return self._roster.distributed

    def take(self, report: Mapping[str, Any], worker: int) -> bool:
        """Whether a worker's report is to be counted."""
        if not self._roster.take(worker, report["number"], last=report["last"]):
            return False
        if not self._roster.lost(worker):
            self._handover.reported(worker, report["nodes"])
        self._roster.compare_clocks(worker, report["sent"], time.time())
        return True

    def look(self) -> None:
        """Notice who has gone, and tell where kubelets went."""
        self._notice()
        if self._placed:
            self._record.event("nodes-placed", dict(self._placed))
            self._placed.clear()

    def name_nodes(self, worker: int, count: int) -> None:
        """Answer a worker whose kubelets take the place of others."""
        self._notice()  # whose place it is
        if self._roster.lost(worker):
            return
        names, made, empty = self._handover.wanted(worker, count)
        client_id = self._roster.client_id(worker)
        if client_id is not None:
            answer = {"names": names, "made": made, "empty": empty}
            self._environment.runner.send_message(NODES_NAMED, answer, client_id)
        self._placed.update(taken_over=len(names), new=made, left=empty)

    def close(self, *, in_order: bool) -> None:
        """Put into the record whether everything that workers counted has come, and once."""
        reports = self._roster.reports
        if not self.distributed or not reports:
            return
        self._record.manifest.results["reports"] = {
            str(index): msgspec.to_builtins(reports[index]) for index in sorted(reports)
        }
        waiting = self._handover.waiting if in_order else 0
        gone = [f"{waiting} nodes of lost workers were taken over by none"] if waiting else []
        for text in [*self._roster.gaps(in_order), *gone, *self._roster.clocks()]:
            self._record.mark(text)

    def _notice(self) -> None:
        for lost in self._roster.look():
            self._lost(lost)

    def _lost(self, lost: Lost) -> None:
        """Locust starts its users on others; where one of them cannot begin in the middle, the run is over."""
        names, policy = self._handover.lost(lost.worker), self._options.lost_worker
        share = " and its share of the operations" if self._shares(f"worker-{lost.worker}") else ""
        others_can = replaceable(self._environment.user_classes, self._options.scenario)
        if policy is LostWorker.END or share or not only(lost.users, others_can):
            self._fail(f"worker {lost.worker} was lost, and its kubelets{share} with it")
            return
        logger.warning("worker %d was lost with %d kubelets: %s", lost.worker, len(names), policy.value)
        self._record.event("worker-lost", {"index": lost.worker, "nodes": len(names), "then": policy.value})
