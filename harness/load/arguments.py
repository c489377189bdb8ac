"""Custom arguments of our locustfiles, each also an environment variable SWARMLET_<NAME>."""

from __future__ import annotations

import argparse
import math
import secrets
import time
from pathlib import Path
from typing import Any

import msgspec

from harness.load.faults import Fault, parse_fault
from harness.load.openfiles import require_files
from harness.load.scenarios import find_scenario
from harness.pool.emulated import PoolOptions
from harness.transport.options import HttpMode
from harness.wire.errors import ConfigError

DEFAULT_KUBELETS = 20
DEFAULT_SPAWN_RATE = 50.0


class RunOptions(msgspec.Struct, frozen=True):
    """What the command line asked for, checked. `kubelets`, `spawn_rate` and `run_time_s` are Locust's -u, -r, -t."""

    kubelets: int
    spawn_rate: float
    run_time_s: float | None
    record: Path
    seed: int
    pool: PoolOptions
    scenario: str
    overrides: tuple[str, ...]
    host: str = ""
    kubeconfig: str = ""
    endpoints: tuple[str, ...] = ()
    arm: str = ""
    sample: int = 0
    http: HttpMode = "auto"
    faults: tuple[Fault, ...] = ()
    scrape_interval_s: float = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add our group to Locust's parser."""
    group = parser.add_argument_group("swarmlet", "the fleet, its target and its record")

    def add(flag: str, **keywords: Any) -> None:
        name = "SWARMLET_" + flag.lstrip("-").replace("-", "_").upper()
        group.add_argument(flag, env_var=name, **keywords)

    add(
        "--scenario",
        default="density",
        metavar="FILE",
        help="ClusterLoader2 config to run, or the name of one of ours; 'none' keeps the fleet at rest until -t",
    )
    add(
        "--overrides",
        action="append",
        default=[],
        metavar="FILE",
        help="ClusterLoader2 override file; may be repeated",
    )
    add(
        "--members",
        type=int,
        default=1,
        help="apiservers of the emulated pool, used when there is no -H or --kubeconfig",
    )
    add(
        "--cores",
        default="auto",
        help="modelled cores of each member: a number, auto (8 x nodes / 5000), or host",
    )
    add("--pool-port", type=int, default=0, help="port of the first emulated member; 0: any free one")
    add("--max-requests-inflight", type=int, default=600, help="flow-control seats of each emulated member")
    add(
        "--cost",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one figure of the cost model",
    )
    add(
        "--etcd",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one figure of the etcd model",
    )
    add(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="drive an existing cluster, as its current context says",
    )
    add("--endpoints", default="", metavar="HOST:PORT,...", help="the members of an existing control plane")
    add(
        "--record",
        default="",
        metavar="FOLDER",
        help="where the run record goes; default reports/runs/<time>",
    )
    add("--seed", type=int, default=1, help="of everything drawn at random")
    add(
        "--fault",
        action="append",
        default=[],
        metavar="SPEC",
        help="stall-informer:MEMBER:SECONDS@SECONDS after load began",
    )
    add("--arm", default="", help="name of the control plane under test, for comparisons")
    add("--sample", type=int, default=0, help="which sample of its arm this run is")
    add(
        "--http",
        default="auto",
        choices=["auto", "h2", "http/1.1"],
        help="protocol of the fleet's connections",
    )
    add(
        "--scrape-interval", type=float, default=5.0, metavar="SECONDS", help="between scrapes of each member"
    )


def options_from(parsed: argparse.Namespace) -> RunOptions:
    """The options of a run. Raises ConfigError."""
    kubelets = DEFAULT_KUBELETS if parsed.num_users is None else parsed.num_users
    if kubelets < 1:
        raise ConfigError(f"-u {kubelets}: a fleet has at least 1 kubelet")
    spawn_rate = DEFAULT_SPAWN_RATE if parsed.spawn_rate is None else parsed.spawn_rate
    if spawn_rate <= 0:
        raise ConfigError(f"-r {spawn_rate:g}: at least some kubelets must register each second")
    existing = bool(parsed.host or parsed.kubeconfig or parsed.endpoints)
    require_files(_at_one_process(kubelets, parsed, existing), parsed.http)
    pool = PoolOptions(
        members=parsed.members,
        nodes=kubelets,
        cores=parsed.cores,
        seed=parsed.seed,
        port=parsed.pool_port,
        costs=_figures("--cost", parsed.cost),
        etcd=_figures("--etcd", parsed.etcd),
        max_requests_inflight=parsed.max_requests_inflight,
    )
    pool.validate()
    faults = tuple(map(parse_fault, parsed.fault))
    _check_faults(faults, 0 if existing else parsed.members)
    if not parsed.scrape_interval >= 0.5:
        raise ConfigError(
            f"--scrape-interval {parsed.scrape_interval:g}: at least 0.5 s are needed between scrapes"
        )
    name = time.strftime("%Y%m%d-%H%M%S") + f"-{secrets.token_hex(2)}"
    return RunOptions(
        kubelets=kubelets,
        spawn_rate=spawn_rate,
        run_time_s=float(parsed.run_time) if parsed.run_time else None,
        record=Path(parsed.record) if parsed.record else Path("reports/runs") / name,
        seed=parsed.seed,
        pool=pool,
        scenario=find_scenario(parsed.scenario),
        overrides=tuple(parsed.overrides),
        host=parsed.host or "",
        kubeconfig=parsed.kubeconfig,
        endpoints=tuple(filter(None, parsed.endpoints.split(","))),
        arm=parsed.arm,
        sample=parsed.sample,
        http=parsed.http,
        faults=faults,
        scrape_interval_s=parsed.scrape_interval,
    )


def _at_one_process(kubelets: int, parsed: argparse.Namespace, existing: bool) -> int:
    """Most kubelets of which one process on this machine holds one end of the connection."""
    if not existing or not parsed.master:
        return kubelets  # all may meet at one member; or all are this process's own
    return math.ceil(kubelets / parsed.processes) if parsed.processes else 0


def _check_faults(faults: tuple[Fault, ...], members: int) -> None:
    """`members` of the emulated pool; 0 where there is none."""
    known = [f"member-{index}" for index in range(members)]
    for fault in faults:
        if not known:
            raise ConfigError(
                f"--fault {fault.kind}: only the members of an emulated pool can be given faults"
            )
        if fault.member not in known:
            raise ConfigError(f"--fault {fault.kind}: no member {fault.member!r}, of {', '.join(known)}")


def _figures(flag: str, items: list[str]) -> dict[str, float]:
    figures = {}
    for item in items:
        key, equals, value = item.partition("=")
        try:
            figures[key] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ConfigError(f"{flag} {item!r}: expected KEY=NUMBER")
    return figures
