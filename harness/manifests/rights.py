"""What a run may, by its options and by the users that its locustfile has: what the run itself finds out when it
begins (`harness.load.cluster.prepare.rights`), except for what only the target knows.

The locustfile is read, not imported: a class of ours that it names nowhere is none of its users'.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from harness.load.arguments import RunOptions
from harness.load.cluster.permissions import Rule, needed
from harness.manifests.files import File, RunFiles
from harness.wire.errors import ConfigError


class Users(NamedTuple):
    """What a locustfile's users are of ours."""

    kubelets: bool
    scenario: bool
    provisioners: bool
    informers: bool


def rights_of(options: RunOptions, files: RunFiles) -> list[Rule]:
    """Of a target that has a scheduler and controllers. Raises ConfigError for a locustfile that is no Python."""
    users = users_of(files.locustfile)
    return needed(
        options.cluster.identity,
        kube_proxy=bool(users.kubelets and options.fleet.get("kube_proxy")),
        provisioners=users.provisioners,
        informers=options.informers if users.informers else None,
        config=files.config if users.scenario else None,
    )


def users_of(locustfile: File) -> Users:
    """One that names none of ours has them from elsewhere, and is taken for a fleet's. Raises ConfigError."""
    try:
        named = set(_names(ast.parse(locustfile.text)))
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"--locustfile {locustfile.path}: is no Python: {error}") from None
    provisioners = bool(named & {"ProvisionerUser", "ClaimsUser"})
    informers = "InformerUser" in named
    neither = not (provisioners or informers)
    return Users(
        kubelets=neither or "KubeletUser" in named,
        scenario=neither or "ClusterLoaderUser" in named,
        provisioners=provisioners,
        informers=informers,
    )


def _names(tree: ast.AST) -> Iterator[str]:
    """What it imports, and what it takes of modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield node.attr
