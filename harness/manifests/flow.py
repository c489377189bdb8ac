"""Which of the harness's own requests have a priority level of their own in the cluster that it loads.

What the run asks on its own account (are the nodes there, what do the members' metrics say, may we) must not queue
behind the load that it makes, or a full apiserver could not be seen to be full. Kubelets are impersonated or have
certificates, so their requests are their nodes' and go where those of nodes go; the scenario's operations are the load
too. Neither has a rule here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.load.cluster.permissions import Rule

SHARES = 5
"""As many as catch-all has: about 2 % of a server's seats, 12 of 600."""
PRECEDENCE = 8000
"""Before service-accounts (9000), after everything of Kubernetes' own (as/pkg/apis/flowcontrol/bootstrap)."""
_NO_REQUESTS = ("impersonate", "approve")
"""Verbs that are rights, which no request carries."""


class FlowRule(msgspec.Struct, frozen=True):
    """Of a FlowSchema: `group` and `resources`, or `paths`."""

    verbs: tuple[str, ...]
    group: str = ""
    resources: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


REVIEWS = FlowRule(("create",), "authorization.k8s.io", ("selfsubjectaccessreviews",))
"""The questions before a run; a right that everybody has, so no row of the tables."""


def flow_rules(rules: Sequence[Rule]) -> list[FlowRule]:
    """Of the rights that a run needs whatever its scenario."""
    resources: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    paths: dict[tuple[str, ...], list[str]] = {}
    for rule in (each for given in rules for each in (given, *given.instead)):
        verbs = tuple(verb for verb in rule.verbs if verb not in _NO_REQUESTS)
        if not verbs:
            continue
        known = paths.setdefault(verbs, []) if rule.paths else resources.setdefault((rule.group, verbs), [])
        known += [item for item in rule.paths or (rule.resource,) if item not in known]
    return [
        *(FlowRule(verbs, group, tuple(found)) for (group, verbs), found in resources.items()),
        REVIEWS,
        *(FlowRule(verbs, paths=tuple(found)) for verbs, found in paths.items()),
    ]
