"""The result of a benchmark on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from harness.bench.kubelets import Result

AIM_MEMORY_KB = 64.0
AIM_REST_MS = 0.05
AIM_EVENT_US = 12.0
AIM_BLOCKED_MS = 50.0


def print_result(result: Result, console: Console) -> None:
    """Every process, then what a kubelet costs beside what it may, then errors."""
    console.print(_processes(result))
    console.print(_aims(result))
    errors = ", ".join(f"{count} x {what}" for what, count in result.errors.items())
    console.print(f"errors: {errors or 'none'}", highlight=False)
    for failure in result.failures:
        console.print(f"failed: {failure}", highlight=False, markup=False)


def _processes(result: Result) -> Table:
    options = result.options
    title = (
        f"{options.nodes} kubelets, {options.watches} watches each, {options.members} members, TLS and HTTP/2"
    )
    table = Table("process", title=title, title_justify="left")
    for heading in ("memory MB", "watches", *(f"CPU %, {phase.name}" for phase in result.phases)):
        table.add_column(heading, justify="right")
    for phase in result.phases:
        table.add_column(f"events/s, {phase.name}", justify="right")
    for name in sorted(result.phases[0].used):
        memory = result.phases[-1].used[name].rss_bytes / 2**20
        watches = sum(result.watches.values()) if name == "load" else result.watches.get(name)
        cells = [f"{memory:,.0f}", "" if watches is None else f"{watches:,.0f}"]
        cells += [f"{phase.used[name].cpu_s / phase.seconds:.1%}" for phase in result.phases]
        for phase in result.phases:
            events = sum(phase.events.values()) if name == "load" else phase.events.get(name)
            cells.append("" if events is None else f"{events / phase.seconds:,.1f}")
        table.add_row(name, *cells)
    return table


def _aims(result: Result) -> Table:
    table = Table("of one Locust process", box=None)
    for heading in ("measured", "aim"):
        table.add_column(heading, justify="right")

    def row(what: str, value: float | None, unit: str, aim: float | None, digits: int = 1) -> None:
        shown = "too few" if value is None else f"{value:,.{digits}f} {unit}"
        within = value is None or aim is None or value <= aim
        table.add_row(what, shown if within else f"[red]{shown}[/]", "" if aim is None else f"{aim:g} {unit}")

    row("memory a kubelet", result.memory_a_kubelet_kb, "KB", AIM_MEMORY_KB)
    row("CPU at rest, a kubelet-second", result.rest_cpu_ms, "ms", AIM_REST_MS, 3)
    row("CPU of an event", result.event_cpu_us, "us", AIM_EVENT_US)
    row("longest block of the loop while spawning", result.spawn_blocked_ms, "ms", AIM_BLOCKED_MS)
    for q in (0.5, 0.99):
        quantile = result.delivery.quantile_us(q)
        row(
            f"delivery of an event, p{q * 100:.0f}",
            None if quantile is None else quantile / 1e3,
            "ms",
            None,
            2,
        )
    row("registering all kubelets", result.spawn_s, "s", None)
    return table
