"""The options of a run that say which controllers it brings, and how fast these may be."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from harness.fleet.controllers.registry import CONTROLLERS
from harness.load.plan import Controllers
from harness.wire.errors import ConfigError

ALONE = ("service-account-controller", "root-ca-cert-publisher", "namespace-controller")
"""Controllers that are machines of their own."""
NAMES = (*ALONE, *CONTROLLERS)
_DEFAULT = Controllers()


def add_controller_arguments(add: Callable[..., None]) -> None:
    """`add(flag, **keywords)` adds one, as argparse does."""
    add(
        "--controllers",
        default="all",
        metavar="all|none|NAME,...",
        help="what runs where the target has no kube-controller-manager, by service account, for example "
        "deployment-controller,replicaset-controller",
    )
    add(
        "--controller-limits",
        default=f"{_DEFAULT.qps:g}/{_DEFAULT.burst}",
        metavar="QPS/BURST",
        help="client limit of each controller (kube-api-qps, kube-api-burst)",
    )
    add(
        "--scheduler-limits",
        default="",
        metavar="QPS/BURST",
        help="client limit of the scheduler where the target has none; default 50/100, as kube-scheduler's",
    )


def controllers_of(parsed: argparse.Namespace) -> Controllers:
    """Raises ConfigError for a name that no controller has, and for limits that are none."""
    qps, burst = _limits("--controller-limits", parsed.controller_limits)
    chosen = parsed.controllers
    names = NAMES if chosen == "all" else () if chosen == "none" else tuple(filter(None, chosen.split(",")))
    for name in names:
        if name not in NAMES:
            raise ConfigError(
                f"--controllers {name}: no controller is called so; there are {', '.join(NAMES)}"
            )
    return Controllers(names, qps, burst)


def scheduler_of(parsed: argparse.Namespace) -> dict[str, Any]:
    """Fields of SchedulerOptions. Raises ConfigError."""
    if not parsed.scheduler_limits:
        return {}
    qps, burst = _limits("--scheduler-limits", parsed.scheduler_limits)
    return {"qps": qps, "burst": burst, "event_qps": qps, "event_burst": burst}


def _limits(flag: str, text: str) -> tuple[float, int]:
    qps, slash, burst = text.partition("/")
    try:
        limits = float(qps), int(burst)
    except ValueError:
        limits = 0.0, 0
    if not slash or not limits[0] > 0 or limits[1] < 1:
        raise ConfigError(f"{flag} {text}: expected QPS/BURST, as in 20/30")
    return limits
