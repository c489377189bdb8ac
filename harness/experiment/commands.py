"""``swarmlet experiment ...``, ``swarmlet compare`` and ``swarmlet report``."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
from rich.console import Console

from harness.wire.errors import ConfigError

if TYPE_CHECKING:
    from harness.compare.run import Run
    from harness.experiment.plan import ExperimentPlan
    from harness.experiment.reports import Reported

RUNS = Path("reports/runs")

app = typer.Typer(
    help="Experiments: samples of several arms in turn, and their report.", no_args_is_help=True
)
console = Console()

File = Annotated[
    str, typer.Argument(help="an experiment's YAML file, or the name of one of ours", metavar="FILE")
]
Name = Annotated[str, typer.Option(help="folder under reports/runs; default: the file's name and the time")]
Samples = Annotated[int | None, typer.Option(help="runs of each arm, instead of the file's")]
Seed = Annotated[int | None, typer.Option(help="of everything drawn at random, instead of the file's")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="go on with the samples that are missing, of --name or the last one of this file"
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        help="of every arm, instead of the file's: emulated, binaries (docs/binaries.md), existing",
        metavar="BACKEND",
    ),
]
Kubeconfig = Annotated[str, typer.Option(help="of the cluster of --backend existing", metavar="FILE")]
Arms = Annotated[
    list[str] | None,
    typer.Option("--arm", help="only this arm's samples, the others later with --resume; may be repeated"),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="refuse (exit code 4) where arms differ in what is not declared")
]
Declared = Annotated[
    list[str] | None,
    typer.Option("--declare", help="a setting that is meant to differ, as pool.members; may be repeated"),
]
Template = Annotated[
    Path | None, typer.Option(help="a Jinja template of your own, filled in too (docs/experiments.md)")
]
Out = Annotated[Path, typer.Option(help="folder of the report")]


def add_to(parent: typer.Typer) -> None:
    """Add all commands of this file."""
    parent.add_typer(app, name="experiment")
    parent.command(cls=AgainstCommand)(compare)
    parent.command()(report)


@app.command("run")
def run(
    file: File,
    name: Name = "",
    samples: Samples = None,
    seed: Seed = None,
    arm: Arms = None,
    resume: Resume = False,
    strict: Strict = False,
    template: Template = None,
    backend: Backend = "",
    kubeconfig: Kubeconfig = "",
) -> None:
    """Run every sample of every arm in turn, and write a report."""
    _run(
        _plan(file, samples, seed, backend, kubeconfig),
        file,
        name,
        arms=arm or (),
        resume=resume,
        strict=strict,
        template=template,
    )


@app.command("aa")
def against_itself(
    file: File,
    arm: Annotated[str, typer.Option(help="which arm; default: the first")] = "",
    name: Name = "",
    samples: Samples = None,
    seed: Seed = None,
    resume: Resume = False,
    strict: Strict = False,
    template: Template = None,
    backend: Backend = "",
    kubeconfig: Kubeconfig = "",
) -> None:
    """Run one arm against itself: what is then called different is chance, or something that nobody saw."""
    from harness.experiment import plan as plans
    from harness.experiment.reports import called_different

    plan = plans.against_itself(_plan(file, samples, seed, backend, kubeconfig), arm)
    done = _run(plan, file, name, "-aa", resume=resume, strict=strict, template=template)
    different, rows = called_different(done.comparison), len(done.comparison.rows)
    console.print(
        f"{len(different)} of {rows} rows are called different, of an arm against itself"
        f"{': ' if different else ''}{', '.join(different)}",
        highlight=False,
    )


def _plan(file: str, samples: int | None, seed: int | None, backend: str, kubeconfig: str) -> ExperimentPlan:
    import msgspec

    from harness.experiment.document import find_experiment, read_experiment

    if kubeconfig and backend != "existing":
        raise ConfigError(f"--kubeconfig {kubeconfig}: it goes with --backend existing")
    target = {"backend": backend, "kubeconfig": kubeconfig}
    plan = read_experiment(
        find_experiment(file), target={name: value for name, value in target.items() if value}
    )
    given: dict[str, Any] = {"samples": samples, "seed": seed}
    plan = msgspec.structs.replace(plan, **{key: value for key, value in given.items() if value is not None})
    plan.validate()
    return plan


def _run(
    plan: ExperimentPlan,
    file: str,
    name: str,
    suffix: str = "",
    *,
    arms: Sequence[str] = (),
    resume: bool,
    strict: bool,
    template: Path | None,
) -> Reported:
    from harness.experiment.document import find_experiment
    from harness.experiment.runner import Interrupted, run_experiment

    path = find_experiment(file)
    stem = f"{path.stem}{suffix}"
    if name:
        folder = RUNS / name
    else:
        folder = _last(stem) if resume else RUNS / time.strftime(f"{stem}-%Y%m%d-%H%M%S")
    console.print(f"{plan.title}: {folder}", highlight=False, soft_wrap=True)
    text = path.read_text("utf-8")
    try:
        with _terminated_as_interrupted():
            done = run_experiment(
                plan, folder, console, arms=arms, resume=resume, strict=strict, template=template, text=text
            )
    except Interrupted as error:
        error.args = (f"{error}; to go on, the same command with --resume --name {folder.name}",)
        raise
    _name_files(done.files)
    return done


def _last(stem: str) -> Path:
    """The experiment's folder that was begun last, of those named as `run` names them."""
    from harness.experiment.ledger import FILE

    folders = sorted(RUNS.glob(f"{stem}-[0-9]*-[0-9]*/{FILE}"))
    if not folders:
        raise ConfigError(f"--resume: {RUNS} has no experiment {stem}; give its --name")
    return folders[-1].parent


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM ends an experiment as Ctrl-C does, in order."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# ---- records that are there ----------------------------------------------------------------------------------------
class AgainstCommand(typer.core.TyperCommand):
    """A command whose ``--against`` takes every word up to the next option."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        return super().parse_args(ctx, each_against(args))


def each_against(words: Sequence[str]) -> list[str]:
    """``--against a b`` as ``--against a --against b``."""
    found: list[str] = []
    state = ""
    for word in words:
        if word == "--against":
            state = "first"
        elif word.startswith("-"):
            state = ""
        elif state:
            found += ["--against", word]
            state = "more"
            continue
        if state != "first":
            found.append(word)
    return [*found, "--against"] if state == "first" else found


def compare(
    records: Annotated[
        list[Path], typer.Argument(help="run records, or an experiment's folder", metavar="RUN...")
    ],
    against: Annotated[
        list[Path], typer.Option(help="what they are compared with; takes several", metavar="RUN...")
    ],
    title: Annotated[str, typer.Option(help="heading of the report; default: what is compared")] = "",
    out: Out = Path("."),
    declare: Declared = None,
    strict: Strict = False,
    template: Template = None,
) -> None:
    """Compare run records with others, from whatever machine or version; the guard says what was not equal."""
    from harness.experiment.sides import as_sides

    first, told = _load(against)
    other, more = _load(records)
    for side, problems, option in ((first, told, "--against"), (other, more, "RUN")):
        if not side:
            raise ConfigError(f"{option}: no record that can be compared: {'; '.join(problems)}")
    runs, names = as_sides((first, _label(against)), (other, _label(records)))
    _write(
        runs, [*told, *more], out, title or " against ".join(reversed(names)), declare or (), strict, template
    )


def report(
    records: Annotated[
        list[Path], typer.Argument(help="run records, or an experiment's folder", metavar="RUN...")
    ],
    out: Out = Path("."),
    title: Annotated[str, typer.Option(help="heading of the report")] = "",
    declare: Declared = None,
    strict: Strict = False,
    template: Template = None,
) -> None:
    """Report on run records that are already there: one, several, or all of an experiment."""
    from harness.experiment.ledger import FILE, read_ledger

    runs, problems = _load(records)
    if not runs:
        raise ConfigError("; ".join(problems))
    ledger = read_ledger(records[0]) if len(records) == 1 and (records[0] / FILE).exists() else None
    default = ledger.plan.title if ledger else runs[0].manifest.name if len(runs) == 1 else "Comparison"
    declared = [*(ledger.declared if ledger else ()), *(declare or ())]
    _write(runs, problems, out, title or default, declared, strict, template)


def _load(given: Sequence[Path]) -> tuple[list[Run], list[str]]:
    from harness.experiment.records import load_runs, records_in

    return load_runs([record for folder in given for record in records_in(folder)])


def _label(given: Sequence[Path]) -> str:
    return given[0].resolve().name


def _write(
    runs: Sequence[Run],
    problems: Sequence[str],
    out: Path,
    title: str,
    declared: Sequence[str],
    strict: bool,
    template: Path | None,
) -> None:
    """Raises typer.Exit with 1 where some record could not be read."""
    from harness.experiment.reports import write_report

    for problem in problems:
        typer.echo(f"swarmlet: left out: {problem}", err=True)
    _name_files(write_report(runs, out, title, declared, strict=strict, template=template).files)
    if problems:
        raise typer.Exit(1)


def _name_files(files: Sequence[Path]) -> None:
    for path in files:
        console.print(f"wrote {path}", soft_wrap=True)
