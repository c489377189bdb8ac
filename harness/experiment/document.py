"""An experiment as a file: its schema, and reading it into an `ExperimentPlan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.documents.decoding import decode_struct
from harness.documents.single import read_keys
from harness.experiment.armoptions import Given, Mistake, command_words, given_by, place_of
from harness.experiment.plan import ArmPlan, ExperimentPlan, Order, sample_arguments
from harness.load.commandline import check
from harness.observe.environment import share
from harness.wire.errors import ConfigError

DEFAULTS = {"users": 100, "spawn-rate": 50, "run-time": "900s"}
"""As in the demo; users, who are kubelets, only where the locustfile has them."""


class TargetDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """A pool to start (`backend`, `members`, `cores`, `feature_gates`), or a cluster that is there."""

    backend: str | None = None
    members: int | None = None
    cores: str | int | float | None = None
    feature_gates: dict[str, bool] | None = None
    host: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    endpoints: list[str] | None = None


class SharedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What may be said for all arms and for one; what an arm says goes first. Of `target`, `fleet`, `options` and
    `variables` that is so key by key; an arm's faults come beside those of all."""

    target: TargetDocument = TargetDocument()
    kubelets: int | None = None
    spawn_rate: int | float | None = None
    scenario: str | None = None
    run_time: str | int | None = None
    pace: int | float | None = None
    fleet: dict[str, Any] = {}
    faults: list[str] = []
    options: dict[str, Any] = {}
    variables: dict[str, str | int | float | bool] = {}


class ArmDocument(SharedDocument, frozen=True, kw_only=True):
    name: str


class ExperimentDocument(SharedDocument, frozen=True, kw_only=True):
    """The whole file; docs/experiments.md explains each key."""

    title: str
    arms: list[ArmDocument]
    locustfile: str | list[str] = "kubelets"
    samples: int = 3
    seed: int = 1
    order: Order = "in-turn"
    cool_down: int | float = 60.0
    retries: int = 1


def find_experiment(name: str) -> Path:
    """An experiment given as a file or by the name of one of ours. Raises ConfigError."""
    ours = share("experiments")
    for path in (Path(name), ours / f"{name}.yaml"):
        if path.is_file():
            return path
    known = ", ".join(sorted(path.stem for path in ours.glob("*.yaml")))
    raise ConfigError(f"experiment {name!r}: no such file, nor one of ours ({known})")


def read_experiment(path: Path, *, name: str = "", target: Mapping[str, str] | None = None) -> ExperimentPlan:
    """The plan of a file, named `name` or as the file. Every arm's options were read as its runs will read them.
    `target` are options of a run that replace those of every arm. Raises ConfigError: file and line, key, value, what
    is allowed."""
    parsed, where = read_keys(
        path, empty="an experiment has keys; title and arms are needed (docs/experiments.md)"
    )
    ignored: list[str] = []
    document = decode_struct(parsed, ExperimentDocument, where, ignored, any_case=False)
    if ignored:
        raise ConfigError(f"{ignored[0]}: no such key (docs/experiments.md)")
    try:
        return _plan(document, path.parent, name or path.stem, target or {})
    except Mistake as mistake:
        raise ConfigError(f"{where(mistake.key)}: {mistake.key}: {mistake}") from None


def _plan(document: ExperimentDocument, folder: Path, name: str, target: Mapping[str, str]) -> ExperimentPlan:
    _check_numbers(document)
    locustfiles = _locustfiles(document.locustfile, folder)
    defaults = (
        dict(DEFAULTS) if "kubelets" in locustfiles else {k: DEFAULTS[k] for k in ("spawn-rate", "run-time")}
    )
    shared = [*given_by(defaults, "", folder), *_given(document, "", folder)]
    plan = ExperimentPlan(
        name=name,
        title=document.title,
        arms=(),
        samples=document.samples,
        seed=document.seed,
        order=document.order,
        cool_down_s=document.cool_down,
        retries=document.retries,
        environ=_variables(document, ""),
        locustfiles=locustfiles,
    )
    arms = []
    instead = given_by(target, "", Path())
    for index, arm in enumerate(document.arms):
        key = f"arms[{index}]"
        given = [*shared, *_given(arm, f"{key}.", folder), *instead]
        planned = ArmPlan(arm.name, tuple(command_words(given)), _variables(arm, f"{key}."))
        _understood(plan, planned, given, key)
        arms.append(planned)
    plan = msgspec.structs.replace(plan, arms=tuple(arms))
    _refuse(plan.validate, "arms")
    return plan


def _given(document: SharedDocument, prefix: str, folder: Path) -> list[Given]:
    """Everything that becomes an option of the command, with the key that it stands at."""
    fields = {
        "users": ("kubelets", document.kubelets),
        "spawn-rate": ("spawn_rate", document.spawn_rate),
        "run-time": ("run_time", document.run_time),
        "pace": ("pace", document.pace),
        "scenario": ("scenario", document.scenario),
        "fleet": ("fleet", document.fleet or None),
        "fault": ("faults", document.faults or None),
        **{
            field.replace("_", "-"): (f"target.{field}", getattr(document.target, field))
            for field in document.target.__struct_fields__
        },
    }
    found = []
    for flag, (key, value) in fields.items():
        if value is not None:
            found += given_by({flag: value}, prefix + key, folder)
    for flag, value in document.options.items():
        key = f"{prefix}options.{flag}"
        if flag in fields:
            raise Mistake(key, f"is said as {prefix}{fields[flag][0]}")
        if value is None:
            raise Mistake(key, "has no value; true for an option without one")
        found += given_by({flag: value}, key, folder)
    return found


def _understood(plan: ExperimentPlan, arm: ArmPlan, given: list[Given], key: str) -> None:
    """Read the arm's arguments as its runs will. Raises Mistake at the key that is to blame."""
    try:
        check(sample_arguments(plan, arm, 1, Path("record")))
    except ConfigError as error:
        text = str(error).removeprefix("run: ")
        raise Mistake(place_of(text, given) or key, f"arm {arm.name}: {text}") from None


def _refuse(validate: Callable[[], None], key: str) -> None:
    try:
        validate()
    except ConfigError as error:
        raise Mistake(key, str(error).partition(": ")[2]) from None


def _check_numbers(document: ExperimentDocument) -> None:
    rules = (
        ("title", document.title, bool(document.title.strip()), "a report needs one"),
        ("arms", "[]", bool(document.arms), "at least one is needed"),
        ("samples", document.samples, document.samples >= 1, "1 or more are needed"),
        ("retries", document.retries, document.retries >= 0, "0 or more are needed"),
        (
            "cool_down",
            document.cool_down,
            0 <= document.cool_down < float("inf"),
            "0 or more seconds are needed",
        ),
    )
    for key, value, good, rule in rules:
        if not good:
            raise Mistake(key, f"{value!r}: {rule}")


def _locustfiles(given: str | list[str], folder: Path) -> tuple[str, ...]:
    """Names of ours as they are, others as paths."""
    named = [given] if isinstance(given, str) else given
    if not named:
        raise Mistake("locustfile", "[]: at least one is needed")
    ours = sorted(path.stem for path in share("locustfiles").glob("*.py"))
    found = []
    for index, text in enumerate(named):
        path = folder / text
        if text not in ours and not path.is_file():
            key = "locustfile" if isinstance(given, str) else f"locustfile[{index}]"
            raise Mistake(key, f"{text!r}: no such file, nor one of ours ({', '.join(ours)})")
        found.append(text if text in ours else str(path.resolve()))
    return tuple(found)


def _variables(document: SharedDocument, prefix: str) -> dict[str, str]:
    for key in document.variables:
        if not key.startswith("CL2_"):
            raise Mistake(f"{prefix}variables.{key}", "a scenario's variables begin with CL2_")
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in document.variables.items()
    }
