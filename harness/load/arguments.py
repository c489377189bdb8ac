"""Custom arguments of our locustfiles, each also an environment variable SWARMLET_<NAME>."""

from __future__ import annotations

import argparse
import math
import secrets
import time
from pathlib import Path
from typing import Any

import msgspec

from harness.apiserver.faults.spec import FaultSpec, parse_spec
from harness.fleet.settings import parse_settings
from harness.load.clusterarguments import ClusterOptions, add_cluster_arguments, cluster_options
from harness.load.controllerarguments import add_controller_arguments, controllers_of, scheduler_of
from harness.load.informerarguments import add_informer_arguments, informers_of
from harness.load.informerplan import InformerPlan
from harness.load.openfiles import require_files
from harness.load.pacing import add_pace_argument, pace_of, without_prometheus
from harness.load.plan import Controllers
from harness.load.prometheus.arguments import (
    PrometheusOptions,
    add_prometheus_arguments,
    prometheus_options,
)
from harness.load.provisionerarguments import add_provisioner_arguments, provisioners_of
from harness.load.provisionerplan import Provisioners
from harness.load.scenarios import find_scenario
from harness.load.workers.nodes import LostWorker
from harness.pool.backend import check_faults
from harness.pool.emulated import PoolOptions
from harness.pool.faults import check_parts
from harness.pool.flags import FLAGS, pool_options
from harness.pool.network.places import places_of
from harness.transport.options import HttpMode
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace

DEFAULT_KUBELETS = 20
DEFAULT_SPAWN_RATE = 50.0
_OF_POOL = {
    "backend": "; existing is a cluster that is there: of -H, --kubeconfig, --endpoints, or your own kubeconfig",
    "members": ", used when there is no -H or --kubeconfig",
    "fault": "; with at=5s so long after load began, with step='create objects' when that step does, "
    "else from the pool's start; may be repeated",
}
"""What the flags of a pool say besides, where a run starts it."""


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
    faults: tuple[FaultSpec, ...] = ()
    scrape_interval_s: float = 5.0
    cluster: ClusterOptions = ClusterOptions()
    fleet: dict[str, Any] = {}
    """Fields of KubeletOptions."""
    run: str = ""
    """The value of the label on all that the run makes."""
    controllers: Controllers = Controllers()
    scheduler: dict[str, Any] = {}
    """Fields of SchedulerOptions."""
    prometheus: PrometheusOptions = PrometheusOptions()
    executors: int = 0
    """Workers that do the scenario's operations; 0 is as many as they need."""
    allow_exec: bool = False
    """A scenario may run commands on this machine."""
    provisioners: Provisioners | None = None
    """None where no user is a provisioner."""
    informers: InformerPlan = InformerPlan()
    """Of a locustfile whose users are informers."""
    raw_data: bool = False
    """A kperf profile's report holds every latency and every error."""
    lost_worker: LostWorker = LostWorker.END
    metrics_bind_address: tuple[str, int] | None = None
    """Host and port of the harness's own /metrics."""
    pace: Pace = REAL
    """Of the model, from the options' reading on; all times of the options are at it."""

    @property
    def target_text(self) -> str:
        """What the load is on, in words."""
        if self.existing:
            return (
                self.host
                or ", ".join(self.endpoints)
                or f"the cluster of {self.kubeconfig or 'your kubeconfig'}"
            )
        return f"{self.pool.members} {self.pool.backend} apiserver{'s' if self.pool.members > 1 else ''}"

    @property
    def existing(self) -> bool:
        """It is a control plane that is there; no pool is started."""
        return self.pool.backend == "existing" or bool(self.host or self.kubeconfig or self.endpoints)


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
        "--executors",
        default="auto",
        metavar="N",
        help="on how many workers the scenario's operations are spread; auto: on as many as their rate needs",
    )
    add(
        "--allow-exec",
        action="store_true",
        help="let the scenario run commands (Exec) on this machine",
    )
    add(
        "--raw-data",
        action="store_true",
        help="keep every latency and every error of a kperf profile in its report",
    )
    for flag in FLAGS:
        add(
            "--" + (flag.in_runs or flag.name),
            dest=f"pool_{flag.key}",
            default=flag.initial,
            metavar=flag.metavar or flag.key.upper(),
            help=flag.help + _OF_POOL.get(flag.name, ""),
            **({"action": "append"} if flag.many else {"type": flag.type}),
        )
    add(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="drive an existing cluster, with these credentials; in-cluster: a pod's own",
    )
    add("--endpoints", default="", metavar="HOST:PORT,...", help="the members of an existing control plane")
    add_cluster_arguments(add)
    add_controller_arguments(add)
    add_prometheus_arguments(add)
    add_informer_arguments(add)
    add_provisioner_arguments(add)
    add(
        "--record",
        default="",
        metavar="FOLDER",
        help="where the run record goes; default reports/runs/<time>",
    )
    add("--seed", type=int, default=1, help="of everything drawn at random")
    add("--arm", default="", help="name of the control plane under test, for comparisons")
    add("--sample", type=int, default=0, help="which sample of its arm this run is")
    add(
        "--http",
        default="auto",
        choices=["auto", "h2", "http/1.1"],
        help="protocol of the fleet's connections",
    )
    add(
        "--fleet",
        action="append",
        default=[],
        metavar="OPTION=VALUE,...",
        help="what kubelets do, as kube_proxy=true, watch_list=false, content_type=json, qps=10, start_jitter_s=30 "
        "(docs/kubelet-fidelity.md); may be repeated",
    )
    add(
        "--scrape-interval", type=float, default=5.0, metavar="SECONDS", help="between scrapes of each member"
    )
    add_pace_argument(add)
    add(
        "--lost-worker",
        default=LostWorker.END.value,
        choices=[choice.value for choice in LostWorker],
        help="when a worker is lost: end the run; let others take its kubelets over; or leave their nodes behind",
    )
    add(
        "--metrics-bind-address",
        default="",
        metavar="HOST:PORT",
        help="serve the run's own /metrics there for a Prometheus; with a web UI it has them too",
    )


def options_from(parsed: argparse.Namespace) -> RunOptions:
    """The options of a run. Raises ConfigError."""
    kubelets = DEFAULT_KUBELETS if parsed.num_users is None else parsed.num_users
    if kubelets < 1:
        raise ConfigError(f"-u {kubelets}: a fleet has at least 1 kubelet")
    spawn_rate = DEFAULT_SPAWN_RATE if parsed.spawn_rate is None else parsed.spawn_rate
    if spawn_rate <= 0:
        raise ConfigError(f"-r {spawn_rate:g}: at least some kubelets must register each second")
    faults = tuple(map(parse_spec, parsed.pool_fault))
    existing = _existing(parsed)
    fleet = parse_settings(parsed.fleet)
    connections = kubelets * (2 if fleet.get("kube_proxy") else 1)
    require_files(_at_one_process(connections, parsed, existing), parsed.http)
    pool = _pool(parsed, faults, kubelets, existing)
    if not parsed.scrape_interval >= 0.5:
        raise ConfigError(
            f"--scrape-interval {parsed.scrape_interval:g}: at least 0.5 s are needed between scrapes"
        )
    prometheus = prometheus_options(parsed)
    pace = pace_of(parsed.pace, pool, prometheus)
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
        faults=tuple(spec for spec in faults if spec.later),
        scrape_interval_s=parsed.scrape_interval,
        fleet=fleet,
        cluster=cluster_options(parsed, existing=existing, balancer=pool.balancer.kind),
        controllers=controllers_of(parsed),
        scheduler=scheduler_of(parsed),
        prometheus=without_prometheus(prometheus, pace),
        informers=informers_of(parsed),
        provisioners=provisioners_of(parsed),
        run=name,
        executors=_executors(parsed.executors),
        allow_exec=parsed.allow_exec,
        raw_data=parsed.raw_data,
        lost_worker=LostWorker(parsed.lost_worker),
        metrics_bind_address=_bind_address(parsed.metrics_bind_address),
        pace=pace,
    )


def _at_one_process(kubelets: int, parsed: argparse.Namespace, existing: bool) -> int:
    """Most kubelets of which one process on this machine holds one end of the connection."""
    if not existing or not parsed.master:
        return kubelets  # all may meet at one member; or all are this process's own
    return math.ceil(kubelets / parsed.processes) if parsed.processes else 0


def _existing(parsed: argparse.Namespace) -> bool:
    """Whether the target is a cluster that is there. Raises ConfigError where a pool is asked for as well."""
    named = [flag for flag in ("host", "kubeconfig", "endpoints") if getattr(parsed, flag)]
    if named and parsed.pool_backend not in ("", "existing"):
        raise ConfigError(
            f"--{named[0]} {getattr(parsed, named[0])}: names a cluster that is there; --backend "
            f"{parsed.pool_backend} starts one"
        )
    return bool(named) or parsed.pool_backend == "existing"


def _executors(text: str) -> int:
    """0 is auto."""
    if text == "auto":
        return 0
    if not text.isdecimal() or not int(text):
        raise ConfigError(f"--executors {text}: neither a number above 0, nor auto")
    return int(text)


def _bind_address(text: str) -> tuple[str, int] | None:
    """ ":8080" is every address of this machine, as Kubernetes' components take it; port 0 is a free one."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--metrics-bind-address {text}: not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _pool(
    parsed: argparse.Namespace, faults: tuple[FaultSpec, ...], nodes: int, existing: bool
) -> PoolOptions:
    """What the run starts, or the words for a cluster that is there. Raises ConfigError, also for an option that a
    pool would have where none is started."""
    values = {flag.key: getattr(parsed, f"pool_{flag.key}") for flag in FLAGS}
    if existing:
        values["backend"] = "existing"
        check_faults(faults, "existing")
    values["fault"] = [spec.text for spec in faults if not spec.later]
    values["link"] = [*values["link"], *places_of(spec for spec in faults if spec.later)]
    pool = pool_options(values, nodes=nodes, seed=parsed.seed)
    check_faults(faults, pool.backend)
    check_parts(faults, pool.parts)
    return pool
