"""A run with provisioners, as its locustfile makes it."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.load.arguments import RunOptions
from harness.load.informerrun import NODES_ALONE
from harness.load.informerusers import InformerUser
from harness.load.provisionerusers import ClaimsUser, ProvisionerUser
from harness.load.users import ClusterLoaderUser, ControllersUser, KubeletUser
from harness.wire.errors import ConfigError


def fit_provisioners(environment: Any, options: RunOptions) -> RunOptions:
    """Options of a run by the users that its locustfile has. Raises ConfigError for what these cannot do."""
    classes = environment.user_classes
    _keep_one(classes, ControllersUser)

    def has(user: type[Any]) -> bool:
        return any(issubclass(each, user) for each in classes)

    virtual = options.provisioners is not None and options.provisioners.virtual
    if not (has(ProvisionerUser) or has(ClaimsUser)):
        if virtual:
            raise ConfigError(
                "--virtual: no user of this locustfile is a provisioner; locustfiles/provisioners.py has them"
            )
        return msgspec.structs.replace(options, provisioners=None)
    if has(KubeletUser):
        if virtual:
            raise ConfigError("--virtual runs provisioners alone: this locustfile has kubelets too")
        return options
    if virtual and has(InformerUser):
        raise ConfigError("--virtual runs provisioners alone: this locustfile has informers too")
    pool = options.pool
    if environment.parsed_options.num_users is None:
        pool = msgspec.structs.replace(pool, nodes=NODES_ALONE)
    scenario = options.scenario if has(ClusterLoaderUser) else ""
    return msgspec.structs.replace(options, kubelets=0, pool=pool, scenario=scenario)


def _keep_one(classes: list[type[Any]], kind: type[Any]) -> None:
    """Two locustfiles in one run bring their controllers along each; those of the first are enough."""
    for extra in [each for each in classes if issubclass(each, kind)][1:]:
        classes.remove(extra)
