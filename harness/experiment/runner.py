"""Runs an experiment: every sample in turn, then the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.experiment.ledger import (
    Attempt,
    Ledger,
    attempt_name,
    new_ledger,
    records_of,
    resumed_ledger,
)
from harness.experiment.leftovers import Host, await_fit
from harness.experiment.locustrun import locust_command, refusal, run_locust
from harness.experiment.plan import ArmPlan, ExperimentPlan, sample_arguments
from harness.experiment.progress import left_s, minutes, progress_line
from harness.experiment.records import load_runs, newest_manifest
from harness.experiment.reports import Reported, write_report
from harness.observe.record import read_manifest
from harness.report.templating import load_template
from harness.wire.errors import ConfigError, SwarmletError


class Interrupted(SwarmletError):
    """By a signal; what is there is kept."""

    exit_code = 130


def run_experiment(
    plan: ExperimentPlan,
    folder: Path,
    console: Console,
    *,
    arms: Sequence[str] = (),
    resume: bool = False,
    strict: bool = False,
    template: Path | None = None,
    text: str = "",
    host: Host | None = None,
) -> Reported:
    """Run all samples of `plan` into ``folder/samples`` and write the report into `folder`, with a user's `template`
    too. With `arms` only theirs, the others another time.

    A sample that fails or is invalid is kept and named, not counted, and run again at the end. With `resume` only
    samples that are missing are run. `text` is the file that the plan was read from, kept beside it.

    Raises ConfigError when `folder` already holds an experiment, or to resume none or another, or for an arm that
    `plan` lacks; SwarmletError when an arm has no sample left; Interrupted; with `strict`, RunInvalid when the guard
    found something (the report is written).
    """
    plan.validate()
    chosen = plan.named(arms)
    if template is not None:
        load_template(template)  # what is wrong with it is said before the first sample
    ledger = resumed_ledger(plan, folder) if resume else new_ledger(plan, folder)
    if text and not resume:
        (folder / "experiment.yaml").write_text(text, encoding="utf-8")
    began, before = time.monotonic(), len(ledger.attempts)
    try:
        _run_samples(ledger, chosen, folder, console, host or Host())
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {folder} keeps what is there") from None
    for name in chosen:
        if not any(ledger.good(name, sample) for sample in range(1, plan.samples + 1)):
            raise SwarmletError(f"no sample of arm {name} can be used; {folder / 'samples'} says why")
    _name_missing(ledger, console)
    took = f"samples took {minutes(time.monotonic() - began)}"
    console.print(
        f"{took if len(ledger.attempts) > before else 'nothing was left to run'}; writing the report"
    )
    runs, problems = load_runs(records_of(folder, plan))
    for problem in problems:
        console.print(f"[red]left out:[/] {problem}", highlight=False)
    return write_report(runs, folder, plan.title, ledger.declared, template=template, strict=strict)


def _run_samples(ledger: Ledger, arms: Sequence[str], folder: Path, console: Console, host: Host) -> None:
    total = len(arms) * ledger.plan.samples
    tell = _teller(console)
    if ledger.attempts:
        there = sum(not attempt.why for attempt in ledger.attempts if attempt.arm in arms)
        console.print(f"{there} of {total} samples are there", highlight=False)
    while turn := ledger.next_turn(arms):
        arm, sample = turn
        name = attempt_name(folder, arm.name, sample)
        _announce(ledger, ledger.turns_left(arms), arm, sample, total, console)
        await_fit(newest_manifest(folder / "samples"), ledger.plan.waits_s(arm), host, tell)
        ledger.attempts.append(_run_sample(ledger.plan, arm, sample, folder / "samples" / name, console))
        ledger.save(folder)


def _announce(
    ledger: Ledger, waiting: Sequence[str], arm: ArmPlan, sample: int, total: int, console: Console
) -> None:
    before = len(ledger.of(arm.name, sample))
    seconds = left_s(ledger.attempts, waiting or [arm.name])
    console.print(
        f"[bold]\\[{total - len(waiting) + (0 if before else 1)}/{total}][/] {arm.name}, "
        f"sample {sample} of {ledger.plan.samples}"
        f"{f', try {before + 1}' if before else ''}{'' if seconds is None else f', about {minutes(seconds)} left'}"
    )


def _run_sample(plan: ExperimentPlan, arm: ArmPlan, sample: int, record: Path, console: Console) -> Attempt:
    """Raises SwarmletError for a run whose input was wrong: so it is for all that follow."""
    began = time.monotonic()

    def tell(event: dict[str, Any]) -> None:
        text = progress_line(event)
        if text:
            console.print(f"  {time.monotonic() - began:6.1f} s  {text}", highlight=False, markup=False)

    command = locust_command(plan.locustfiles, sample_arguments(plan, arm, sample, record))
    code = run_locust(command, record, tell, {**plan.environ, **arm.environ})
    error = refusal(record, code)
    if error is not None and error.exit_code == ConfigError.exit_code:
        error.args = (f"{arm.name}, sample {sample}: {error}",)
        raise error
    why = f"it did not begin: {error}" if error else "; ".join(read_manifest(record).invalid)
    if why:
        console.print(f"  [red]not counted:[/] {record.name}: {why}", highlight=False)
    return Attempt(arm.name, sample, record.name, time.monotonic() - began, why)


def _name_missing(ledger: Ledger, console: Console) -> None:
    for arm, sample in ledger.plan.turns():
        if not ledger.good(arm.name, sample):
            ended = ledger.of(arm.name, sample)
            why = ended[-1].why if ended else "not run; --resume runs it"
            console.print(f"[red]missing:[/] {arm.name}, sample {sample}: {why}", highlight=False)


def _teller(console: Console) -> Callable[[str], None]:
    def tell(text: str) -> None:
        console.print(f"  {text}", highlight=False, markup=False)

    return tell
