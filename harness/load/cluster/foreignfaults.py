"""Faults of a pool that the run did not start: each emulated member is asked for them, once a second.

The pool of a run tells of its faults through its supervisor. One that somebody else started
(``swarmlet pool up``, given by ``--kubeconfig``) does not; but each of its members lists its last events at
``/swarmlet/faults``. A real apiserver has no such page, and is asked once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import msgspec

from harness.load.cluster.errands import Errands
from harness.load.plan import Target
from harness.pool.faults import PATH
from harness.transport.sinks import Answer
from harness.wire.request import Request, Response

ASK_EVERY_S = 1.0

Tell = Callable[[dict[str, Any], float], object]
"""An event as a pool's supervisor tells it, with its member, and how many seconds ago it was."""


class _Listed(msgspec.Struct):
    """What `apiserver.faults.active.Faults.describe` lists."""

    faults: list[dict[str, Any]]
    events: list[dict[str, Any]]
    up_s: float


class MemberFaults:
    """What is new in a member's answers. `asked` is whether it is to be asked again."""

    def __init__(self, member: str) -> None:
        self.asked = True
        self._member = member
        self._known = False
        self._last = 0
        self._up_s = 0.0

    def take(self, answer: Answer) -> list[tuple[dict[str, Any], float]]:
        """Events with their ages, in order. Of what was before the first answer, those count that are active still;
        they begin now."""
        listed = _listed(answer)
        if listed is None:
            self.asked = self._known or _may_be_one(answer)
            return []
        first, self._known = not self._known, True
        if listed.up_s < self._up_s:  # a new process, which counts from 1
            self._last = 0
        self._up_s = listed.up_s
        new = [event for event in listed.events if event["number"] > self._last]
        self._last = max([self._last, *(event["number"] for event in new)])
        if first:
            return [(self._begun(fault), 0.0) for fault in listed.faults]
        return [self._happened(event) for event in new]

    def _begun(self, fault: dict[str, Any]) -> dict[str, Any]:
        kept = {key: fault[key] for key in ("id", "fault", "seconds", "hits")}
        return {**kept, "kind": "fault-started", "fault_kind": fault["kind"], "member": self._member}

    def _happened(self, event: dict[str, Any]) -> tuple[dict[str, Any], float]:
        told = {key: value for key, value in event.items() if key not in ("number", "age_s")}
        return {**told, "member": self._member}, float(event["age_s"])


def _listed(answer: Answer) -> _Listed | None:
    if not isinstance(answer, Response) or answer.status != 200:
        return None
    try:
        return msgspec.json.decode(answer.body, type=_Listed)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _may_be_one(answer: Answer) -> bool:
    """Whether one that has not shown the page yet may have it: it was away, overloaded, or our token had ended."""
    return not isinstance(answer, Response) or answer.status in (401, 429) or answer.status >= 500


class ForeignFaults:
    """Asks the members of `target`, on a greenlet for each; blocks nobody. `tell` hears what happens."""

    def __init__(self, target: Target, tell: Tell) -> None:
        self._target = target
        self._tell = tell
        self._greenlets = [gevent.spawn(self._follow, index) for index in range(len(target.members))]

    def refresh(self, target: Target) -> None:
        """Go on with the target's credentials as they are now."""
        self._target = target

    def stop(self) -> None:
        gevent.killall(self._greenlets)

    def _follow(self, index: int) -> None:
        """Asks on one connection, and on another one with fresh credentials."""
        faults = MemberFaults(self._target.members[index].name)
        while faults.asked:
            target = self._target
            with Errands(msgspec.structs.replace(target, members=(target.members[index],))) as errands:
                while faults.asked and target is self._target:
                    for event, age_s in faults.take(errands.ask(_LIST)):
                        self._tell(event, age_s)
                    gevent.sleep(ASK_EVERY_S if faults.asked else 0)


_LIST = Request("faults", "GET", PATH, "faults")
