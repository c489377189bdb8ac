"""The auditor: fetches, at quiet points and at the end, what the server says is the truth, and has the checker compare.

For each scope that has informers in this process it sends a consistent LIST (no resourceVersion, all at once), which is
a claim like any other. What an audit costs the server shows under the user "auditor".
"""

from __future__ import annotations

import msgspec

from harness.client.limiter import TokenBucket
from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    CloseConnections,
    Disarm,
    Event,
    Failed,
    Note,
    Sample,
    Send,
)
from harness.client.requests import list_
from harness.fleet.informers.checker import Checker
from harness.fleet.informers.keyed import decode_keyed
from harness.fleet.informers.options import resource_of
from harness.fleet.informers.reference import revision_of
from harness.fleet.informers.views import Scope
from harness.wire.objectviews import decode_list

WHO = "auditor"
VIOLATION = "informer-violation"
"""Note: one violation with its history (`Violation.fields`)."""
CHECKED = "informers-checked"
"""Note: the last check is over (the checker's counts; undecided, unsynced; failed: audits that got no answer)."""
QUIET_S = 2.0
"""After the last write, before the last audit: events of writes that were under way."""
LOOK_EVERY_S = 0.5
LAST_WITHIN_S = 25.0
"""When the last check gives up: the grace of what must come, a LIST of a crowded server, and some."""


def auditor_limiters() -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around an `Auditor`."""
    return {"main": None}


class Auditor:
    """A machine. `every_s` is the time between audits, 0 for the last one alone, which ``Fired`` of `LAST` begins. A
    LIST of the last one that fails is asked again: its member may have died, and others answer."""

    LAST = ("last",)

    __slots__ = ("_asked", "_checker", "_ends_at", "_every_s", "_failed", "_last_asked", "_owed")

    def __init__(self, checker: Checker, every_s: float) -> None:
        self._checker = checker
        self._every_s = every_s
        self._asked: dict[Scope, float] = {}
        self._ends_at = 0.0
        self._failed = 0
        self._last_asked = False
        self._owed: list[Scope] = []

    def __repr__(self) -> str:
        return f"Auditor(asked={len(self._asked)}, last={self._last_asked})"

    def start(self, now: float) -> list[Action]:
        return [Arm(("look",), now + LOOK_EVERY_S), *self._again(now)]

    def handle(self, event: Event, now: float) -> list[Action]:
        out: list[Action] = []
        part = event.key[0]
        if part == "audit" and not self._ends_at:
            self._audit(now, out)
            out += self._again(now)
        elif event.key == self.LAST:
            self._ends_at = now + LAST_WITHIN_S
            out += [Disarm(("audit",)), Arm(("last audit",), now + QUIET_S)]
        elif part == "last audit":
            self._last_asked = True
            self._audit(now, out)
        elif part == "look":
            self._look(now, out)
        elif isinstance(event, Answered | Failed):
            self._listed(event, now, out)
        return out

    def stop(self, now: float) -> list[Action]:
        out: list[Action] = [Disarm((part,)) for part in ("look", "audit", "last audit")]
        out += [Cancel(("list", scope)) for scope in self._asked]
        self._tell(out)
        return out

    def _again(self, now: float) -> list[Action]:
        return [Arm(("audit",), now + self._every_s)] if self._every_s else []

    def _audit(self, now: float, out: list[Action]) -> None:
        for scope in self._checker.scopes:
            if scope not in self._asked:
                self._ask(scope, now, out)

    def _ask(self, scope: Scope, now: float, out: list[Action]) -> None:
        self._asked[scope] = now
        request = list_(
            resource_of(scope.resource, WHO),
            scope.namespace or None,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
        )
        out.append(Send(("list", scope), request))

    def _listed(self, event: Answered | Failed, now: float, out: list[Action]) -> None:
        scope = event.key[1]
        assert isinstance(scope, Scope)
        asked = self._asked.pop(scope, now)
        if isinstance(event, Failed) or not event.response.ok:
            self._no_list(scope, out)
            return
        try:
            metadata, items = decode_list(event.response.body)
            found = [decode_keyed(item).metadata for item in items]
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._no_list(scope, out)
            return
        objects = {each.name: revision_of(each.resource_version) for each in found}
        out.append(Sample("audit_ms", (now - asked) * 1000.0))
        who = f"{WHO} at {event.response.member}" if event.response.member else WHO
        self._checker.listed(who, scope, revision_of(metadata.resource_version), objects, now)
        self._tell(out)
        self._over(out)

    def _no_list(self, scope: Scope, out: list[Action]) -> None:
        self._failed += 1
        if self._last_asked:
            self._owed.append(scope)
        self._over(out)

    def _over(self, out: list[Action]) -> None:
        if not self._asked:
            out.append(CloseConnections("audit"))  # the next one may be answered by another member

    def _look(self, now: float, out: list[Action]) -> None:
        if now < self._ends_at:
            owed, self._owed = self._owed, []
            for scope in owed:
                self._ask(scope, now, out)
        self._checker.settle(now, last=self._last_asked and not self._asked)
        self._tell(out)
        checker = self._checker
        complete = self._last_asked and not self._asked and not checker.undecided
        if complete or 0 < self._ends_at <= now:
            self._finish(out)
        else:
            out.append(Arm(("look",), now + LOOK_EVERY_S))

    def _finish(self, out: list[Action]) -> None:
        checker = self._checker
        undecided, unsynced = checker.undecided, checker.unsynced
        checker.give_up()
        open_ends = {"undecided": undecided, "unsynced": unsynced, "failed": self._failed}
        out.append(Note(CHECKED, {**checker.counts, **open_ends}))

    def _tell(self, out: list[Action]) -> None:
        out += [Note(VIOLATION, violation.fields()) for violation in self._checker.take()]
