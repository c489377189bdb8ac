"""Everything that is settled with an existing cluster before load is put on it."""

from __future__ import annotations

import logging
import time

import msgspec

from harness.clusterloader import Config
from harness.load.arguments import RunOptions
from harness.load.cluster.errands import Errands
from harness.load.cluster.members import discover
from harness.load.cluster.permissions import needed
from harness.load.cluster.preflight import check_nodes, check_rights
from harness.load.plan import Target
from harness.load.probe import probe, with_components
from harness.load.target import Existing, existing_target
from harness.wire.errors import ConfigError

logger = logging.getLogger("swarmlet")


def prepare(options: RunOptions, config: Config | None) -> Existing:
    """Find the cluster, see that it is well, that it is meant, and that we may; find its members. Raises ConfigError,
    one line for the first thing that is not so."""
    cluster = options.cluster
    existing = existing_target(options.host, options.kubeconfig, options.endpoints, cluster.context)
    target = existing.target
    _check_impersonation(target, cluster.identity)
    probe(target)
    with Errands(target) as errands:
        check_nodes(errands, cluster.i_know)
        target = with_components(errands, time.time())
        rules = needed(
            cluster.identity,
            own_authority=bool(cluster.ca_key),
            controllers=not (target.has_scheduler and target.has_controllers),
            config=config,
        )
        check_rights(errands, rules)
        if existing.may_have_members and cluster.discover_members:
            found = discover(errands)
            logger.info("%s", found.text)
            members, name = found.target.members, found.target.server_name
            target = msgspec.structs.replace(target, members=members, server_name=name)
            existing = existing._replace(members_found=found.text)
    return existing._replace(target=target)


def _check_impersonation(target: Target, identity: str) -> None:
    if target.headers and identity == "impersonate":
        raise ConfigError(
            f"{target.context}: its user impersonates somebody, who cannot impersonate nodes as well; "
            "use a user without `as`, or another --identity"
        )
