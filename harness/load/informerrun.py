"""The informers of a run as the master sees them: when all are there, when the last check is over, what was wrong.

In order: users come; the writer makes what they will find; `GO` to every process; ...; the run is to end: `LAST` to
every process; each says what its checker found; the run ends. A violation fails the run, but does not end it: how far
it goes is part of what is learned. What runs beside, a scenario or claims, may be over before informers have synced:
the end then waits for that, or the run would have no figure of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from harness.fleet.informers.auditor import CHECKED, LAST_WITHIN_S, VIOLATION
from harness.fleet.informers.writer import READY
from harness.load.arguments import RunOptions
from harness.load.informerhub import GO, HERE, LAST, MESSAGE, SYNCED
from harness.load.informerplan import InformerPlan
from harness.load.informerusers import InformerUser, ListUser, WriterUser
from harness.load.users import ClusterLoaderUser, KubeletUser
from harness.wire.errors import ConfigError

UNRECORDED = (HERE,)
NODES_ALONE = 5000
"""Nodes that an emulated control plane is sized for where there is no fleet: that of the published runs, with 8
modelled cores a member."""
SYNC_WITHIN_S = 300.0
"""How long the end of what runs beside waits for what the writer makes and for each informer's first state."""
_SLACK_S = 10.0  # of messages, beyond what an auditor allows itself
_SHOWN = 3  # violations that become failures of the run in words; the others are events


def fit(environment: Any, options: RunOptions) -> RunOptions:
    """Options of a run by the users that its locustfile has, and the numbers of these by the options. Raises
    ConfigError."""
    classes = environment.user_classes
    if not any(issubclass(user, InformerUser) for user in classes):
        if given := _given(environment.parsed_options):
            raise ConfigError(
                f"{given}: no user of this locustfile is an informer; locustfiles/informers.py has them"
            )
        return options
    plan = options.informers
    for user in list(classes):
        count = _count(user, plan)
        if count == 0:
            classes.remove(user)
        elif count is not None:
            user.fixed_count = count
    if any(issubclass(user, KubeletUser) for user in classes):
        return options
    pool = options.pool
    if environment.parsed_options.num_users is None:
        pool = msgspec.structs.replace(pool, nodes=NODES_ALONE)
    scenario = options.scenario if any(issubclass(user, ClusterLoaderUser) for user in classes) else ""
    return msgspec.structs.replace(options, kubelets=0, pool=pool, scenario=scenario)


def _given(parsed: Any) -> str:
    flags = {
        "--informers": parsed.informers,
        "--writer": parsed.writer,
        "--lists": [] if parsed.lists == "none" else [parsed.lists],
    }
    return next((f"{flag} {values[0]}" for flag, values in flags.items() if values), "")


def _count(user: Any, plan: InformerPlan) -> int | None:
    """How many of a class; None for those that the options of informers say nothing of."""
    if issubclass(user, InformerUser):
        return plan.informers
    if issubclass(user, ListUser):
        return plan.listers
    return 1 if issubclass(user, WriterUser) else None


class InformerRun:
    """`tell` keeps an event of the run; `broadcast` reaches every process. `ended` says that nothing is to be waited
    for any more. `alone`: no scenario has a load phase, so that `GO` begins it."""

    def __init__(
        self,
        plan: InformerPlan,
        tell: Callable[[str, dict[str, Any]], None],
        broadcast: Callable[[str, dict[str, Any]], None],
        *,
        writes: bool,
        alone: bool,
    ) -> None:
        self.plan = plan
        self.went = False
        self.ended = False
        self.results: dict[str, Any] = {}
        self._tell = tell
        self._broadcast = broadcast
        self._alone = alone
        self._written = not writes
        self._places: Counter[str] = Counter()
        self._synced: dict[str, Mapping[str, Any]] = {}
        self._checked: list[Mapping[str, Any]] = []
        self._violations: list[str] = []
        self._patient_until = 0.0
        self._gives_up_at = 0.0

    # ---- while it runs -----------------------------------------------------------------------------------------------
    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        """What a user tells."""
        if kind == HERE:
            process = fields["process"]
            if self.went and process not in self._places:  # a worker that came late
                self._broadcast(MESSAGE, {"do": GO, "crowds": {process: [0]}})
            self._places[process] += 1
            self._go()
        elif kind == READY:
            self._written = True
            self._go()
        elif kind == SYNCED:
            self._synced[fields["process"]] = fields
            self._keep_syncs()
        elif kind == VIOLATION:
            key, revision = fields["key"], fields["revision"]
            what = f"{fields['scope']}{' ' + key if key else ''} @{revision}"
            self._violations.append(f"{fields['violation']}: {fields['who']}: {what}: {fields['text']}")
        elif kind == CHECKED:
            self._checked.append(fields)

    def _go(self) -> None:
        if self.went or not self._written or self._places.total() < self.plan.informers:
            return
        self.went = True
        self._tell("informers-started", {"informers": self.plan.informers})
        if self._alone:
            self._tell("phase-started", {"step": "informers"})
        self._broadcast(MESSAGE, {"do": GO, "crowds": self.plan.shares(dict(self._places))})

    @property
    def synced(self) -> bool:
        """Each informer has had a whole state."""
        return self.went and len(self._synced) == len(self._places)

    def _keep_syncs(self) -> None:
        if self.synced:
            each = self._synced.values()
            self.results["last_sync_s"] = max(fields["seconds"] for fields in each)
            for key in ("objects", "bytes"):
                self.results[f"{key}_until_then"] = sum(fields[key] for fields in each)

    # ---- the end -----------------------------------------------------------------------------------------------------
    def close(self, now: float, *, patient: bool = False) -> None:
        """The run is to end: let the checkers compare a last time; if `patient`, once all informers have synced. A call
        without patience cuts that short, further ones change nothing."""
        if self._gives_up_at:
            return
        if patient and not self.synced:
            self._patient_until = self._patient_until or now + SYNC_WITHIN_S
            return
        self._gives_up_at = now + LAST_WITHIN_S + _SLACK_S
        if self.went:
            self._broadcast(MESSAGE, {"do": LAST})
        self.look(now)

    def look(self, now: float) -> None:
        """Whether it is time for the last check, and whether that is over."""
        if self._patient_until and (self.synced or now >= self._patient_until):
            self.close(now)
        if self._gives_up_at and not self.ended:
            complete = len(self._checked) == len(self._places)
            self.ended = not self.went or complete or now >= self._gives_up_at

    def finish(self) -> tuple[list[str], list[str]]:
        """(failures, marks) of the whole run, once it has ended."""
        counts: Counter[str] = Counter()
        for checked in self._checked:
            counts.update({key: value for key, value in checked.items() if isinstance(value, int)})
        self.results["informers"] = self.plan.informers
        self.results["checked"] = dict(counts)
        found = max(counts["violations"], len(self._violations))
        failures = [f"informers were told wrong: {text}" for text in self._violations[:_SHOWN]]
        if found > _SHOWN:
            failures.append(f"informers were told wrong in {found} ways; see {VIOLATION} in events.jsonl")
        return failures, list(self._marks(counts))

    def _marks(self, counts: Counter[str]) -> list[str]:
        marks = []
        if not self.went:
            marks.append("informers never began: not all users came, or what they are to find was not made")
        elif len(self._checked) < len(self._places):
            missing = len(self._places) - len(self._checked)
            marks.append(f"not checked at the end: what the informers of {missing} process(es) were told")
        for key, what in (
            ("undecided", "what informers were told could not be compared at the end: {} times"),
            ("unsynced", "{} informer(s) were never given a whole state"),
            ("failed", "{} audit(s) got no answer"),
        ):
            if counts[key]:
                marks.append(what.format(counts[key]))
        return marks


def informer_run(
    environment: Any, options: RunOptions, tell: Callable[[str, dict[str, Any]], None]
) -> InformerRun | None:
    """None where no user of the locustfile is an informer."""
    classes = environment.user_classes
    if not any(issubclass(user, InformerUser) for user in classes):
        return None
    return InformerRun(
        options.informers,
        tell,
        lambda kind, data: environment.runner.send_message(kind, data),
        writes=any(issubclass(user, WriterUser) for user in classes),
        alone=not options.scenario,
    )
