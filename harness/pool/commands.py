"""``swarmlet pool ...``: starting a pool, and asking a pool that runs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.apiserver.faults.poolkinds import SILENCING, NetworkFault
from harness.apiserver.faults.spec import ALL, describe_kinds, make_spec
from harness.pool.backend import Pool
from harness.pool.disturbances import AskBalancer, BeginFault, ClearFaults, Disturbances, ListFaults
from harness.pool.faults import PATH, ask, order
from harness.pool.flags import FLAGS, pool_options
from harness.pool.network.places import BALANCER, ETCD
from harness.pool.running import RunningPool, find_pool
from harness.pool.supervisor import Ending, supervise
from harness.wire.errors import ConfigError

app = typer.Typer(help="Control planes on this machine, emulated or of real binaries.", no_args_is_help=True)
console = Console()

DEFAULT_KUBECONFIG = Path("swarmlet.kubeconfig")
VERIFY_PATH = "/swarmlet/verify"
POOL = "pool"
"""Whose answers are the supervisor's, among those of members."""

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
            default=flag.initial,
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
    """Start apiservers over one store, emulated ones or real ones (--backend binaries), until Ctrl-C."""
    options = pool_options(flags, nodes=nodes, seed=seed, kubeconfig=str(kubeconfig.absolute()))
    if options.backend == "existing":
        raise ConfigError("pool up --backend existing: there is nothing to start")

    def ready(pool: Pool, _: Disturbances) -> None:
        table = Table("member", "address", "pid", box=None)
        for member in pool.members:
            table.add_row(member.name, member.url, str(member.pid))
        console.print(table)
        described = pool.describe()
        for front in pool.around.front:
            if described["balancer"] is not None or described["links"]:
                console.print(f"clients reach {front.name} at {front.url}", highlight=False, soft_wrap=True)
        for line in _besides(described):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        console.print(f"ready; kubectl --kubeconfig {kubeconfig} get nodes", soft_wrap=True)

    supervise(options, on_ready=ready, on_event=_happened, ended=Ending())


def _besides(described: dict[str, Any]) -> Iterator[str]:
    """What a pool of binaries runs, and what it lacks."""
    binaries = described.get("binaries")
    if binaries is None:
        return
    yield ", ".join(f"{name} {program['version']}" for name, program in binaries.items())
    for name, there in (
        ("kube-scheduler", described["has_scheduler"]),
        ("kube-controller-manager", described["has_controllers"]),
    ):
        if not there:
            yield f"no {name} was found: a run brings its own, until then nobody does its work"
    yield from described["notes"]


def _happened(event: dict[str, Any]) -> None:
    match event.get("kind"):
        case "process-exited":
            again = ", and is started again" if event.get("restarts") else ""
            console.print(f"[red]{event['process']} ended unasked with code {event['code']}{again}[/]")
        case "process-restarted":
            console.print(f"{event['process']} is back after {event['seconds']:.1f} s")
        case "process-failed":
            console.print(f"[red]{event['process']} could not be started again:[/]", escape(event["message"]))
        case "member-restart-failed":
            console.print(f"[red]{event['member']} could not be started again:[/]", escape(event["error"]))
        case "component-ended":
            console.print(f"{event['process']} ended with code {event['code']}, and is started again")
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
        _finish(_list_or_clear(pool, kind, member), _print_faults)
        return
    common = [f"member={member}"] if member != "all" else []
    spec = make_spec(kind, [*(options or ()), *common, *([f"for={for_}"] if for_ else [])])
    if spec.later:
        raise ConfigError("pool fault: it begins now; at= and step= are for --fault of a run")
    pool = find_pool(kubeconfig or DEFAULT_KUBECONFIG, run)
    if spec.of_pool:
        if not isinstance(spec.fault, NetworkFault) and spec.member not in (ALL, ETCD):
            pool.check(spec.member)
        _finish({POOL: pool.tell(BeginFault(spec.text))}, _print_begun)
    else:
        _finish(order(pool.call, spec, pool.names), _print_begun)


def _list_or_clear(pool: RunningPool, what: str, member: str) -> dict[str, Any]:
    """The supervisor's answer, and those of members, less the ones that a fault has silenced. Raises ConfigError."""
    if member != ALL:
        pool.check(member)
    mine = pool.tell(ListFaults(member) if what == "list" else ClearFaults(member))
    method, silent = "GET" if what == "list" else "DELETE", _silenced(mine)
    chosen = [name for name in pool.names if member in (ALL, name) and name not in silent]
    return {**{name: ask(pool.call, name, method, PATH) for name in chosen}, POOL: mine}


def _silenced(answer: Any) -> dict[str, str]:
    """The fault of each part that does not answer for it, of those that the supervisor has listed."""
    faults = answer.get("faults", ()) if isinstance(answer, dict) else ()
    return {entry["member"]: entry["fault"] for entry in faults if entry["kind"] in SILENCING}


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
    well, mine = True, pool.tell(ListFaults())
    silent = _silenced(mine)
    for name in pool.names:
        row = [pool.url(name), "no", "", "", silent[name]] if name in silent else _status_of(pool, name)
        well = well and row[1] == "yes"
        table.add_row(name, *row)
    console.print(table)
    _print_surroundings(pool, mine)
    raise typer.Exit(0 if well else 1)


def _print_surroundings(pool: RunningPool, answer: Any) -> None:
    """What is done to the pool from outside, by its supervisor's list, and where its balancer has connections."""
    if isinstance(answer, str):
        console.print(answer, markup=False, soft_wrap=True)
        return
    for entry in answer["faults"]:
        length = _length(entry["seconds"])
        console.print(f"{entry['member']}: fault {entry['fault']}{length}", markup=False, soft_wrap=True)
    if BALANCER in pool.others:
        balanced = pool.tell(AskBalancer())
        if isinstance(balanced, dict):
            balanced = ", ".join(
                f"{name} {stats['current']} ({stats['status']})"
                for name, stats in balanced["members"].items()
            )
        console.print(f"{BALANCER}: connections: {balanced}", markup=False, highlight=False, soft_wrap=True)


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
    for name, answer in answers.items():
        for entry in answer.get("faults", [answer]):
            who, length = entry.get("member", name), _length(entry["seconds"])
            console.print(f"{who}: {entry['fault']}{length}", markup=False, soft_wrap=True)
    return True


def _print_faults(answers: dict[str, Any]) -> bool:
    table = Table("member", "fault", "for", "hits", box=None)
    for name, answer in answers.items():
        if "ended" in answer and (answer["ended"] or name != POOL):
            console.print(f"{name}: {answer['ended']} ended")
        for entry in answer.get("faults", ()):
            seconds = entry["seconds"]
            length = "-" if seconds is None else f"{seconds:g} s"
            table.add_row(entry.get("member", name), entry["fault"], length, str(entry["hits"]))
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
