"""Service-account tokens of pods. kk/pkg/kubelet/token/token_manager.go.

A token is asked for when a projected volume is mounted, and again once 80 % of its life or 24 h have passed, less a
jitter of up to 10 s. If that fails the old one is kept until it expires.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from harness.client.machine import Key, Send
from harness.client.requests import SERVICEACCOUNTS, create_
from harness.fleet.context import Context, parsed
from harness.fleet.pods import Pod, Source
from harness.wire.request import Response

_MAX_TTL_S = 24 * 3600.0
_MAX_JITTER_S = 10.0
_REFRESH_AT = 0.8


class Token(Enum):
    """What there is of a token."""

    FRESH = "usable"
    STALE = "usable, but due to be refreshed"
    NONE = "missing or expired"


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    expiration_seconds: int = 3600


class _View(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


_DECODER = msgspec.json.Decoder(_View)


class TokenManager:
    """Tokens by pod uid and source. Only their times are kept: nothing here uses the secret itself."""

    __slots__ = ("_context", "_tokens")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tokens: dict[tuple[str, str, int], tuple[float, float]] = {}  # (issued, expires)

    def __len__(self) -> int:
        return len(self._tokens)

    def look_up(self, uid: str, source: Source, now: float) -> Token:
        times = self._tokens.get((uid, source.audience, source.expiration_s))
        if times is None or now > times[1]:
            return Token.NONE
        issued, expires = times
        due = min(_MAX_TTL_S, _REFRESH_AT * (expires - issued))
        jitter = _MAX_JITTER_S * self._context.rng.random()
        return Token.STALE if now - issued > due - jitter else Token.FRESH

    def request(self, pod: Pod, source: Source, key: Key) -> Send:
        """Ask for a token that is bound to the pod."""
        audiences = f'["{source.audience}"]' if source.audience else "[]"
        body = (
            '{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":{},'
            f'"spec":{{"audiences":{audiences},"expirationSeconds":{source.expiration_s},'
            f'"boundObjectRef":{{"kind":"Pod","apiVersion":"v1","name":"{pod.name}","uid":"{pod.uid}"}}}}}}'
        )
        name = pod.plan.service_account or "default"
        request = create_(SERVICEACCOUNTS, pod.namespace, body.encode(), name=name, subresource="token")
        return Send(key, request)

    def store(self, uid: str, source: Source, response: Response, now: float) -> bool:
        """Keep what a 201 brought (the server may grant another lifetime than was asked for); False for no token."""
        view = parsed(_DECODER, response)
        if view is None:
            return False
        self._tokens[uid, source.audience, source.expiration_s] = (now, now + view.spec.expiration_seconds)
        return True

    def forget(self, pod: Pod) -> None:
        """The pod is gone."""
        for volume in pod.plan.volumes:
            for source in volume:
                if source.ref is None:
                    self._tokens.pop((pod.uid, source.audience, source.expiration_s), None)
