"""What an experiment's folder says about it: its plan, and which samples have ended how.

::

    experiment.json   the plan, a digest of it, the attempts that have ended
    experiment.yaml   the file as it was, where there was one
    samples/          a run record for each attempt, <arm>-<sample>, and its output beside it
    report.*          once all samples are there

An attempt stands in the ledger once it has ended; a folder of samples that does not was cut off with the experiment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from harness.experiment.plan import ArmPlan, ExperimentPlan, slug
from harness.observe.record import Status, read_manifest
from harness.wire.errors import ConfigError

SCHEMA_VERSION = 1
FILE = "experiment.json"
MAY_CHANGE = ("name", "samples", "retries", "cool_down_s")
"""Of a plan, when it is resumed: what does not change what a sample is."""


class Attempt(msgspec.Struct, frozen=True):
    """A run that has ended. `why` says why it does not count, "" where it does."""

    arm: str
    sample: int
    folder: str
    seconds: float
    why: str = ""


class Ledger(msgspec.Struct, kw_only=True):
    """`declared` are the settings in which arms differ by intention."""

    schema_version: int = SCHEMA_VERSION
    digest: str
    plan: ExperimentPlan
    declared: tuple[str, ...]
    attempts: list[Attempt] = []

    def good(self, arm: str, sample: int) -> bool:
        return any(not attempt.why for attempt in self.of(arm, sample))

    def of(self, arm: str, sample: int) -> list[Attempt]:
        return [attempt for attempt in self.attempts if (attempt.arm, attempt.sample) == (arm, sample)]

    def next_turn(self, arms: Collection[str]) -> tuple[ArmPlan, int] | None:
        """The next sample of `arms` to run: in order those that were not run yet, then those that failed and may be run
        again."""
        turns = [
            (len(self.of(arm.name, sample)), index, arm, sample)
            for index, (arm, sample) in enumerate(self.plan.turns())
            if arm.name in arms and not self.good(arm.name, sample)
        ]
        tries, _, arm, sample = min(turns, default=(0, 0, None, 0), key=lambda turn: turn[:2])
        return None if arm is None or tries > self.plan.retries else (arm, sample)

    def turns_left(self, arms: Collection[str]) -> list[str]:
        """The arm of each sample of `arms` that was not run yet; what failed is run again after these, and not
        foreseen."""
        turns = [(arm.name, sample) for arm, sample in self.plan.turns() if arm.name in arms]
        return [arm for arm, sample in turns if not self.of(arm, sample)]

    def save(self, folder: Path) -> None:
        path = folder / FILE
        partial = path.with_name(path.name + ".partial")
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(self)))
        partial.replace(path)


def new_ledger(plan: ExperimentPlan, folder: Path) -> Ledger:
    """Raises ConfigError where `folder` already holds an experiment, or a run would refuse its arguments."""
    if (folder / "samples").exists() or (folder / FILE).exists():
        raise ConfigError(
            f"{folder} already holds an experiment; give another --name, or let swarmlet experiment --resume it"
        )
    ledger = Ledger(digest=digest(plan), plan=plan, declared=plan.declared())
    (folder / "samples").mkdir(parents=True)
    ledger.save(folder)
    return ledger


def resumed_ledger(plan: ExperimentPlan, folder: Path) -> Ledger:
    """The ledger that is there, to go on with `plan`. More samples than before may be asked for. Raises ConfigError
    where there is none, or where it is of another plan."""
    ledger = read_ledger(folder)
    if ledger.digest != digest(plan):
        raise ConfigError(
            f"{folder / FILE}: {_changed(ledger.plan, plan)} changed since; "
            "samples of two different experiments are not mixed, give another --name"
        )
    if plan.samples < ledger.plan.samples:
        raise ConfigError(
            f"{folder / FILE}: samples: {plan.samples} is less than the {ledger.plan.samples} before"
        )
    ledger.plan = plan
    ledger.attempts = [attempt for attempt in ledger.attempts if not attempt.why or _ended(folder, attempt)]
    ledger.save(folder)
    return ledger


def read_ledger(folder: Path) -> Ledger:
    """Raises ConfigError for a folder without one, and for one that this version cannot read."""
    path = folder / FILE
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version > SCHEMA_VERSION:
            raise ConfigError(
                f"{path}: of a newer version (schema {version}; this one reads {SCHEMA_VERSION})"
            )
        return msgspec.json.decode(data, type=Ledger)
    except OSError:
        raise ConfigError(f"{folder} holds no experiment to go on with: it has no {FILE}") from None
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path}: no experiment's: {error}") from None


class _Version(msgspec.Struct):
    schema_version: int


def _ended(folder: Path, attempt: Attempt) -> bool:
    """False for a run that was only cut off: it does not count as a failure of its sample."""
    try:
        status = read_manifest(folder / "samples" / attempt.folder).status
    except ConfigError:
        return True
    return status not in (Status.INTERRUPTED.value, Status.KILLED.value)


def digest(plan: ExperimentPlan) -> str:
    return hashlib.sha256(msgspec.json.encode(_kept(plan), order="sorted")).hexdigest()


def _kept(plan: ExperimentPlan) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(plan)
    return {key: value for key, value in told.items() if key not in MAY_CHANGE}


def _changed(before: ExperimentPlan, after: ExperimentPlan) -> str:
    old, new = _kept(before), _kept(after)
    return ", ".join(key for key in old if old[key] != new[key]) or "something"


def attempt_name(folder: Path, arm: str, sample: int) -> str:
    """The name of the next attempt's record: one that neither a record nor its output has."""
    base, tries = f"{slug(arm)}-{sample}", 1
    name = base
    while any((folder / "samples" / taken).exists() for taken in (name, f"{name}.log")):
        tries += 1
        name = f"{base}-try-{tries}"
    return name


def records_of(folder: Path, plan: ExperimentPlan) -> list[Path]:
    """Every record of the experiment, those that do not count too, by arm and sample. One that has no manifest did not
    begin and is left out."""
    found = []
    for path in (folder / "samples").glob("*/manifest.json"):
        manifest = read_manifest(path.parent)
        names = [arm.name for arm in plan.arms]
        if manifest.arm in names:
            found.append((names.index(manifest.arm), manifest.sample, path.parent.name, path.parent))
    return [path for *_, path in sorted(found)]
