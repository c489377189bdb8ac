"""The options of a run that say which provisioners there are, and which claims they get."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from harness.fleet.provisioners.options import PRESETS, ProvisionerOptions
from harness.fleet.provisioners.scenario import ClaimsOptions
from harness.fleet.settings import parse_fields
from harness.load.provisionerplan import Provisioners
from harness.wire.errors import ConfigError

MOST_REPLICAS = 100


def add_provisioner_arguments(add: Callable[..., None]) -> None:
    """`add(flag, **keywords)` adds one, as argparse does."""
    add(
        "--provisioner",
        default="modern",
        metavar="|".join(PRESETS),
        help="modern: one Lease and informers; legacy: an election and watches for each claim",
    )
    add("--provisioner-replicas", type=int, default=1, metavar="N", help="processes of the provisioner")
    add(
        "--provisioner-options",
        action="append",
        default=[],
        metavar="OPTION=VALUE,...",
        help="what differs from that, as election=per-claim, watching=direct, workers=4, qps=20, create=uniform:1:3 "
        "(docs/provisioners.md); may be repeated",
    )
    add("--claims", type=int, default=100, metavar="N", help="claims that provisioners get")
    add(
        "--claims-rate",
        type=float,
        default=0.0,
        metavar="PER-SECOND",
        help="how fast they appear; 0: at once",
    )
    add("--claims-arrival", default="even", metavar="even|poisson", help="how they are spread at that rate")
    add("--claims-delete", action="store_true", help="delete the claims once all are bound")
    add(
        "--virtual",
        action="store_true",
        help="run provisioners and an emulated control plane in this process, over virtual time, without sockets",
    )


def provisioners_of(parsed: argparse.Namespace) -> Provisioners:
    """Raises ConfigError for a preset that there is not, and for figures that are none."""
    if parsed.provisioner not in PRESETS:
        raise ConfigError(f"--provisioner {parsed.provisioner}: allowed are {', '.join(PRESETS)}")
    if not 1 <= parsed.provisioner_replicas <= MOST_REPLICAS:
        raise ConfigError(
            f"--provisioner-replicas {parsed.provisioner_replicas}: expected 1 to {MOST_REPLICAS}"
        )
    if parsed.claims_arrival not in ("even", "poisson"):
        raise ConfigError(f"--claims-arrival {parsed.claims_arrival}: allowed are even, poisson")
    given = parse_fields(
        ProvisionerOptions, parsed.provisioner_options, "--provisioner-options", "a provisioner"
    )
    options = {**PRESETS[parsed.provisioner], **given}
    driver = ProvisionerOptions(**options).driver  # what does not go together is said here, not by a worker
    claims = {
        "claims": parsed.claims,
        "rate": parsed.claims_rate,
        "arrival": parsed.claims_arrival,
        "delete": parsed.claims_delete,
        "driver": driver,
    }
    ClaimsOptions(**claims)
    return Provisioners(
        parsed.provisioner, parsed.provisioner_replicas, options, claims, virtual=parsed.virtual
    )
