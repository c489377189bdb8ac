"""Runs an experiment: every sample in turn, then the report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.compare.run import Run
from harness.experiment.locustrun import locust_command, refusal, run_locust
from harness.experiment.plan import ArmPlan, ExperimentPlan, slug
from harness.observe.record import read_manifest
from harness.report.render import render
from harness.wire.errors import ConfigError, SwarmletError


def run_experiment(plan: ExperimentPlan, folder: Path, console: Console) -> list[Path]:
    """Run all samples of `plan` into ``folder/samples`` and write the report into `folder`. The report's files.

    A sample that fails or is invalid is kept and named, and not counted. Raises SwarmletError when an arm has no sample
    left, ConfigError when `folder` already holds an experiment.
    """
    plan.validate()
    if (folder / "samples").exists():
        raise ConfigError(f"{folder} already holds an experiment; give another --name")
    turns = list(plan.in_turn())
    began = time.monotonic()
    for done, (arm, sample) in enumerate(turns):
        left = (
            f", about {_minutes((time.monotonic() - began) / done * (len(turns) - done))} left"
            if done
            else ""
        )
        console.print(
            f"[bold][{done + 1}/{len(turns)}][/] {arm.name}, sample {sample} of {plan.samples}{left}"
        )
        _run_sample(plan, arm, sample, folder / "samples" / f"{slug(arm.name)}-{sample}", console)
    runs = [
        Run(folder / "samples" / f"{slug(arm.name)}-{sample}")
        for arm in plan.arms
        for sample in range(1, plan.samples + 1)
    ]
    for arm in plan.arms:
        if not any(run.manifest.arm == arm.name and not run.manifest.invalid for run in runs):
            raise SwarmletError(f"no sample of arm {arm.name} can be used; {folder / 'samples'} says why")
    console.print(f"all samples took {_minutes(time.monotonic() - began)}; writing the report")
    return render(runs, folder, plan.title, plan.declared)


def sample_arguments(plan: ExperimentPlan, arm: ArmPlan, sample: int, record: Path) -> list[str]:
    """What one sample's locust command gets."""
    arguments = ["-u", str(plan.kubelets)] if plan.kubelets else []
    arguments += ["-r", f"{plan.spawn_rate:g}", "-t", f"{plan.run_time_s}s"]
    if plan.scenario:
        arguments += ["--scenario", plan.scenario]
    arguments += ["--members", str(arm.members), "--seed", str(plan.seed + sample)]
    arguments += ["--arm", arm.name, "--sample", str(sample), "--record", str(record)]
    for fault in arm.faults:
        arguments += ["--fault", fault]
    return [*arguments, *plan.arguments, *arm.arguments]


def _run_sample(plan: ExperimentPlan, arm: ArmPlan, sample: int, record: Path, console: Console) -> None:
    began = time.monotonic()

    def tell(event: dict[str, Any]) -> None:
        text = progress_line(event)
        if text:
            console.print(f"  {time.monotonic() - began:6.1f} s  {text}", highlight=False, markup=False)

    command = locust_command(plan.locustfile, sample_arguments(plan, arm, sample, record))
    code = run_locust(command, record, tell, plan.environ)
    error = refusal(record, code)
    if error is not None:
        error.args = (f"{arm.name}, sample {sample}: {error}",)
        raise error
    reasons = read_manifest(record).invalid
    if reasons:
        console.print(f"  [red]not counted:[/] {'; '.join(reasons)}", highlight=False)


def progress_line(event: dict[str, Any]) -> str:
    """What a screen shows of an event; "" for those it does not show."""
    match event["kind"]:
        case "target-ready":
            return f"{len(event['members'])} apiserver(s) ready"
        case "nodes-ready":
            return f"{event['ready']} nodes ready"
        case "step-finished":
            return f"{event['name']}: {event['seconds']:.1f} s"
        case "mark":
            return f"noticed: {event['text']}"
        case "fault-started":
            length = "" if event["seconds"] is None else f" for {event['seconds']:g} s"
            return f"fault: {event['fault']} on {event['member']}{length}"
        case "fault-failed":
            return f"fault {event['fault']} on {event['member']} failed: {event['error']}"
        case "executors" if event["count"] > 1:
            return f"operations by {event['count']} executors: {', '.join(event['members'])}"
        case "exec-started":
            return f"exec: {' '.join(event['command'])}"
        case "exec-output":
            return f"  | {event['line']}"
        case "exec-ended" if event["error"]:
            return f"exec: {event['error']}"
        case "member-ended":
            return f"{event['member']} ended after {event['seconds']:.1f} s, to be started again"
        case "member-restarted":
            return f"{event['member']} serves again, {event['seconds']:.1f} s after it was told to end"
        case "member-restart-failed":
            return f"{event['member']} did not come back: {event['error']}"
        case "run-ended":
            return f"run {event['status']}"
        case _:
            return ""


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 90 else f"{seconds:.0f} s"
