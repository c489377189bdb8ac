"""``swarmlet plan``."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.console import Console

from harness.clusterloader.durations import option_seconds
from harness.wire.errors import ConfigError
from harness.wire.quantity import parse_quantity

console = Console()


def plan(
    nodes: Annotated[int, typer.Option(help="kubelets of the fleet")],
    watches_per_node: Annotated[int, typer.Option(help="watches that each of them holds")] = 35,
    events: Annotated[float, typer.Option(help="watch events for each kubelet and second")] = 0.2,
    members: Annotated[int, typer.Option(help="apiservers")] = 3,
    servers: Annotated[
        str, typer.Option(help="existing: elsewhere; emulated or binaries: a pool on this machine")
    ] = "existing",
    workers: Annotated[int, typer.Option(help="worker processes; 0: as many as are needed")] = 0,
    up_within: Annotated[str, typer.Option(help="in which every watch is to be open")] = "10m",
    http: Annotated[str, typer.Option(help="h2, or http/1.1 with a connection for each watch")] = "h2",
    balancer: Annotated[
        bool, typer.Option("--balancer", help="all connections go to one address, not to the members")
    ] = False,
    cores: Annotated[float, typer.Option(help="of the machine; 0: as this one")] = 0,
    memory: Annotated[
        str, typer.Option(help="of the machine, as 16Gi; default: what is free on this one")
    ] = "",
    calibration: Annotated[
        str, typer.Option(help="what kubelets cost, a file of `swarmlet bench --save`; default: this user's")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say what a fleet takes (workers, cores, memory, files, ports, network), and what ends first on this machine."""
    from harness.sizing.calibration import find_calibration
    from harness.sizing.fleet import Fleet
    from harness.sizing.limits import plan_for
    from harness.sizing.machine import this_machine
    from harness.sizing.show import as_json, print_plan

    if http not in ("h2", "http/1.1"):
        raise ConfigError(f"--http {http}: allowed are h2, http/1.1")
    fleet = Fleet(
        nodes=nodes,
        watches=watches_per_node,
        events_a_node_s=events,
        up_within_s=option_seconds("--up-within", up_within),
        members=members,
        servers=servers,  # type: ignore[arg-type]  # Fleet.validate says what is allowed
        http=http,  # type: ignore[arg-type]
        one_address=balancer,
        workers=workers or None,
    )
    found = find_calibration(calibration, os.environ)
    machine = this_machine(cores or None, _bytes(memory) if memory else None)
    planned = plan_for(fleet, found.calibration, machine)
    if json:
        typer.echo(as_json(planned, found).decode())
    else:
        print_plan(planned, found, console)


def _bytes(text: str) -> int:
    """A quantity as Kubernetes has it. Raises ConfigError."""
    found = parse_quantity(text)
    if found is None:
        raise ConfigError(f"--memory {text}: no quantity, as 16Gi or 500M")
    return int(found)


def add_to(app: typer.Typer) -> None:
    app.command()(plan)
