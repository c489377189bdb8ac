"""A plan on the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Console
from rich.table import Table

from harness.sizing.calibration import Found
from harness.sizing.limits import Limit, SizingPlan

_SERVERS = {
    "existing": "elsewhere; what a real one pays",
    "emulated": "emulated members, here",
    "binaries": "real kube-apiservers, here",
}


def as_json(plan: SizingPlan, found: Found) -> bytes:
    """The whole plan and the calibration that it rests on; bytes, seconds and cores are in the names."""
    calibration = {"path": str(found.path), "of_this_machine": found.of_here, **_builtins(found.calibration)}
    whole = {**_builtins(plan), "fits": plan.fits, "first_limit": plan.first.what, "calibration": calibration}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2)


def _builtins(thing: object) -> dict[str, object]:
    built: dict[str, object] = msgspec.to_builtins(thing)
    return built


def print_plan(plan: SizingPlan, found: Found, console: Console) -> None:
    """What the fleet needs, what the machine has, what ends first, and whose figures these are."""
    console.print(_needs(plan))
    console.print(_limits(plan))
    for line in verdict(plan, found):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _needs(plan: SizingPlan) -> Table:
    fleet, workers, servers = plan.fleet, plan.workers, plan.control_plane
    table = Table(
        box=None,
        show_header=False,
        title=f"{fleet.nodes:,} kubelets, {fleet.watches} watches each: {fleet.open_watches:,} watches",
        title_justify="left",
        pad_edge=False,
    )
    table.add_row(
        "workers",
        f"{workers.count:,}, at most {workers.kubelets:,} kubelets each (one has room for "
        f"{workers.limits[workers.limited_by]:,}: {workers.limited_by})",
    )
    table.add_row(
        "a worker",
        f"{size(workers.memory_bytes)}, {workers.cores:.2f} cores at rest and 1 while it opens watches, "
        f"{workers.files:,} open files",
    )
    table.add_row("master", f"{size(plan.master.memory_bytes)}, {plan.master.cores:.2f} cores")
    here = f", with all on this machine {duration(plan.opens_in_s)}"
    table.add_row(
        "start",
        f"{workers.spawn_rate:,.0f} kubelets a second at most (-r), all open after {duration(workers.opens_in_s)}"
        + (here if plan.opens_in_s > workers.opens_in_s else ""),
    )
    table.add_row(
        "network",
        f"{size(plan.network.rest_bytes_s)}/s at rest, {size(plan.network.opening_bytes)} to open everything",
    )
    table.add_row("control plane", _SERVERS[fleet.servers])
    table.add_row(
        "  members",
        f"{fleet.members}, {servers.watches_a_member:,} watches each; with one down {servers.busiest_watches:,} "
        f"and {size(servers.busiest_memory_bytes)}",
    )
    table.add_row(
        "  all of it",
        f"{size(servers.memory_bytes)}, {servers.cores:.2f} cores at rest, {servers.opening_cpu_s:,.0f} CPU seconds "
        f"to open everything, {servers.requests_a_second:,.0f} heartbeats/s",
    )
    return table


def _limits(plan: SizingPlan) -> Table:
    table = Table("on one machine like this", title_justify="left")
    for heading in ("needed", "here", "enough for kubelets"):
        table.add_column(heading, justify="right")
    table.add_column("more by")
    for limit in plan.limits:
        needed, here = (amount(limit, value) for value in (limit.needed, limit.available))
        shown = needed if limit.enough else f"[red]{needed}[/]"
        table.add_row(limit.what, shown, here, f"{limit.holds:,}", limit.remedy)
    return table


def verdict(plan: SizingPlan, found: Found) -> Iterator[str]:
    """Sentences: what ends first, how many machines, whose figures."""
    first, nodes = plan.first, plan.fleet.nodes
    if plan.fits:
        yield f"fits on this machine; first to end, at {first.holds:,} kubelets: {first.what}"
    elif plan.machines is None:
        yield f"does not fit on this machine: {first.what} is enough for {first.holds:,} of {nodes:,} kubelets"
    else:
        yield f"needs {plan.machines} machines like this one; first to end on each: {first.what}"
    if plan.workers.limits[plan.workers.limited_by] < plan.workers.kubelets:
        room = plan.workers.limits[plan.workers.limited_by]
        yield (
            f"--workers {plan.workers.count}: {plan.workers.kubelets:,} kubelets in one, which has room for {room:,} "
            f"({plan.workers.limited_by})"
        )
    yield _origin(found)


def _origin(found: Found) -> str:
    calibration = found.calibration
    cores, python = calibration.machine.get("cores", "?"), calibration.machine.get("python", "?")
    if found.of_here:
        return f"by {found.path}, measured on {calibration.date} ({cores} cores, Python {python})"
    return (
        f"by the figures that come with swarmlet, of another machine ({cores} cores, Python {python}, "
        f"{calibration.date}); for this one: swarmlet bench --save"
    )


# ---- amounts ---------------------------------------------------------------------------------------------------------
def amount(limit: Limit, value: float) -> str:
    if limit.unit == "bytes":
        return size(value)
    if limit.unit == "s":
        return duration(value)
    return f"{value:,.2f}" if limit.unit == "cores" else f"{value:,.0f}"


def size(value: float) -> str:
    """Decimal units: 1 MB is a million bytes."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if value >= scale:
            return f"{value / scale:,.1f} {unit}"
    return f"{value / 1e3:,.1f} kB"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
