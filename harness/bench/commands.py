"""``swarmlet bench ...``."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from harness.clusterloader.durations import option_seconds
from harness.wire.errors import ConfigError

app = typer.Typer(help="What a fleet takes of this machine.", invoke_without_command=True)
console = Console()


@app.callback()
def bench(
    context: typer.Context,
    save: Annotated[
        bool, typer.Option("--save", help="measure two small fleets, and keep it for `swarmlet plan`")
    ] = False,
    nodes: Annotated[int, typer.Option(help="kubelets of each, with --save")] = 300,
    watches: Annotated[int, typer.Option(help="watches of each kubelet of the second, with --save")] = 35,
    duration: Annotated[str, typer.Option(help="measured time of each, with --save")] = "60s",
    to: Annotated[str, typer.Option(help="the file, with --save; default: where `swarmlet plan` looks")] = "",
) -> None:
    """What a fleet takes of this machine."""
    if context.invoked_subcommand is not None:
        return
    if not save:
        typer.echo(context.get_help())
        return
    from harness.bench.calibration import calibrate, options_of
    from harness.sizing.calibration import state_file, write_calibration

    path = Path(to) if to else state_file(os.environ)
    options = options_of(nodes, watches, option_seconds("--duration", duration))
    _end_in_order()
    calibration = calibrate(options, _teller())
    try:
        write_calibration(path, calibration)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None
    console.print(f"wrote {path}", soft_wrap=True)


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
    profile: Annotated[
        str, typer.Option(metavar="FOLDER", help="a flame graph of each process goes there (py-spy)")
    ] = "",
) -> None:
    """Memory, CPU, events and errors of a fleet on this machine, by process. Exits with 1 where there were errors."""
    from harness.bench.flames import Flames
    from harness.bench.kubelets import Bench, BenchOptions
    from harness.bench.table import print_result

    options = BenchOptions(nodes, watches, members, option_seconds("--duration", duration), rate, setup, seed)
    _end_in_order()
    result = Bench(options, _teller(), Flames(Path(profile)) if profile else None).run()
    print_result(result, console)
    raise typer.Exit(1 if result.errors or result.failures else 0)


def _teller() -> Callable[[str], None]:
    """Prints what it is told, with the seconds since now."""
    began = time.monotonic()

    def tell(text: str) -> None:
        console.print(f"{time.monotonic() - began:6.1f} s  {text}", highlight=False, markup=False)

    return tell


def _end_in_order() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    """In order, as Ctrl-C does: every process is stopped on the way."""
    sys.exit(128 + number)
