"""``swarmlet pool ...``: starting a pool, and asking a pool that runs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from harness.apiserver.faults.spec import describe_kinds, make_spec
from harness.pool.emulated import EmulatedPool
from harness.pool.faults import PATH, ask, order
from harness.pool.flags import FLAGS, pool_options
from harness.pool.running import RunningPool, find_pool
from harness.pool.supervisor import Ending, supervise
from harness.wire.errors import ConfigError

app = typer.Typer(help="Emulated control planes on this machine.", no_args_is_help=True)
console = Console()

DEFAULT_KUBECONFIG = Path("swarmlet.kubeconfig")
VERIFY_PATH = "/swarmlet/verify"

Kubeconfig = Annotated[
    Path | None, typer.Option(help=f"the pool's kubeconfig; default {DEFAULT_KUBECONFIG}, or --run's")
]
Run = Annotated[Path | None, typer.Option(help="record of a run whose pool is meant", metavar="FOLDER")]


# ---- a pool of one's own -------------------------------------------------------------------------------------------
def _with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with a typer option for each flag of the table, given to it as keyword arguments."""
    own = [
        parameter
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    flags = [
        inspect.Parameter(
            flag.key,
            inspect.Parameter.KEYWORD_ONLY,
            default=list(flag.default) if flag.many else flag.default,
            annotation=Annotated[
                list[str] if flag.many else flag.type,
                typer.Option(f"--{flag.name}", help=flag.help, metavar=flag.metavar or None),
            ],
        )
        for flag in FLAGS
    ]
    command.__signature__ = inspect.Signature([*flags, *own])  # type: ignore[attr-defined]
    return command


@app.command("up")
@_with_flags
def up(
    *,
    nodes: Annotated[int, typer.Option(help="size of the fleet it is for; sets --cores auto")] = 100,
    kubeconfig: Annotated[Path, typer.Option(help="where to write the kubeconfig")] = DEFAULT_KUBECONFIG,
    seed: Annotated[int, typer.Option(help="of everything drawn at random")] = 1,
    **flags: Any,
) -> None:
    """Start emulated apiservers over one store, until Ctrl-C."""
    options = pool_options(flags, nodes=nodes, seed=seed, kubeconfig=str(kubeconfig.absolute()))

    def ready(pool: EmulatedPool) -> None:
        table = Table("member", "address", "pid", box=None)
        for member in pool.members:
            table.add_row(member.name, member.url, str(member.pid))
        console.print(table)
        console.print(f"ready; kubectl --kubeconfig {kubeconfig} get nodes", soft_wrap=True)

    supervise(options, on_ready=ready, on_event=_happened, ended=Ending())


def _happened(event: dict[str, Any]) -> None:
    match event.get("kind"):
        case "process-exited":
            console.print(f"[red]{event['process']} ended unasked with code {event['code']}[/]")
        case "fault-started":
            console.print(
                f"{event['member']}: fault {event['fault']}{_length(event['seconds'])}", markup=False
            )
        case "fault-ended":
            met = f", {event['hits']} met it" if event["hits"] else ""
            console.print(f"{event['member']}: fault {event['fault']} has ended{met}", markup=False)
        case "fault-failed":
            console.print(f"{event['member']}: fault {event['fault']} failed: {event['error']}", markup=False)


# ---- a pool that runs ----------------------------------------------------------------------------------------------
@app.command("fault", epilog="See `swarmlet pool fault kinds` for the kinds and their options.")
def fault(
    kind: Annotated[str, typer.Argument(help="a kind of fault; or: kinds, list, clear", metavar="KIND")],
    options: Annotated[
        list[str] | None, typer.Argument(help="options of the kind", metavar="[OPTION=VALUE]...")
    ] = None,
    member: Annotated[str, typer.Option(help="name of one member, or all")] = "all",
    for_: Annotated[
        str, typer.Option("--for", help="how long, as 20s or 5m; default: as long as the pool runs")
    ] = "",
    kubeconfig: Kubeconfig = None,
    run: Run = None,
) -> None:
    """Give the members of a pool that runs a fault; list the active ones; end them all."""
    if kind == "kinds":
        _print_kinds()
        return
    if kind in ("list", "clear"):
        if options or for_:
            raise ConfigError(f"pool fault {kind} takes no options of a fault")
        pool = find_pool(kubeconfig or DEFAULT_KUBECONFIG, run)
        chosen = pool.names if member == "all" else [pool.check(member)]
        method = "GET" if kind == "list" else "DELETE"
        _finish({name: ask(pool.call, name, method, PATH) for name in chosen}, _print_faults)
        return
    common = [f"member={member}"] if member != "all" else []
    spec = make_spec(kind, [*(options or ()), *common, *([f"for={for_}"] if for_ else [])])
    if spec.at_s is not None:
        raise ConfigError("pool fault: it begins now; at= is for --fault of a run")
    pool = find_pool(kubeconfig or DEFAULT_KUBECONFIG, run)
    _finish(order(pool.call, spec, pool.names), _print_begun)


@app.command("verify")
def verify(kubeconfig: Kubeconfig = None, run: Run = None) -> None:
    """Have each member compare its watch caches with the store; exit code 1 where one differs."""
    pool = find_pool(kubeconfig or DEFAULT_KUBECONFIG, run)
    _finish({name: ask(pool.call, name, "POST", VERIFY_PATH) for name in pool.names}, _print_verdicts)


@app.command("status")
def status(kubeconfig: Kubeconfig = None, run: Run = None) -> None:
    """What each member of a pool is doing; exit code 1 where one does not answer or is not ready."""
    pool = find_pool(kubeconfig or DEFAULT_KUBECONFIG, run)
    table = Table("member", "address", "ready", "watches", "connections", "faults", box=None)
    well = True
    for name in pool.names:
        row = _status_of(pool, name)
        well = well and row[1] == "yes"
        table.add_row(name, *row)
    console.print(table)
    raise typer.Exit(0 if well else 1)


def _status_of(pool: RunningPool, name: str) -> list[str]:
    try:
        code, _ = pool.call(name, "GET", "/readyz", b"")
        _, text = pool.call(name, "GET", "/metrics", b"")
    except OSError as error:
        return [pool.url(name), str(error) or type(error).__name__, "", "", ""]
    faults = ask(pool.call, name, "GET", PATH)
    active = [entry["fault"] for entry in faults["faults"]] if isinstance(faults, dict) else [str(faults)]
    return [
        pool.url(name),
        "yes" if code == 200 else f"no (HTTP {code})",
        f"{_sum_of(text, b'apiserver_longrunning_requests'):g}",
        f"{max(0.0, _sum_of(text, b'process_open_fds') - 20):g}",
        "; ".join(active) or "none",
    ]


def _sum_of(text: bytes, family: bytes) -> float:
    return sum(
        float(line.rsplit(b" ", 1)[1])
        for line in text.splitlines()
        if line.startswith((family + b"{", family + b" "))
    )


# ---- output --------------------------------------------------------------------------------------------------------
def _finish(answers: dict[str, Any], show: Callable[[dict[str, Any]], bool]) -> None:
    """Show what members answered; those that did not go to standard error. Exit code 1 where one did not, or `show`
    found fault with it."""
    refused = {name: answer for name, answer in answers.items() if isinstance(answer, str)}
    well = show({name: answer for name, answer in answers.items() if name not in refused})
    for name, why in refused.items():
        print(f"swarmlet: {name}: {why}", file=sys.stderr)
    if refused or not well:
        raise typer.Exit(1)


def _print_begun(answers: dict[str, Any]) -> bool:
    for name, entry in answers.items():
        console.print(f"{name}: {entry['fault']}{_length(entry['seconds'])}", markup=False, soft_wrap=True)
    return True


def _print_faults(answers: dict[str, Any]) -> bool:
    table = Table("member", "fault", "for", "hits", box=None)
    for name, answer in answers.items():
        if "ended" in answer:
            console.print(f"{name}: {answer['ended']} ended")
        for entry in answer.get("faults", ()):
            seconds = entry["seconds"]
            table.add_row(
                name, entry["fault"], "-" if seconds is None else f"{seconds:g} s", str(entry["hits"])
            )
    if table.row_count:
        console.print(table)
    elif answers and all("faults" in answer for answer in answers.values()):
        console.print("no faults are active")
    return True


def _print_kinds() -> None:
    table = Table("kind", "options and their defaults", "what it does", box=None)
    for row in describe_kinds():
        table.add_row(*row)
    console.print(table)


def _length(seconds: float | None) -> str:
    return "" if seconds is None else f" for {seconds:g} s"


def _print_verdicts(answers: dict[str, Any]) -> bool:
    """One line for each cache that differs or could not be checked, and a sum for each member."""
    table = Table("member", "caches", "objects", "result", box=None)
    well = True
    for name, verdicts in answers.items():
        bad = [verdict for verdict in verdicts if verdict["status"] != "success"]
        well = well and not bad
        objects = sum(verdict.get("objects", 0) for verdict in verdicts)
        result = "as the store" if not bad else f"[red]{len(bad)} not as the store[/]"
        table.add_row(name, str(len(verdicts)), str(objects), result)
        for verdict in bad:
            what = f"  {verdict['resource']}: {verdict['status']}"
            table.add_row(what, "", str(verdict.get("objects", 0)), verdict.get("difference", ""))
    console.print(table)
    return well
