"""Questions about access and identity: SubjectAccessReview and its kin, TokenReview, SelfSubjectReview.

Answered when created and never stored (kk/pkg/registry/authorization, kk/pkg/registry/authentication;
kk/pkg/apis/authorization/validation).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from harness.apiserver.apierrors import FieldError, bad_request, invalid, invalid_value
from harness.apiserver.auth.authentication import Authenticator, UserInfo
from harness.apiserver.auth.authorization import Authorizer
from harness.apiserver.auth.rbac import Rbac
from harness.apiserver.auth.rules import Rule
from harness.apiserver.handlers.call import Answer, Call, Object
from harness.apiserver.handlers.options import write_options
from harness.apiserver.handlers.shaping import finished
from harness.apiserver.handlers.writing import read_typed
from harness.wire.paths import RequestInfo
from harness.wire.rfc3339 import seconds

_encode = msgspec.json.Encoder().encode
_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
Handler = Callable[[Call], Awaitable[Answer]]


class Reviews:
    """`handlers` are its parts by (group, resource)."""

    def __init__(self, authorizer: Authorizer, authenticator: Authenticator, rbac: Rbac) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator
        self._rbac = rbac
        self.handlers: dict[tuple[str, str], Handler] = {
            (_AUTHORIZATION, "subjectaccessreviews"): self.subject_access,
            (_AUTHORIZATION, "localsubjectaccessreviews"): self.local_subject_access,
            (_AUTHORIZATION, "selfsubjectaccessreviews"): self.self_subject_access,
            (_AUTHORIZATION, "selfsubjectrulesreviews"): self.self_subject_rules,
            (_AUTHENTICATION, "selfsubjectreviews"): self.self_subject,
            (_AUTHENTICATION, "tokenreviews"): self.token,
        }

    # ---- access
    async def subject_access(self, call: Call) -> Answer:
        asked = _read(call)
        review, spec = asked.review, asked.spec
        errors = _attribute_errors(spec) + _subject_errors(spec)
        if _named(review):
            errors.append(invalid_value("metadata", review["metadata"], "must be empty"))
        return self._decided(call, asked, _subject(spec), errors)

    async def local_subject_access(self, call: Call) -> Answer:
        asked = _read(call)
        review, spec = asked.review, asked.spec
        errors = _attribute_errors(spec) + _subject_errors(spec)
        namespace = call.info.namespace
        given = review["metadata"].get("namespace")
        if given and given != namespace:
            raise bad_request(
                f"spec.resourceAttributes.namespace must match namespace: {given} (does not match {namespace})"
            )
        review["metadata"]["namespace"] = namespace
        if _named(review, "namespace"):
            errors.append(invalid_value("metadata", review["metadata"], "must be empty except for namespace"))
        attributes = spec.get("resourceAttributes")
        if attributes is not None and attributes.get("namespace", "") != namespace:
            field, detail = "spec.resourceAttributes.namespace", "must match metadata.namespace"
            errors.append(invalid_value(field, attributes.get("namespace", ""), detail))
        if spec.get("nonResourceAttributes") is not None:
            field, detail = "spec.nonResourceAttributes", "disallowed on this kind of request"
            errors.append(invalid_value(field, spec["nonResourceAttributes"], detail))
        return self._decided(call, asked, _subject(spec), errors)

    async def self_subject_access(self, call: Call) -> Answer:
        asked = _read(call)
        review, spec = asked.review, asked.spec
        errors = _attribute_errors(spec)
        if _named(review):
            errors.append(invalid_value("metadata", review["metadata"], "must be empty"))
        return self._decided(call, asked, call.user, errors)

    def _decided(self, call: Call, asked: _Asked, user: UserInfo, errors: Sequence[FieldError]) -> Answer:
        if errors:
            raise invalid(_AUTHORIZATION, call.resource.kind, "", errors)
        decision = self._authorizer.decide(user, _question(asked.spec))
        status: Object = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return _answer(call, asked, status)

    async def self_subject_rules(self, call: Call) -> Answer:
        """Only what RBAC knows: the node authorizer cannot list what it allows."""
        asked = _read(call)
        namespace = asked.spec.get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self._rbac.rules_for(call.user, namespace)
        status: Object = {
            "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
            "nonResourceRules": [
                {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)} for rule in rules if rule.urls
            ],
            "incomplete": call.user.node_name is not None,
        }
        if status["incomplete"]:
            status["evaluationError"] = "node authorizer does not support user rule resolution"
        return _answer(call, asked, status)

    # ---- identity
    async def self_subject(self, call: Call) -> Answer:
        asked = _read(call)
        review = asked.review
        review["metadata"]["creationTimestamp"] = seconds(call.wall())
        review.pop("spec", None)
        return _answer(call, asked, {"userInfo": _user_info(call.user)})

    async def token(self, call: Call) -> Answer:
        asked = _read(call)
        spec = asked.spec
        token = spec.get("token", "")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        found = self._authenticator.review(token, spec.get("audiences") or ())
        status: Object = {}
        if found is None:
            status["user"] = {}
            status["error"] = "[invalid bearer token, token lookup failed]"
        else:
            user, audiences = found
            status["authenticated"] = True
            status["user"] = _user_info(user)
            status["audiences"] = list(audiences)
        return _answer(call, asked, status)


class _Asked(NamedTuple):
    """A review as it was sent, its spec, and warnings about unknown fields."""

    review: Object
    spec: Object
    warnings: Sequence[str]


def _read(call: Call) -> _Asked:
    options = write_options(call.info.query, "CreateOptions")
    review, warnings = read_typed(call, options.validation)
    return _Asked(review, review.setdefault("spec", {}), warnings)


def _answer(call: Call, asked: _Asked, status: Object) -> Answer:
    review = asked.review
    meta = review["metadata"]
    meta.setdefault("creationTimestamp", None)
    answer: Object = {
        "kind": call.resource.kind,
        "apiVersion": call.resource.api_version,
        "metadata": {key: meta[key] for key in ("name", "namespace", "creationTimestamp") if key in meta},
    }
    if "spec" in review:
        answer["spec"] = review["spec"]
    return finished(call, _encode({**answer, "status": status}) + b"\n", 201, asked.warnings)


def _named(review: Object, *but: str) -> bool:
    """Whether anything stands in metadata."""
    meta: dict[str, Any] = review["metadata"]
    return any(value for key, value in meta.items() if key not in but and key != "managedFields")


def _attribute_errors(spec: Object) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [invalid_value("spec.nonResourceAttributes", path, detail)]
    if resource is None and path is None:
        return [invalid_value("spec.resourceAttributes", None, _ONE_OF)]
    return []


def _subject_errors(spec: Object) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid_value("spec.user", "", "at least one of user or group must be specified")]


def _subject(spec: Object) -> UserInfo:
    extra = tuple((key, tuple(values)) for key, values in (spec.get("extra") or {}).items())
    return UserInfo(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _question(spec: Object) -> RequestInfo:
    """The request that is asked about."""
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        path = spec["nonResourceAttributes"]
        return RequestInfo(path.get("path", ""), path.get("verb", ""))
    resource, name = attributes.get("resource", ""), attributes.get("name", "")
    selector = (attributes.get("fieldSelector") or {}).get("rawSelector", "")
    return RequestInfo(
        "",
        attributes.get("verb", ""),
        True,
        group=attributes.get("group", ""),
        version=attributes.get("version") or "*",
        namespace=attributes.get("namespace", ""),
        resource=resource,
        subresource=attributes.get("subresource", ""),
        name=name,
        query={"fieldSelector": selector} if selector else {},
    )


def _resource_rule(rule: Rule) -> Object:
    shown: Object = {
        "verbs": list(rule.verbs),
        "apiGroups": list(rule.groups),
        "resources": list(rule.resources),
    }
    return {**shown, "resourceNames": list(rule.names)} if rule.names else shown


def _user_info(user: UserInfo) -> Object:
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in sorted(user.extra)}
    return info
