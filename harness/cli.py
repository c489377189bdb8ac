"""The `swarmlet` command."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.bench.commands import app as bench_app
from harness.experiment import commands as experiment_commands
from harness.experiment.commands import RUNS
from harness.load.cluster import commands as cluster_commands
from harness.load.commandline import PassingCommand
from harness.load.scenariocommands import app as scenario_app
from harness.manifests import commands as manifest_commands
from harness.pool.commands import app as pool_app
from harness.sizing import commands as sizing_commands
from harness.wire.errors import SwarmletError

app = typer.Typer(
    help="Compare Kubernetes control planes under the load of simulated kubelets.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(pool_app, name="pool")
app.add_typer(scenario_app, name="scenario")
app.add_typer(bench_app, name="bench")
experiment_commands.add_to(app)
cluster_commands.add_to(app)
sizing_commands.add_to(app)
manifest_commands.add_to(app)
console = Console()


@app.command()
def demo(
    kubelets: Annotated[int, typer.Option(help="nodes of the fleet")] = 100,
    samples: Annotated[int, typer.Option(help="runs of each arm")] = 3,
    pods_per_node: Annotated[int, typer.Option(help="pods for each kubelet")] = 4,
    members: Annotated[int, typer.Option(help="apiservers of the HA arm")] = 3,
    name: Annotated[str, typer.Option(help="folder under reports/runs; default: the time")] = "",
    fault: Annotated[
        list[str] | None,
        typer.Option(help="a fault in the HA arm, as locust's --fault takes it; may be repeated"),
    ] = None,
    seed: Annotated[int, typer.Option(help="of everything drawn at random")] = 1,
) -> None:
    """Compare one emulated master with an HA control plane, and write a report."""
    from harness.experiment.plan import ArmPlan, ExperimentPlan
    from harness.experiment.runner import run_experiment

    ha = ["--members", str(members), *(word for text in fault or () for word in ("--fault", text))]
    plan = ExperimentPlan(
        name=name or time.strftime("demo-%Y%m%d-%H%M%S"),
        title=f"One master or {members}: {kubelets} kubelets",
        arms=(ArmPlan("1 master", ("--members", "1")), ArmPlan(f"HA, {members} masters", tuple(ha))),
        samples=samples,
        seed=seed,
        arguments=("-u", str(kubelets), "-r", "50", "-t", "900s", "--scenario", "density"),
        environ={"CL2_PODS_PER_NODE": str(pods_per_node), "CL2_DELETE_NAMESPACES": "false"},
    )
    for path in run_experiment(plan, RUNS / plan.name, console).files:
        console.print(f"wrote {path}", soft_wrap=True)


@app.command(
    cls=PassingCommand,
    epilog="Every option that `swarmlet options` lists is taken as well, as --members, --kubeconfig, --fault, and "
    "Locust's own, as --processes, --html, --json-file, --loglevel.",
)
def run(
    context: typer.Context,
    scenario: Annotated[
        str,
        typer.Argument(help="a ClusterLoader2 config or suite, a kperf profile, or the name of one of ours"),
    ],
    nodes: Annotated[int, typer.Option("--nodes", "-u", "--users", help="kubelets of the fleet")] = 100,
    rate: Annotated[
        float, typer.Option("--rate", "-r", "--spawn-rate", help="kubelets registering each second")
    ] = 50.0,
    timeout: Annotated[
        str,
        typer.Option("--timeout", "-t", "--run-time", help="after which the run is ended, as 3600, 90s, 20m"),
    ] = "3600",
    record: Annotated[str, typer.Option(help="folder of the run record; default reports/runs/<time>")] = "",
) -> None:
    """Run one scenario with a fleet of kubelets, and print what it measured; each test of a suite is a run."""
    from harness.clusterloader import is_suite, load_suite
    from harness.load.scenarios import find_scenario

    path = find_scenario(scenario)
    folder = Path(record) if record else RUNS / time.strftime("run-%Y%m%d-%H%M%S")
    given = ["-u", str(nodes), "-r", f"{rate:g}", "-t", timeout, *context.obj]
    if not path or not is_suite(path):
        raise typer.Exit(_run_one(path, folder, given))
    ended: list[int] = []
    for test in load_suite(path):
        console.print(f"\n[bold]{test.identifier}[/] ({test.config})", highlight=False, soft_wrap=True)
        overrides = [word for name in test.overrides for word in ("--overrides", str(name))]
        ended.append(_run_one(str(test.config), folder / test.identifier, given + overrides))
    raise typer.Exit(next((code for code in (2, 1, 4, 3) if code in ended), 0))


def _run_one(scenario: str, folder: Path, given: list[str]) -> int:
    """The exit code of Locust with these arguments, after its results were printed."""
    from harness.experiment.locustrun import locust_command, run_locust
    from harness.experiment.progress import progress_line
    from harness.experiment.results import print_results
    from harness.load.commandline import check
    from harness.load.scenarios import locustfile_of

    arguments = ["--scenario", scenario or "none", "--record", str(folder), *given]
    check(arguments)
    began = time.monotonic()

    def tell(event: dict[str, object]) -> None:
        text = progress_line(event)
        if text:
            console.print(f"{time.monotonic() - began:6.1f} s  {text}", highlight=False, markup=False)

    code = run_locust(locust_command([locustfile_of(scenario)], arguments), folder, tell)
    return print_results(folder, code, console)


@app.command()
def options() -> None:
    """List the options that our locustfiles add to Locust's, whose own --help does not read a locustfile."""
    import configargparse  # type: ignore[import-untyped]

    from harness.load.arguments import add_arguments

    parser = configargparse.ArgumentParser(
        prog="locust -f locustfiles/kubelets.py", usage="%(prog)s ...", add_help=False, add_env_var_help=True
    )
    add_arguments(parser)
    parser.print_help()


@app.command()
def doctor() -> None:
    """Say what this machine lacks, and what it can hold."""
    from harness.doctor import examine

    findings = examine()
    table = Table("", "what", "here", "needed for", box=None)
    for finding in findings:
        table.add_row(
            "[green]ok[/]" if finding.ok else "[red]no[/]", finding.what, finding.here, finding.meaning
        )
    console.print(table)
    raise typer.Exit(0 if all(finding.ok or not finding.required for finding in findings) else 1)


def main() -> None:
    """Entry point: an error of ours is one line and its own exit code."""
    try:
        app()
    except SwarmletError as error:
        print(f"swarmlet: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
