"""May they: members of system:masters always, then nodes by their graph, then roles.

k8s.io/apiserver v1.36 pkg/authorization/union/union.go, pkg/endpoints/filters/{authorization,metrics}.go; texts of
refusals: pkg/endpoints/handlers/responsewriters/errors.go:44-85.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.apiserver.auth.authentication import MASTERS, UserInfo
from harness.apiserver.auth.nodeauthorizer import NodeAuthorizer
from harness.apiserver.auth.rbac import Rbac
from harness.apiserver.flowcontrol.classify import Info
from harness.apiserver.metrics.families import Metrics
from harness.wire import status
from harness.wire.status import Status, StatusError


class Decision(NamedTuple):
    """`reason` goes into the answer's message when not `allowed`; often empty. `missed`: not the last word, ask again
    (`Authorizer.ask_again`)."""

    allowed: bool
    reason: str = ""
    missed: bool = False


_ALLOWED = Decision(True)
_NO_OPINION = Decision(False)


class Authorizer:
    """The chain ``Node,RBAC`` behind the privileged group. A refusal is "no opinion" of all: nobody denies."""

    def __init__(self, metrics: Metrics, node: NodeAuthorizer, rbac: Rbac | None = None) -> None:
        self._node = node
        self._rbac = rbac or Rbac()
        self._allowed = metrics.authorization_attempts_total.labels("allowed")
        self._no_opinion = metrics.authorization_attempts_total.labels("no-opinion")
        decisions = metrics.apiserver_authorization_decisions_total
        self._by_node = decisions.labels("Node", "node", "allowed")
        self._by_rbac = decisions.labels("RBAC", "rbac", "allowed")

    def authorize(self, user: UserInfo, info: Info) -> Decision:
        """Decide one request and count it."""
        decision = self.decide(user, info)
        if not decision.missed:
            (self._allowed if decision.allowed else self._no_opinion).inc()
        return decision

    async def ask_again(self, user: UserInfo, info: Info) -> Decision:
        """The last word on a node that the graph did not know to be concerned. Raises StatusError 429."""
        try:
            denial = await self._node.ask_again(user, info)
        except StatusError:
            self._no_opinion.inc()
            raise
        if denial is None:
            self._by_node.inc()
            self._allowed.inc()
            return _ALLOWED
        self._no_opinion.inc()
        return Decision(False, denial.reason)

    def decide(self, user: UserInfo, info: Info) -> Decision:
        """The decision without the attempt's count: what impersonation's checks ask for."""
        if MASTERS in user.groups:
            return _ALLOWED
        denial = self._node.authorize(user, info)
        if denial is None:
            self._by_node.inc()
            return _ALLOWED
        if self._rbac.allows(user, info):
            self._by_rbac.inc()
            return _ALLOWED
        return Decision(False, denial.reason, denial.missed) if denial.reason else _NO_OPINION


def forbidden_status(user: UserInfo, info: Info, reason: str = "") -> Status:
    """The 403 that answers a request which was not allowed."""
    if not info.is_resource:
        return status.forbidden_path(user.name, info.verb, info.path)
    return status.unauthorized_action(
        user.name,
        info.verb,
        info.group,
        info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
        reason=reason,
    )


def forbidden_message(user: UserInfo, info: Info, reason: str = "") -> str:
    """Its message: ``secrets "s1" is forbidden: User "system:node:n1" cannot watch resource ...``."""
    return forbidden_status(user, info, reason).message
