"""``swarmlet bench ...``."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from harness.clusterloader.durations import parse_duration

app = typer.Typer(help="What a fleet takes of this machine.", no_args_is_help=True)
console = Console()


@app.callback()
def _bench() -> None:
    """A group, though it has one command so far."""


@app.command()
def kubelets(
    nodes: Annotated[int, typer.Option(help="kubelets, all in one Locust process")] = 500,
    watches: Annotated[int, typer.Option(help="watches that each of them holds")] = 35,
    members: Annotated[int, typer.Option(help="apiservers of the emulated pool")] = 3,
    duration: Annotated[
        str, typer.Option(help="measured time; its first half at rest, the second with events")
    ] = "120s",
    rate: Annotated[float, typer.Option(help="kubelets that Locust spawns each second")] = 20.0,
    setup: Annotated[float, typer.Option(help="seconds until every watch must be open")] = 900.0,
    seed: Annotated[int, typer.Option(help="of everything drawn at random")] = 1,
) -> None:
    """Memory, CPU, events and errors of a fleet on this machine, by process. Exits with 1 where there were errors."""
    from harness.bench.kubelets import Bench, BenchOptions
    from harness.bench.table import print_result

    began = time.monotonic()

    def tell(text: str) -> None:
        console.print(f"{time.monotonic() - began:6.1f} s  {text}", highlight=False, markup=False)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    options = BenchOptions(nodes, watches, members, parse_duration(duration), rate, setup, seed)
    result = Bench(options, tell).run()
    print_result(result, console)
    raise typer.Exit(1 if result.errors or result.failures else 0)


def _end(number: int, _frame: FrameType | None) -> None:
    """In order, as Ctrl-C does: every process is stopped on the way."""
    sys.exit(128 + number)
