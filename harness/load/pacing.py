"""How much slower than real time a run's model goes, and what cannot be slowed down with it."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from harness.load.prometheus.arguments import AUTO, NONE, PrometheusOptions
from harness.pool.emulated import PoolOptions
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace, parse_factor


def add_pace_argument(add: Callable[..., None]) -> None:
    """`add(flag, **keywords)` adds one, as argparse does."""
    add(
        "--pace",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="real seconds that a second of the model takes, for a fleet that this machine cannot carry in real time; "
        "-r, -t, faults and the record are in the model's (docs/model.md)",
    )


def pace_of(factor: float, pool: PoolOptions, prometheus: PrometheusOptions) -> Pace:
    """A run's pace from now on. Raises ConfigError where something in the run has a clock that is not ours."""
    parse_factor(factor, "--pace")
    if factor == 1.0:
        return REAL
    cannot = (
        (pool.backend == "existing", "the clock of a cluster that is there goes on"),
        (pool.backend == "binaries", "real kube-apiservers (--backend binaries) live in real time"),
        (bool(pool.store.etcd_servers), "a real etcd (--etcd-servers) lives in real time"),
        (bool(pool.balancer.kind), "the time-outs and checks of a balancer (--balancer) are real"),
        (
            bool(prometheus.url) or prometheus.binary not in (AUTO, NONE),
            "a Prometheus stamps in real time what it scrapes; its rates would be those of the machine",
        ),
    )
    for cannot_be, why in cannot:
        if cannot_be:
            raise ConfigError(f"--pace {factor:g}: {why}")
    return Pace(factor, time.time())


def without_prometheus(options: PrometheusOptions, pace: Pace) -> PrometheusOptions:
    """None is started by itself where it would measure in another time than the run's."""
    return options if pace.real else msgspec.structs.replace(options, binary=NONE)
