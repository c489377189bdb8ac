"""Which audiences a node may ask tokens for: those that the pod's own volumes need, or that it was granted
(kubernetes v1.36 plugin/pkg/admission/noderestriction/admission.go, validateNodeServiceAccountAudience)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from harness.apiserver.auth.authentication import UserInfo
from harness.wire.gotext import quote
from harness.wire.paths import RequestInfo

Lookup = Callable[[str, str, str], bytes | None]
"""(group resource, namespace, name) to an object's JSON as the informers have it."""

MayDo = Callable[[UserInfo, RequestInfo], bool]
_VERB = "request-serviceaccounts-token-audience"


class _Named(msgspec.Struct, rename="camel"):
    claim_name: str = ""
    driver: str = ""


class _Token(msgspec.Struct):
    audience: str = ""


class _Source(msgspec.Struct, rename="camel"):
    service_account_token: _Token | None = None


class _Projected(msgspec.Struct):
    sources: list[_Source] | None = None


class _Volume(msgspec.Struct, rename="camel"):
    name: str = ""
    projected: _Projected | None = None
    csi: _Named | None = None
    persistent_volume_claim: _Named | None = None
    ephemeral: dict[str, object] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    volumes: list[_Volume] | None = None
    volume_name: str = ""
    csi: _Named | None = None
    token_requests: list[_Token] | None = None


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Object(msgspec.Struct):
    """What matters of a pod, a claim, a volume or a driver."""

    metadata: _Metadata
    spec: _Spec


_decode = msgspec.json.Decoder(_Object).decode


class AudienceCheck:
    """`may` is the authorizer."""

    def __init__(self, lookup: Lookup, may: MayDo) -> None:
        self._lookup = lookup
        self._may = may

    def fault(self, user: UserInfo, account: str, pod: bytes, audiences: Sequence[str]) -> str | None:
        """Why a node may not ask for a token of `account` with these audiences for its pod; None if it may."""
        if len(audiences) > 1:
            return "node may only request 0 or 1 audiences"
        audience = audiences[0] if audiences else ""
        view = _decode(pod)
        missing: list[str] = []
        if any(self._wants(view, volume, audience, missing) for volume in view.spec.volumes or ()):
            return None
        if missing:
            return f"error validating audience {quote(audience)}: {missing[0]}"
        namespace = view.metadata.namespace
        question = RequestInfo("", _VERB, True, "api", "", "v1", namespace, audience, name=account)
        if audience and self._may(user, question):
            return None
        text = f"audience {quote(audience)} not found in pod spec volume"
        return f"{text}, {user.name} is not authorized to request tokens for this audience"

    def _wants(self, pod: _Object, volume: _Volume, audience: str, missing: list[str]) -> bool:
        if volume.projected is not None:
            tokens = [source.service_account_token for source in volume.projected.sources or ()]
            return any(token is not None and token.audience == audience for token in tokens)
        driver = self._driver(pod, volume, missing)
        if not driver:
            return False
        found = self._lookup("csidrivers.storage.k8s.io", "", driver)
        if found is None:
            missing.append(f'csidriver.storage.k8s.io "{driver}" not found')
            return False
        return any(token.audience == audience for token in _decode(found).spec.token_requests or ())

    def _driver(self, pod: _Object, volume: _Volume, missing: list[str]) -> str:
        """The CSI driver of a volume, by way of its claim; "" where it has none."""
        if volume.csi is not None:
            return volume.csi.driver
        if volume.persistent_volume_claim is not None:
            claim = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            claim = f"{pod.metadata.name}-{volume.name}"
        else:
            return ""
        found = self._lookup("persistentvolumeclaims", pod.metadata.namespace, claim)
        if found is None:
            missing.append(f'persistentvolumeclaim "{claim}" not found')
            return ""
        bound = _decode(found).spec.volume_name
        if not bound:
            return ""
        body = self._lookup("persistentvolumes", "", bound)
        if body is None:
            missing.append(f'persistentvolume "{bound}" not found')
            return ""
        csi = _decode(body).spec.csi
        return "" if csi is None else csi.driver
