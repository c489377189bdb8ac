"""Nobody gives away more than they have: roles and bindings may only grant what their writer may do.

kubernetes v1.36 pkg/registry/rbac/{role,rolebinding,clusterrole,clusterrolebinding}/policybased/storage.go,
escalation_check.go, and staging component-helpers auth/rbac/validation/rule.go (ConfirmNoEscalation). Upstream asks
around the registry; here it is asked with admission, which sees the same objects.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from harness.apiserver.admission.attributes import Attributes, Object, Operation
from harness.apiserver.apierrors import forbidden
from harness.apiserver.auth.authentication import MASTERS, UserInfo
from harness.apiserver.auth.bootstrappolicy import GROUP
from harness.apiserver.auth.rbac import Rbac, RoleNotFound
from harness.apiserver.auth.rules import RoleRef, Rule, quoted, rules_in, uncovered
from harness.wire import status
from harness.wire.gotext import quote
from harness.wire.paths import RequestInfo
from harness.wire.status import StatusError

MayDo = Callable[[UserInfo, RequestInfo], bool]
_SHAPED = ("rules", "roleRef", "subjects", "aggregationRule")


class EscalationCheck:
    """Call it with each write; returns for whatever is no role and no binding. `may` is the authorizer."""

    def __init__(self, rbac: Rbac, may: MayDo) -> None:
        self._rbac = rbac
        self._may = may

    def __call__(self, attributes: Attributes) -> None:
        """Raises StatusError 403, or 404 for a binding to a role that is not there."""
        if attributes.resource.group != GROUP or attributes.operation is Operation.DELETE:
            return
        user, new, old = attributes.user, attributes.new or {}, attributes.old
        if MASTERS in user.groups or (old is not None and _same(new, old)):
            return
        try:
            if "roleRef" in new:
                self._check_binding(attributes, user, new)
            else:
                self._check_role(attributes, user, new)
        except (msgspec.ValidationError, TypeError):
            return  # of a wrong shape: whoever encodes the object says so

    def _check_role(self, attributes: Attributes, user: UserInfo, role: Object) -> None:
        if self._may(user, _question("escalate", attributes, attributes.resource.resource)):
            return
        if role.get("aggregationRule"):
            everything = [Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",))]
            missing = uncovered(self._rbac.rules_for(user, attributes.namespace), everything)
            if missing:
                text = "must have cluster-admin privileges to use an aggregationRule: "
                raise forbidden(attributes.resource, attributes.shown_name, text + _refusal(user, missing))
        self._check_rules(attributes, user, rules_in(role.get("rules")))

    def _check_binding(self, attributes: Attributes, user: UserInfo, binding: Object) -> None:
        reference = msgspec.convert(binding["roleRef"], RoleRef)
        resource = {"Role": "roles", "ClusterRole": "clusterroles"}.get(reference.kind)
        if resource is None:
            return  # refused by validation
        if self._may(user, _question("bind", attributes, resource, reference.name)):
            return
        try:
            rules = self._rbac.role_rules(reference, attributes.namespace)
        except RoleNotFound as error:
            raise StatusError(status.not_found(GROUP, error.resource, error.name)) from None
        self._check_rules(attributes, user, rules)

    def _check_rules(self, attributes: Attributes, user: UserInfo, rules: tuple[Rule, ...]) -> None:
        missing = uncovered(self._rbac.rules_for(user, attributes.namespace), rules)
        if missing:
            raise forbidden(attributes.resource, attributes.shown_name, _refusal(user, missing))


def _question(verb: str, attributes: Attributes, resource: str, name: str = "") -> RequestInfo:
    """The access that stands in for holding the rules oneself."""
    name = name or attributes.name or attributes.shown_name
    return RequestInfo(
        "", verb, True, "apis", GROUP, "v1", attributes.namespace, resource, name=name, parts=(resource, name)
    )


def _refusal(user: UserInfo, missing: list[Rule]) -> str:
    listed = "\n".join(sorted({str(rule) for rule in missing}))
    who = f"user {quote(user.name)} (groups={quoted(user.groups)})"
    return f"{who} is attempting to grant RBAC permissions not currently held:\n{listed}"


def _same(new: Object, old: Object) -> bool:
    return all(new.get(key) == old.get(key) for key in _SHAPED)
