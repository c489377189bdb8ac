"""Nodes whose machines die and start again in the middle of a run, as a scenario orders it.

The scenario says which (`harness.clusterloader.measurements.nodefailure`), the master passes that on to every worker,
and whichever has the node carries it out. A worker knows its nodes by Locust's own list of its users, so nothing is
kept for a run in which none fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from harness.clusterloader.measurements.nodefailure import FAULT
from harness.clusterloader.messages import FailNodes, RebootNodes, decode
from harness.observe.record import RunRecord

ORDERED = "swarmlet-node-failures"
"""Locust's message from master to workers: ``{"body"}``, a `FailNodes` or `RebootNodes`."""
FAILED, REBOOTED = "node-failed", "node-rebooted"
"""A worker's notes to the master: `node`."""

Tell = Callable[[str, dict[str, Any]], None]


@runtime_checkable
class Simulated(Protocol):
    """A user of Locust's that is a node, named once it has begun."""

    node: str

    def fail(self) -> bool:
        """Die without a word. False where it does not run."""
        ...

    def reboot(self) -> bool:
        """Start again, some time later. False where it had not died."""
        ...


def nodes_of(runner: Any) -> Iterator[Simulated]:
    """Those that a Locust process runs."""
    for greenlet in list(runner.user_greenlets):
        user = greenlet.args[0]
        if isinstance(user, Simulated):
            yield user


def carry_out(body: bytes, nodes: Iterable[Simulated], tell: Tell) -> None:
    """Do to one's own nodes what the master orders; those of others are somebody else's."""
    message = decode(body)
    if not isinstance(message, FailNodes | RebootNodes):
        return
    names, fails = set(message.names), isinstance(message, FailNodes)
    for node in nodes:
        if node.node in names and (node.fail() if fails else node.reboot()):
            tell(FAILED if fails else REBOOTED, {"node": node.node})


class FailedNodes:
    """The master's count. `chosen` are nodes that were to fail, `failed` and `rebooted` those that did."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Something happened in the run."""
        if kind == "fault-started" and fields.get("fault_kind") == FAULT:
            self._counts["chosen"] += len(fields["nodes"])
        elif kind in (FAILED, REBOOTED):
            self._counts[kind.removeprefix("node-")] += 1

    def keep(self, record: RunRecord) -> None:
        """Put the counts into the record of a run that is over; nothing where no node was to fail."""
        if not self._counts:
            return
        counts = {what: self._counts[what] for what in ("chosen", "failed", "rebooted")}
        record.manifest.results["node_failures"] = counts
        if untouched := counts["chosen"] - counts["failed"]:
            record.mark(f"{untouched} of {counts['chosen']} nodes that were to fail ran on no worker")
        if away := counts["failed"] - counts["rebooted"]:
            record.mark(f"{away} of {counts['failed']} nodes that failed did not come back")
