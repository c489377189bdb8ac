"""``swarmlet rbac``, ``swarmlet cleanup`` and ``swarmlet tokens``: before and after a run on an existing cluster."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.wire.errors import ConfigError

if TYPE_CHECKING:
    from harness.load.cluster.cleanup import Findings

console = Console()

NODE_GROUP = "system:nodes"
_IDENTITIES = ("impersonate", "token", "certificate")


def rbac(
    identity: Annotated[str, typer.Option(help="of the nodes: " + ", ".join(_IDENTITIES))] = "impersonate",
    own_ca: Annotated[bool, typer.Option("--own-ca", help="the run has --ca-cert and --ca-key")] = False,
    scenario: Annotated[
        str, typer.Option(help="a ClusterLoader2 config, the name of one of ours, or none")
    ] = "density",
    controllers: Annotated[
        bool, typer.Option("--controllers", help="the cluster has no scheduler or controllers of its own")
    ] = False,
    kube_proxy: Annotated[bool, typer.Option("--kube-proxy", help="the fleet has kube_proxy=true")] = False,
    provisioners: Annotated[
        bool, typer.Option("--provisioners", help="the run is one of locustfiles/provisioners.py")
    ] = False,
    informers: Annotated[
        list[str] | None,
        typer.Option(
            help="of a run of locustfiles/informers.py, as that takes it (resource=pods); may be repeated"
        ),
    ] = None,
    lists: Annotated[str, typer.Option(help="with --informers: the file of the run's --lists")] = "none",
    writer: Annotated[
        list[str] | None, typer.Option(help="with --informers: as the run takes it (resource=secrets)")
    ] = None,
    subject: Annotated[
        str, typer.Option(help="who runs it: a user, or NAMESPACE:NAME of a service account")
    ] = "",
) -> None:
    """Print the ClusterRole and its binding that a run on an existing cluster needs."""
    from harness.clusterloader import load_config
    from harness.load.cluster.permissions import manifest, needed
    from harness.load.controllerarguments import NAMES
    from harness.load.informerarguments import informer_plan
    from harness.load.scenarios import find_scenario

    if identity not in _IDENTITIES:
        raise ConfigError(f"--identity {identity}: allowed are {', '.join(_IDENTITIES)}")
    path = find_scenario(scenario)
    config = load_config(path, 1, (), os.environ) if path else None
    if not informers and (writer or lists != "none"):
        raise ConfigError("rbac: --lists and --writer are of a run with --informers")
    rules = needed(
        identity,
        own_authority=own_ca,
        kube_proxy=kube_proxy,
        scheduler=controllers,
        controllers=NAMES if controllers else (),
        provisioners=provisioners,
        informers=informer_plan(informers, lists, writer or ()) if informers else None,
        config=config,
    )
    print(manifest(rules, subject), end="")


def cleanup(
    run: Annotated[str, typer.Option(help="the run whose objects go; its record's manifest names it")] = "",
    every: Annotated[bool, typer.Option("--all", help="the objects of all runs")] = False,
    kubeconfig: Annotated[str, typer.Option(help="of the cluster; default: as kubectl's")] = "",
    context: Annotated[str, typer.Option(help="of the kubeconfig; default: its current one")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say what would be deleted")] = False,
) -> None:
    """Delete the nodes and objects that runs made in a cluster, and nothing else: those that carry their label."""
    from harness.load.cluster.cleanup import find, remove
    from harness.load.cluster.errands import Errands
    from harness.load.target import existing_target

    if bool(run) == every:
        raise ConfigError("cleanup: give either --run ID or --all; --dry-run lists without deleting")
    target = existing_target("", kubeconfig, (), context).target
    with Errands(target) as errands:
        found = find(errands, run)
        _show(found, target.context)
        if found.objects and not dry_run:
            accepted = remove(errands, found.objects)
            console.print(f"{accepted} deleted; what lies in namespaces and what nodes own goes with them")


def _show(found: Findings, context: str) -> None:
    for resource, why in found.passed_over.items():
        console.print(f"passed over: {resource}: {why}", markup=False, highlight=False, soft_wrap=True)
    if not found.objects:
        console.print(f"{context}: nothing that a run made", markup=False)
        return
    table = Table("run", "resource", "objects", box=None)
    for (run, resource), count in found.counts().items():
        table.add_row(run, resource, str(count))
    console.print(table)


def tokens(
    nodes: Annotated[int, typer.Option(help="kubelets of the fleet")],
    workers: Annotated[int, typer.Option(help="Locust's worker processes")] = 1,
) -> None:
    """Print tokens for the nodes of a fleet, as kube-apiserver's --token-auth-file and a run's --tokens take them."""
    from harness.load.identity.tokens import made_up

    if nodes < 1 or workers < 1:
        raise ConfigError("tokens: at least 1 node and 1 worker")
    print(made_up(nodes, workers, NODE_GROUP), end="")


def add_to(app: typer.Typer) -> None:
    for command in (rbac, cleanup, tokens):
        app.command()(command)
