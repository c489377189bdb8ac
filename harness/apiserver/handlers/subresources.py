"""Subresources that take a body of another kind: binding, finalize, token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from harness.apiserver.admission import Attributes, Operation
from harness.apiserver.admission.chain import Admission
from harness.apiserver.apierrors import bad_request, conflict, invalid, invalid_value, not_found, required
from harness.apiserver.auth.accounttokens import AccountTokens, Ref
from harness.apiserver.clock import Promise
from harness.apiserver.handlers.call import Answer, Call, Object
from harness.apiserver.handlers.options import write_options
from harness.apiserver.handlers.shaping import finished, object_answer
from harness.apiserver.handlers.writing import read_object
from harness.apiserver.resources import Resource
from harness.apiserver.store.core import GetResult
from harness.apiserver.strategies.pod import bind, binding_errors
from harness.wire.rfc3339 import seconds
from harness.wire.status import success

MIN_TOKEN_S = 600
MAX_TOKEN_S = 1 << 32
DEFAULT_TOKEN_S = 3600
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_CREATED = success(code=201).body()


async def binding(call: Call, admission: Admission) -> Answer:
    """POST pods/binding, or bindings (kk/pkg/registry/core/pod/storage/storage.go:190)."""
    options = write_options(call.info.query, "CreateOptions")
    body = read_object(call, "Binding", "v1")
    caller = call.caller(options.dry_run)
    name = body["metadata"].setdefault("name", caller.name)
    if not caller.name:
        caller = msgspec.structs.replace(caller, name=name, subresource="binding")
    if name != caller.name:
        raise bad_request(f"name in URL ({caller.name}) does not match name in Binding object ({name})")
    await admission.create(
        Attributes(Operation.CREATE, call.resource, "binding", caller.namespace, name, caller.user, body)
    )
    errors = binding_errors(body)
    if errors:
        raise invalid("", "Binding", name, errors)
    now = call.registry.context().now
    uid = body["metadata"].get("uid")

    def assign(pod: Object, revision: int) -> Object:
        if uid and uid != pod["metadata"]["uid"]:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod['metadata']['uid']}"
            raise conflict("", "pods/binding", name, text)
        refused = bind(pod, body, now)
        if refused is not None:
            raise conflict("", "pods/binding", name, refused)
        return pod

    await call.registry.update(caller, assign, "binding")
    return finished(call, _CREATED, 201)


async def finalize(call: Call) -> Answer:
    """PUT namespaces/finalize: replaces spec.finalizers; the last one gone, so is the namespace."""
    options = write_options(call.info.query, "UpdateOptions")
    new = read_object(call)
    written = await call.registry.replace(call.caller(options.dry_run), new)
    return object_answer(call, written.body)


class Tokens:
    """POST serviceaccounts/token (kk/pkg/registry/core/serviceaccount/storage/token.go).

    `read(key)` asks the store for the account and for the object that the token is bound to; `bindable` are the
    resources of these, by kind.
    """

    def __init__(
        self,
        issuer: AccountTokens,
        read: Callable[[str], Promise[GetResult]],
        bindable: Mapping[str, Resource],
        admission: Admission,
    ) -> None:
        self._issuer = issuer
        self._read = read
        self._bindable = bindable
        self._admission = admission

    async def create(self, call: Call) -> Answer:
        request = read_object(call, "TokenRequest", "authentication.k8s.io/v1")
        caller, spec = call.caller(), request.get("spec") or {}
        attributes = Attributes(
            Operation.CREATE, call.resource, "token", caller.namespace, caller.name, caller.user, request
        )
        await self._admission.create(attributes)
        account = await self._object(call.resource, caller.namespace, caller.name)
        expires_s = spec.get("expirationSeconds") or DEFAULT_TOKEN_S
        _check_expiration(expires_s)
        audiences = spec.get("audiences") or [self._issuer.issuer]
        bound = await self._bound(caller.namespace, caller.name, spec.get("boundObjectRef"))
        reference = Ref(caller.name, account["metadata"]["uid"])
        issued = self._issuer.issue(caller.namespace, reference, expires_s, audiences, **bound)
        answer = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": caller.name,
                "namespace": caller.namespace,
                "creationTimestamp": seconds(call.wall()),
            },
            "spec": {**spec, "audiences": audiences, "expirationSeconds": expires_s},
            "status": {"token": issued.token, "expirationTimestamp": seconds(issued.expires_s)},
        }
        return finished(call, _encode(answer) + b"\n", 201)

    async def _object(self, resource: Resource, namespace: str, name: str) -> Object:
        found = await self._read(resource.key(namespace, name))
        if found.kv is None:
            raise not_found(resource, name)
        decoded: Object = _decode(found.kv.value)
        return decoded

    async def _bound(self, namespace: str, account: str, reference: Any) -> dict[str, Ref]:
        """The object that a token is bound to, and its node, as `issue` takes them. Raises StatusError."""
        if not reference:
            return {}
        kind, name = reference.get("kind", ""), reference.get("name", "")
        resource = self._bindable.get(kind)
        if resource is None:
            raise bad_request(f'cannot bind token for serviceaccount "{account}" to type "{kind}"')
        if not name:
            raise invalid("authentication.k8s.io", "TokenRequest", "", [required("spec.boundObjectRef.name")])
        there = await self._object(resource, namespace, name)
        uid = there["metadata"]["uid"]
        if reference.get("uid") and reference["uid"] != uid:
            text = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise conflict(resource.group, resource.resource, name, text)
        bound = {kind.lower(): Ref(name, uid)}
        if kind == "Pod":
            if there["spec"].get("serviceAccountName", "") != account:
                text = f'cannot bind token for serviceaccount "{account}" to pod running with different '
                raise bad_request(text + "serviceaccount name.")
            if there["spec"].get("nodeName"):
                bound["node"] = Ref(there["spec"]["nodeName"])
        return bound


def _check_expiration(expires_s: int) -> None:
    if expires_s < MIN_TOKEN_S:
        text = "may not specify a duration less than 10 minutes"
    elif expires_s > MAX_TOKEN_S:
        text = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    error = invalid_value("spec.expirationSeconds", expires_s, text)
    raise invalid("authentication.k8s.io", "TokenRequest", "", [error])
