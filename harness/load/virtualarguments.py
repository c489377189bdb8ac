"""Which options a run over virtual time has a use for; one that it would silently do without is refused by its name."""

from __future__ import annotations

import argparse
from typing import Any

from harness.load.arguments import add_arguments
from harness.wire.errors import ConfigError

_USED = {
    *("virtual", "record", "seed", "arm", "sample", "scrape_interval", "controllers", "controller_limits"),
    *("provisioner", "provisioner_replicas", "provisioner_options"),
    *("claims", "claims_rate", "claims_arrival", "claims_delete"),
    *("pool_members", "pool_cores", "pool_max_requests_inflight", "pool_priority_and_fairness"),
    *("pool_event_ttl", "pool_feature_gates", "pool_protobuf_answers", "pool_node_authorizer"),
    *("pool_cost", "pool_etcd"),
}
"""Of our own options, as a parser names their values."""
_HARMLESS = {"pool_backend": "emulated", "scenario": "none", "prometheus": "none"}
"""What says no more than that there is nothing which there is not."""

_THERE = "an existing control plane cannot be driven over virtual time"
_PROCESSES = "it needs processes or sockets, and there are none"
_WHY = {
    **dict.fromkeys(
        ("--kubeconfig", "--endpoints", "--context", "--no-discover-members", "--i-know"), _THERE
    ),
    **dict.fromkeys(("--fault", "--link", "--balancer", "--etcd-servers", "--data-dir"), _PROCESSES),
    "--backend": "members are emulated ones of this process",
    "--goaway-chance": "there are no connections",
    "--http": "there are no connections",
    "--pace": "virtual time waits for nothing",
}
_OTHERWISE = "it means nothing to provisioners over virtual time"


def check_virtual(parsed: argparse.Namespace) -> None:
    """Raises ConfigError for the first option that is given beside ``--virtual`` and that it has no use for."""
    if not parsed.virtual:
        return
    if parsed.host:
        raise ConfigError(f"--virtual: --host: {_THERE}")
    if parsed.master or parsed.processes:
        raise ConfigError("--virtual: --master, --processes: one process has everything; run without workers")
    flags = _Flags()
    add_arguments(flags)  # type: ignore[arg-type]  # what it asks of a parser is there
    for flag, name, initial in flags.added:
        given = getattr(parsed, name)
        if name not in _USED and given not in (initial, _HARMLESS.get(name, initial)):
            raise ConfigError(f"--virtual: {flag}: {_WHY.get(flag, _OTHERWISE)}; run without one of the two")


class _Flags:
    """Stands in for a parser and its group: what is added is kept, as (flag, name of its value, default)."""

    def __init__(self) -> None:
        self.added: list[tuple[str, str, Any]] = []

    def add_argument_group(self, *_: Any, **__: Any) -> _Flags:
        return self

    def add_argument(
        self, flag: str, *, dest: str = "", default: Any = None, action: str = "", **_: Any
    ) -> None:
        initial = False if action == "store_true" else default
        self.added.append((flag, dest or flag.removeprefix("--").replace("-", "_"), initial))
