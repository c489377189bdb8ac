"""The options of an emulated pool as flags: one table for ``swarmlet pool up`` and for Locust's command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from harness.apiserver.auth.nodelag import FORMS
from harness.apiserver.featuregates import parse_gates
from harness.apiserver.options import SIGNING_DURATION_S
from harness.pool.backend import Backend
from harness.pool.balancer.options import BalancerOptions
from harness.pool.binaries.options import BinariesOptions
from harness.pool.emulated import PoolOptions
from harness.pool.objects import read_objects
from harness.pool.ports import HOST
from harness.pool.stores import StoreOptions
from harness.wire.errors import ConfigError


class PoolFlag(NamedTuple):
    """`name` as on the command line of a pool; `in_runs` its name where a run starts the pool, when that differs.
    `many`: it may be given more than once. `only`: the backend that it means something to, "" for both."""

    name: str
    type: type[int] | type[float] | type[str]
    default: Any
    help: str
    metavar: str = ""
    many: bool = False
    in_runs: str = ""
    only: str = ""

    @property
    def key(self) -> str:
        """Its name in `pool_options`' values."""
        return self.name.replace("-", "_")

    @property
    def initial(self) -> Any:
        """Its value where it is not given, as a parser holds it."""
        return list(self.default) if self.many else self.default


FLAGS = (
    PoolFlag(
        "backend", str, "", "emulated (the default), or binaries: real kube-apiservers (docs/binaries.md)"
    ),
    PoolFlag("members", int, 1, "apiservers of the pool"),
    PoolFlag(
        "cores",
        str,
        "auto",
        "modelled cores of each: a number, auto (8 x nodes / 5000), or host",
        only="emulated",
    ),
    PoolFlag("host", str, HOST, "IP address that the members listen on", in_runs="pool-host"),
    PoolFlag("port", int, 0, "of the first member, the others follow; 0: free ones", in_runs="pool-port"),
    PoolFlag(
        "max-requests-inflight",
        str,
        "600",
        "flow-control seats of each member; auto: 600 for each 8 modelled cores",
    ),
    PoolFlag("event-ttl", float, 3600.0, "seconds that events last", "SECONDS"),
    PoolFlag("feature-gates", str, "", "as kube-apiserver's, of those that are known", "NAME=true,..."),
    PoolFlag(
        "protobuf-answers",
        str,
        "false",
        "answer in protobuf who prefers it: true or false",
        only="emulated",
    ),
    PoolFlag("goaway-chance", float, 0.0, "kube-apiserver's --goaway-chance, at most 0.02"),
    PoolFlag("shutdown-delay", float, 0.0, "kube-apiserver's --shutdown-delay-duration", "SECONDS"),
    PoolFlag(
        "sign-csrs", str, "true", "approve and sign certificate requests: true or false", only="emulated"
    ),
    PoolFlag(
        "cluster-signing-duration",
        float,
        SIGNING_DURATION_S,
        "kube-controller-manager's, of what members sign",
        "SECONDS",
    ),
    PoolFlag("credentials", str, "token", "of the kubeconfig's user: token or certificate"),
    PoolFlag(
        "priority-and-fairness", str, "true", "kube-apiserver's --enable-priority-and-fairness: true or false"
    ),
    PoolFlag(
        "node-authorizer",
        str,
        (),
        f"lag={FORMS}; on-miss=deny, wait or retry; of one member as member-1.lag=...",
        "KEY=VALUE",
        many=True,
        only="emulated",
    ),
    PoolFlag("data-dir", str, "", "folder that keeps what is written; default: memory alone", "FOLDER"),
    PoolFlag(
        "etcd-servers",
        str,
        "",
        "a real etcd instead of the modelled one: its addresses, or binary (binary=3) to start it with the pool",
        "URL,...",
    ),
    PoolFlag("etcd-binary", str, "", "etcd to start with binary; default: the one found", "FILE"),
    PoolFlag("etcd-cafile", str, "", "CA of an etcd at https addresses", "FILE"),
    PoolFlag("etcd-certfile", str, "", "client certificate for it", "FILE"),
    PoolFlag("etcd-keyfile", str, "", "key of that certificate", "FILE"),
    PoolFlag(
        "cost", str, (), "override one figure of the cost model", "KEY=VALUE", many=True, only="emulated"
    ),
    PoolFlag(
        "etcd", str, (), "override one figure of the etcd model", "KEY=VALUE", many=True, only="emulated"
    ),
    PoolFlag(
        "objects",
        str,
        "",
        "YAML file of objects to apply once members are ready: FlowSchemas, PriorityLevelConfigurations, ...",
        "FILE",
        in_runs="pool-objects",
    ),
    PoolFlag(
        "binaries-dir",
        str,
        "",
        "folder with kube-apiserver and more; default: where Kubernetes' test tools look",
        "FOLDER",
        only="binaries",
    ),
    *(
        PoolFlag(
            f"{component}-flag",
            str,
            (),
            f"a flag of kube-{component}'s, beside those that the pool passes",
            "NAME=VALUE",
            many=True,
            only="binaries",
        )
        for component in ("apiserver", "scheduler", "controller-manager")
    ),
    PoolFlag(
        "balancer",
        str,
        "",
        "haproxy: clients see one address, HAProxy's; default: they choose a member themselves",
    ),
    PoolFlag(
        "balancer-policy",
        str,
        BalancerOptions().policy,
        "HAProxy's: roundrobin, leastconn, source, random or random(DRAWS)",
    ),
    PoolFlag("balancer-check", str, BalancerOptions().check, "of members: https (/readyz) or tcp"),
    PoolFlag("balancer-binary", str, "", "haproxy to start; default: the one on PATH", "FILE"),
    PoolFlag(
        "link",
        str,
        (),
        "place for a fault of the network, as clients,member-0, balancer,members or members,etcd; a fault that is "
        "given with --fault brings its own",
        "PART,PART",
        many=True,
    ),
    PoolFlag(
        "fault",
        str,
        (),
        "a fault, as 'slow median=50ms member=member-1 for=20s'; 'swarmlet pool fault kinds' lists them",
        "SPEC",
        many=True,
    ),
)


def pool_options(values: Mapping[str, Any], *, nodes: int, seed: int, kubeconfig: str = "") -> PoolOptions:
    """Options from the flags' values, by `key`; validated. Raises ConfigError."""
    backend = _backend(values)
    options = PoolOptions(
        backend=backend,
        members=values["members"],
        nodes=nodes,
        cores=values["cores"],
        seed=seed,
        host=values["host"],
        port=values["port"],
        kubeconfig=kubeconfig,
        costs=figures("--cost", values["cost"]),
        etcd=figures("--etcd", values["etcd"]),
        max_requests_inflight=values["max_requests_inflight"],
        event_ttl_s=values["event_ttl"],
        feature_gates=parse_gates(values["feature_gates"], any_gate=backend != "emulated"),
        protobuf_answers=switched("--protobuf-answers", values["protobuf_answers"]),
        goaway_chance=values["goaway_chance"],
        shutdown_delay_s=values["shutdown_delay"],
        sign_csrs=switched("--sign-csrs", values["sign_csrs"]),
        signing_duration_s=values["cluster_signing_duration"],
        credentials=values["credentials"],
        faults=tuple(values["fault"]),
        priority_and_fairness=switched("--priority-and-fairness", values["priority_and_fairness"]),
        node_authorizer=settings("--node-authorizer", values["node_authorizer"]),
        store=StoreOptions(
            values["data_dir"],
            values["etcd_servers"],
            values["etcd_binary"],
            values["etcd_cafile"],
            values["etcd_certfile"],
            values["etcd_keyfile"],
        ),
        links=tuple(values["link"]),
        balancer=BalancerOptions(
            values["balancer"],
            values["balancer_policy"],
            values["balancer_check"],
            values["balancer_binary"],
        ),
        objects=read_objects(values["objects"]) if values["objects"] else (),
        binaries=BinariesOptions(
            values["binaries_dir"],
            tuple(values["apiserver_flag"]),
            tuple(values["scheduler_flag"]),
            tuple(values["controller_manager_flag"]),
        ),
    )
    options.validate()
    return options


def _backend(values: Mapping[str, Any]) -> Backend:
    """Raises ConfigError for one that there is not, and for a flag that means nothing to the one that is chosen."""
    given = values["backend"] or "emulated"
    backend: Backend | None = next((known for known in get_args(Backend) if known == given), None)
    if backend is None:
        raise ConfigError(f"--backend {given!r}: none of {', '.join(get_args(Backend))}")
    for flag in FLAGS:
        own = flag.only in ("", backend) and backend != "existing"
        if not own and flag.name != "backend" and values[flag.key] != flag.initial:
            raise ConfigError(f"--{flag.in_runs or flag.name}: {_why_not(flag, backend)}")
    return backend


def _why_not(flag: PoolFlag, backend: Backend) -> str:
    if backend == "existing":
        return "no pool is started for a cluster that is there, which is as it is"
    if flag.only == "emulated":
        return "only an emulated member has it, a real kube-apiserver (--backend binaries) does not"
    return "it is for real kube-apiservers, with --backend binaries"


def switched(flag: str, text: str) -> bool:
    """Raises ConfigError for what is neither true nor false."""
    if text not in ("true", "false"):
        raise ConfigError(f"{flag} {text!r}: neither true nor false")
    return text == "true"


def settings(flag: str, items: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE, each."""
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            raise ConfigError(f"{flag} {item!r}: expected KEY=VALUE")
        found[key] = value
    return found


def figures(flag: str, items: Sequence[str]) -> dict[str, float]:
    """KEY=NUMBER, each."""
    found = {}
    for item in items:
        key, equals, value = item.partition("=")
        try:
            found[key] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ConfigError(f"{flag} {item!r}: expected KEY=NUMBER")
    return found
