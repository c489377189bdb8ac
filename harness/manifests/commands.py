"""``swarmlet manifests``."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from harness.load.arguments import DEFAULT_SPAWN_RATE, RunOptions
from harness.load.commandline import PassingCommand, check
from harness.manifests.options import Asked, secret_of, variables_of
from harness.sizing.fleet import Fleet
from harness.wire.errors import ConfigError
from harness.wire.quantity import parse_quantity

_OURS = {
    **dict.fromkeys(
        ("--master", "--processes", "--expect-workers"), "the manifests have one master and --workers"
    ),
    **dict.fromkeys(
        ("--kubeconfig", "--tokens", "--ca-cert", "--ca-key"), "no file of this machine is in the pods"
    ),
    "--record": "the record is on the claim that --record-storage or --record-claim says",
    "--members": "no pool is started in a cluster",
}
"""Options of a run that manifests decide, and why."""
_SPAWNS = 0.7
"""Of what the workers can bring up, what they are asked for: a worker that does nothing else is late for its events."""


def manifests(
    context: typer.Context,
    nodes: Annotated[int, typer.Option("--nodes", "-u", "--users", help="kubelets of the fleet")],
    scenario: Annotated[
        str, typer.Argument(help="a ClusterLoader2 config, a kperf profile, the name of one of ours, or none")
    ] = "density",
    workers: Annotated[int, typer.Option(help="worker pods, one process each; 0: as many as are needed")] = 0,
    watches_per_node: Annotated[
        int, typer.Option(help="what a kubelet will hold, for requests and limits")
    ] = 35,
    image: Annotated[str, typer.Option(help="built from the Containerfile")] = "swarmlet:latest",
    namespace: Annotated[str, typer.Option(help="made for it")] = "swarmlet",
    name: Annotated[str, typer.Option(help="in front of every object's name")] = "swarmlet",
    kubeconfig_secret: Annotated[
        str,
        typer.Option(
            help="Secret with the kubeconfig of another cluster, NAME or NAME/KEY; else this cluster is driven"
        ),
    ] = "",
    kube_context: Annotated[str, typer.Option("--context", help="of that kubeconfig")] = "",
    i_know: Annotated[str, typer.Option(help="context of the cluster that may be put under load")] = "",
    identity: Annotated[
        str, typer.Option(help="how nodes show who they are: impersonate, certificate")
    ] = "impersonate",
    subject: Annotated[
        str,
        typer.Option(help="print what the other cluster needs instead, for this user or NAMESPACE:ACCOUNT"),
    ] = "",
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            "-r",
            "--spawn-rate",
            help="kubelets registering each second; 0: 50, or what workers can",
        ),
    ] = 0,
    timeout: Annotated[
        str, typer.Option("--timeout", "-t", "--run-time", help="after which the run is ended")
    ] = "3600",
    overrides: Annotated[
        list[str] | None, typer.Option(help="ClusterLoader2 override file; may be repeated")
    ] = None,
    variable: Annotated[
        list[str] | None, typer.Option(help="CL2_NAME=VALUE of the scenario; may be repeated")
    ] = None,
    locustfile: Annotated[
        str, typer.Option(help="of your own; default: the one of ours that runs the scenario")
    ] = "",
    record_storage: Annotated[
        str, typer.Option(help="size of the volume claim for the record; none: it goes with the pod")
    ] = "2Gi",
    record_claim: Annotated[str, typer.Option(help="a volume claim that is there, for the record")] = "",
    web: Annotated[
        bool, typer.Option("--web", help="a master with a web page, on which runs are started")
    ] = False,
    operator: Annotated[
        bool,
        typer.Option(
            "--operator", help="a LocustTest for Locust's own operator instead of Job and Deployment"
        ),
    ] = False,
    calibration: Annotated[str, typer.Option(help="what kubelets cost; see swarmlet plan")] = "",
) -> None:
    """Print manifests that run a fleet in a Kubernetes cluster, against that cluster or another one."""
    from harness.manifests.files import collect
    from harness.manifests.render import render
    from harness.manifests.rights import rights_of
    from harness.observe.environment import versions
    from harness.sizing.calibration import find_calibration
    from harness.sizing.limits import plan_for
    from harness.sizing.machine import in_a_pod

    extra = tuple(context.obj)
    _refuse(extra)
    fleet = Fleet(nodes, watches_per_node, workers=workers or None)
    plan = plan_for(fleet, find_calibration(calibration, os.environ).calibration, in_a_pod())
    asked = Asked(
        name=name,
        namespace=namespace,
        image=image,
        nodes=nodes,
        watches=watches_per_node,
        workers=plan.workers.count,
        rate=rate or min(DEFAULT_SPAWN_RATE, max(1, int(plan.workers.spawn_rate * _SPAWNS))),
        timeout=timeout,
        i_know=i_know,
        context=kube_context,
        identity=identity,
        secret=secret_of(kubeconfig_secret),
        storage=_storage(record_storage),
        claim=record_claim,
        web=web,
        operator=operator,
        variables=variables_of(variable or []),
        extra=extra,
        subject=subject,
        metrics_port=_metrics_port(extra),
    )
    asked.validate()
    files = collect(scenario, nodes, overrides or [], dict(asked.variables), locustfile)
    if operator:
        files.check_flat()
    rights = rights_of(_options_of_run(asked, scenario, overrides or []), files)
    typer.echo(render(asked, files, plan, versions()["swarmlet"], rights), nl=False)


def _refuse(extra: tuple[str, ...]) -> None:
    """What must not be among the options that are handed on. Raises ConfigError."""
    for word in extra:
        flag, _, value = word.partition("=")
        if flag in _OURS:
            raise ConfigError(f"manifests {flag}: {_OURS[flag]}")
        text = value or word
        if not text.startswith("-") and Path(text).is_file():
            raise ConfigError(f"manifests: {text} is a file of this machine; build it into the image")


def _options_of_run(asked: Asked, scenario: str, overrides: list[str]) -> RunOptions:
    """As the run's own parser reads what the master will be given. Raises ConfigError."""
    arguments = ["--master", "-u", str(asked.nodes), "-r", f"{asked.rate:g}", "-t", asked.timeout]
    arguments += ["--scenario", scenario, "--kubeconfig", asked.kubeconfig, "--identity", asked.identity]
    for path in overrides:
        arguments += ["--overrides", path]
    return check([*arguments, *asked.extra])


def _storage(text: str) -> str:
    """Raises ConfigError for what is no size."""
    found = parse_quantity(text)
    if text != "none" and (found is None or found <= 0):
        raise ConfigError(f"--record-storage {text}: neither a quantity, as 2Gi, nor none")
    return text


def _metrics_port(extra: tuple[str, ...]) -> int:
    """Of the run's own /metrics, 0 without; whether it is one is looked at by `_options_of_run`."""
    words = "=".join(extra).split("=")
    address = dict(pairwise(words)).get("--metrics-bind-address", "")
    port = address.rpartition(":")[2]
    return int(port) if port.isdecimal() else 0


def add_to(app: typer.Typer) -> None:
    app.command(
        cls=PassingCommand,
        epilog="Every option of a run that `swarmlet options` lists is taken as well, as --fleet, --endpoints, "
        "--metrics-bind-address, and Locust's own.",
    )(manifests)
