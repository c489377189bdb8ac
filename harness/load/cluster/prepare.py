"""Everything that is settled with an existing cluster before load is put on it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import msgspec

from harness.clusterloader import Config
from harness.load.arguments import RunOptions
from harness.load.cluster.errands import Errands
from harness.load.cluster.members import discover
from harness.load.cluster.permissions import Rule, needed
from harness.load.cluster.preflight import check_nodes, check_rights
from harness.load.controllerarguments import NAMES
from harness.load.identity.tokens import read_tokens
from harness.load.plan import Target
from harness.load.probe import probe, with_components
from harness.load.target import Existing, existing_target
from harness.wire.errors import ConfigError

logger = logging.getLogger("swarmlet")


def prepare(options: RunOptions, config: Config | None, *, informers: bool = False) -> Existing:
    """Find the cluster, see that it is well, that it is meant, and that we may; find its members. `informers`: the run
    has some. Raises ConfigError, one line for the first thing that is not so."""
    cluster = options.cluster
    existing = existing_target(options.host, options.kubeconfig, options.endpoints, cluster.context)
    target = existing.target
    _check_impersonation(target, cluster.identity)
    probe(target)
    with Errands(target) as errands:
        check_nodes(errands, cluster.i_know)
        target = with_components(errands, time.time())
        check_rights(errands, rights(options, target, config, informers=informers))
        if existing.may_have_members and cluster.discover_members:
            found = discover(errands)
            logger.info("%s", found.text)
            members, name = found.target.members, found.target.server_name
            target = msgspec.structs.replace(target, members=members, server_name=name)
            existing = existing._replace(members_found=found.text)
    return existing._replace(target=target)


def rights(
    options: RunOptions, target: Target, config: Config | None, *, informers: bool = False
) -> list[Rule]:
    """What the run needs of this target."""
    cluster, chosen = options.cluster, options.controllers.names
    return needed(
        cluster.identity,
        own_authority=bool(cluster.ca_key),
        tokens=read_tokens(Path(cluster.tokens)) if cluster.tokens else (),
        kube_proxy=bool(options.kubelets and options.fleet.get("kube_proxy")),
        scheduler=not target.has_scheduler,
        controllers=() if target.has_controllers else NAMES if chosen is None else chosen,
        provisioners=options.provisioners is not None,
        informers=options.informers if informers else None,
        config=config,
    )


def _check_impersonation(target: Target, identity: str) -> None:
    if target.headers and identity == "impersonate":
        raise ConfigError(
            f"{target.context}: its user impersonates somebody, who cannot impersonate nodes as well; "
            "use a user without `as`, or another --identity"
        )
