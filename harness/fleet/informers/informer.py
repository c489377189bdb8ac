"""One informer: a reflector whose every event the checker is told, and what makes it begin anew.

It keeps no objects: what it was told is kept once for all informers of the process (`checker`). Each start is that of
a process: it knows no revision and dials a connection of its own.
"""

from __future__ import annotations

from random import Random
from typing import Any

from harness.client.limiter import TokenBucket
from harness.client.machine import (
    Action,
    Answered,
    Arm,
    CloseConnections,
    Disarm,
    Event,
    Received,
    Sample,
)
from harness.client.reflector import Output, Reflector
from harness.client.store import Changed, NoStore
from harness.fleet.informers.checker import Checker
from harness.fleet.informers.keyed import decode_keyed
from harness.fleet.informers.options import Crowd
from harness.fleet.informers.reference import revision_of
from harness.fleet.informers.tally import Tally
from harness.fleet.informers.views import Scope, View

_JITTER = 0.1
_REFLECTOR = "reflector"


def scope_of(crowd: Crowd) -> Scope:
    return Scope(str(crowd.ref), crowd.namespace, crowd.label_selector, crowd.field_selector)


def informer_limiters(crowd: Crowd) -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around an `Informer`."""
    return {"main": TokenBucket(crowd.qps, crowd.burst) if crowd.qps else None}


class _Passed(NoStore):
    """Stands where a reflector has its store, and passes on what would be kept. `now` is the time of the event,
    `version` the last object's."""

    __slots__ = ("_checker", "_tally", "now", "reflector", "size", "version", "view")

    def __init__(self, checker: Checker, tally: Tally, view: View) -> None:
        super().__init__()
        self._checker = checker
        self._tally = tally
        self.view = view
        self.reflector: Reflector | None = None
        self.now = 0.0
        self.size = 0
        self.version = ""

    def apply(self, prefix: Any, deleted: bool, obj: Any) -> Changed | None:
        self._tally.events += 1
        self.version = obj.metadata.resource_version
        revision = revision_of(self.version)
        self._checker.event(self.view, revision, obj.metadata.name, deleted, self.now)
        return None

    def replace(self, prefix: Any, objects: dict[str, Any]) -> list[Changed]:
        assert self.reflector is not None
        self.size = len(objects)
        self._tally.syncs += 1
        self._tally.objects += self.size
        state = {key: revision_of(obj.metadata.resource_version) for key, obj in objects.items()}
        revision = revision_of(self.reflector.last_resource_version)
        self._checker.synced(self.view, revision, state, self.now)
        return super().replace(prefix, objects)


class Informer:
    """A machine: informer `name` of a crowd. `follow_one_of` as a reflector's.

    Samples: ``informer_sync_ms`` (mode, start) from the beginning of a process to the whole state, whatever failed in
    between; start is "first" or "restart". And those of its reflector.
    """

    __slots__ = (
        "_begun_at",
        "_checker",
        "_crowd",
        "_follow_one_of",
        "_passed",
        "_reflector",
        "_restarts",
        "_rng",
        "_started_at",
        "_tally",
        "name",
        "synced",
    )

    def __init__(
        self, name: str, crowd: Crowd, checker: Checker, tally: Tally, rng: Random, follow_one_of: int = 0
    ) -> None:
        self.name = name
        self.synced = False
        self._crowd = crowd
        self._checker = checker
        self._tally = tally
        self._rng = rng
        self._follow_one_of = follow_one_of
        self._started_at = 0.0
        self._begun_at = 0.0
        self._restarts = 0
        self._passed: _Passed | None = None
        self._reflector: Reflector | None = None

    def __repr__(self) -> str:
        return f"Informer({self.name!r}, {self._reflector!r}, restarts={self._restarts})"

    # ---- the machine -------------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Action]:
        crowd = self._crowd
        self._started_at = now
        out: list[Action] = [Arm(("begin",), now + crowd.spread_s * self._rng.random())]
        if crowd.restart_every_s:
            out.append(Arm(("restart",), now + crowd.restart_every_s))
        return out

    def handle(self, event: Event, now: float) -> list[Action]:
        out: list[Action] = []
        part = event.key[0]
        if part == _REFLECTOR:
            self._pass_on(event, now, out)
        elif part == "begin":
            self._begin(now, out)
        elif part == "restart":
            self._storm(now, out)
        elif part == "relist" and self._reflector is not None:
            self._relist(self._reflector, now, out)
        elif part == "resync" and self._passed is not None:
            self._tally.resynced += self._passed.size
            out.append(Arm(("resync",), now + self._crowd.resync_s))
        return out

    def stop(self, now: float) -> list[Action]:
        out: list[Action] = [Disarm((part,)) for part in ("begin", "restart", "relist", "resync")]
        self._end(now, out)
        return out

    # ---- one process's life ------------------------------------------------------------------------------------------
    def _begin(self, now: float, out: list[Action]) -> None:
        crowd = self._crowd
        self._begun_at = now
        self.synced = False
        passed = _Passed(self._checker, self._tally, self._checker.open(self.name, scope_of(crowd)))
        passed.now = now
        reflector = Reflector(
            _REFLECTOR,
            crowd.ref,
            crowd.namespace or None,
            crowd.field_selector,
            crowd.label_selector,
            self._rng,
            timeout_range_s=crowd.timeout_s,
            decode=decode_keyed,
            watch_list=crowd.mode == "watch-list",
            follow_one_of=self._follow_one_of,
            store=passed,
        )
        passed.reflector = reflector
        self._passed, self._reflector = passed, reflector
        if crowd.relist_every_s:
            out.append(Arm(("relist",), now + self._jittered(crowd.relist_every_s)))
        if crowd.resync_s:
            out.append(Arm(("resync",), now + crowd.resync_s))
        self._take(reflector.start(now), out)

    def _end(self, now: float, out: list[Action]) -> None:
        if self._reflector is None or self._passed is None:
            return
        self._take(self._reflector.stop(now), out)
        self._checker.close(self._passed.view, now)
        self._reflector = self._passed = None

    def _storm(self, now: float, out: list[Action]) -> None:
        crowd = self._crowd
        out.append(Arm(("restart",), now + crowd.restart_every_s))
        if self._reflector is None or self._rng.random() >= crowd.restart_share:
            return  # it has not begun yet, or is spared
        self._end(now, out)
        self._restarts += 1
        self._tally.restarts += 1
        out.append(CloseConnections("restart"))
        self._begin(now, out)

    def _relist(self, reflector: Reflector, now: float, out: list[Action]) -> None:
        self._take(reflector.stop(now), out)
        self._take(reflector.start(now), out)
        out.append(Arm(("relist",), now + self._jittered(self._crowd.relist_every_s)))

    def _jittered(self, period_s: float) -> float:
        return period_s * (1.0 + _JITTER * self._rng.random())

    # ---- the reflector -----------------------------------------------------------------------------------------------
    def _pass_on(self, event: Event, now: float, out: list[Action]) -> None:
        reflector, passed = self._reflector, self._passed
        if reflector is None or passed is None:
            return
        passed.now = now
        if isinstance(event, Received):
            self._tally.bytes += len(event.data)
        elif isinstance(event, Answered):
            self._tally.bytes += len(event.response.body)
            self._tally.expired += event.response.status == 410 and event.key[1] == "list"
        before = reflector.last_resource_version
        self._take(reflector.handle(event, now), out)
        version = reflector.last_resource_version
        if version is not before and version != passed.version and reflector.synced:  # a bookmark's
            self._checker.progress(passed.view, revision_of(version), now)
        if reflector.synced and not self.synced:
            self.synced = True
            start = "restart" if self._restarts else "first"
            labels = (("mode", self._crowd.mode), ("start", start))
            out.append(Sample("informer_sync_ms", (now - self._begun_at) * 1000.0, labels))

    def _take(self, outputs: list[Output], out: list[Action]) -> None:
        for output in outputs:
            if isinstance(output, Changed):
                continue
            if isinstance(output, Sample) and output.name == "reflector_expired":
                self._tally.expired += ("cause", "410") in output.labels
            out.append(output)
