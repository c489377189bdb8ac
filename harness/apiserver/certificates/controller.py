"""What a controller manager does with signing requests: approve kubelets' own, sign what is approved
(kk/pkg/controller/certificates/{approver/sarapprove.go,signer/signer.go}).

Run by the member that took the write which made it necessary, right behind it, so that members of a pool do not race
each other. Beside a real controller manager it is harmless: whoever comes second finds nothing left to do.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import msgspec

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.certificates.requests import (
    CLIENT,
    KUBELET_CLIENT,
    BadRequest,
    Request,
    client_fault,
    kubelet_client_fault,
    read_request,
)
from harness.apiserver.certificates.signer import Signer
from harness.apiserver.clock import spawn
from harness.apiserver.handlers.call import Call, Object
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.store.core import StoreError
from harness.apiserver.strategies.certificates import conditions
from harness.apiserver.systemobjects import loopback_user
from harness.wire.paths import RequestInfo
from harness.wire.status import StatusError

GROUP = "certificates.k8s.io"
RESOURCE = "certificatesigningrequests"
MayDo = Callable[[UserInfo, RequestInfo], bool]


class CertificateController:
    """`may` is the authorizer, by which kubelets are told from others."""

    def __init__(self, registry: Registry, signer: Signer, may: MayDo) -> None:
        self._registry = registry
        self._signer = signer
        self._may = may

    def written(self, call: Call, body: bytes) -> None:
        """A request was created or approved: `body` is the answer, which names it."""
        if call.info.subresource == "status":
            return
        name = call.info.name or _name_in(body)
        if name:
            spawn(self.sync(name))

    async def sync(self, name: str) -> None:
        """Approve and sign the request as far as it is due. One that has gone, or cannot be written, is left alone."""
        try:
            for subresource, change in (("approval", self._approved), ("status", self._signed)):
                caller = Caller(loopback_user(), name=name, subresource=subresource)
                await self._registry.update(caller, change)
        except (StatusError, StoreError):
            return

    def _approved(self, old: Object, revision: int) -> Object:
        if _signed_already(old) or _has(old, "Approved") or _has(old, "Denied"):
            return old
        spec = old["spec"]
        request = _request(spec)
        if request is None or spec.get("signerName") != KUBELET_CLIENT:
            return old
        if kubelet_client_fault(request, spec.get("usages") or ()) is not None:
            return old
        user = _requester(spec)
        own = user.name == request.common_name
        for subresource, what in (("selfnodeclient", "self kubelet"), ("nodeclient", "kubelet")):
            if (own or subresource == "nodeclient") and self._may(user, _question(subresource)):
                message = f"Auto approving {what} client certificate after SubjectAccessReview."
                return _with_condition(old, "Approved", "AutoApproved", message)
        return old

    def _signed(self, old: Object, revision: int) -> Object:
        if _signed_already(old) or not _has(old, "Approved") or _has(old, "Denied") or _has(old, "Failed"):
            return old
        spec = old["spec"]
        request, usages, signer = _request(spec), spec.get("usages") or (), spec.get("signerName")
        if request is None or signer not in (CLIENT, KUBELET_CLIENT):
            return old
        fault = kubelet_client_fault(request, usages) if signer == KUBELET_CLIENT else client_fault(usages)
        if fault is not None:
            return _with_condition(old, "Failed", "SignerValidationFailure", fault)
        pem = self._signer.sign(request, usages, spec.get("expirationSeconds"))
        return {**old, "status": {**(old.get("status") or {}), "certificate": base64.b64encode(pem).decode()}}


class _Metadata(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata


_decode_name = msgspec.json.Decoder(_Named).decode


def _name_in(body: bytes) -> str:
    """The name that the server has generated, maybe; "" of an answer in another shape than the object's own."""
    try:
        return _decode_name(body).metadata.name
    except msgspec.MsgspecError:
        return ""


def _has(request: Object, kind: str) -> bool:
    return any(item.get("type") == kind and item.get("status") == "True" for item in conditions(request))


def _signed_already(request: Object) -> bool:
    return bool((request.get("status") or {}).get("certificate"))


def _request(spec: Object) -> Request | None:
    try:
        return read_request(spec.get("request"))
    except BadRequest:
        return None


def _requester(spec: Object) -> UserInfo:
    extra = tuple((key, tuple(values)) for key, values in (spec.get("extra") or {}).items())
    return UserInfo(spec.get("username", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _question(subresource: str) -> RequestInfo:
    return RequestInfo("", "create", True, "apis", GROUP, "*", "", RESOURCE, subresource)


def _with_condition(old: Object, kind: str, reason: str, message: str) -> Object:
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    status = old.get("status") or {}
    return {**old, "status": {**status, "conditions": [*conditions(old), condition]}}
