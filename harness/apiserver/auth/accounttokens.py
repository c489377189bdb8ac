"""Service-account tokens: made for TokenRequests, recognised in Authorization headers.

Claims as kubernetes v1.36 pkg/serviceaccount/claims.go:50-170. A real server signs with RSA or ECDSA; these are HS256
with a key that all members of a pool are given, which costs 10 us instead of 1 ms and is nobody's business but the
server's: clients treat tokens as opaque.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple
from uuid import UUID

import msgspec

from harness.apiserver.auth.authentication import UserInfo, account_user

ISSUER = "https://kubernetes.default.svc.cluster.local"
EXTENDED_S = (
    365 * 24 * 3600
)  # a token asked for 3607 s, as projected volumes do, is good for a year: claims.go:31,106
EXTENDABLE_S = 3607
_MAX_CACHED = 20_000
_HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=") + b"."


class Ref(msgspec.Struct, frozen=True):
    """An object that a token is bound to or names."""

    name: str
    uid: str = ""


class _Kubernetes(msgspec.Struct, frozen=True, omit_defaults=True):
    namespace: str
    serviceaccount: Ref
    pod: Ref | None = None
    secret: Ref | None = None
    node: Ref | None = None
    warnafter: int = 0


class Claims(msgspec.Struct, frozen=True, rename={"kubernetes": "kubernetes.io"}):
    """What a token says. Times are seconds since 1970."""

    aud: list[str]
    exp: int
    iat: int
    iss: str
    jti: str
    kubernetes: _Kubernetes
    nbf: int
    sub: str


class IssuedToken(NamedTuple):
    """`expires_s`, since 1970, is what the TokenRequest's status says; the token itself may be good for longer."""

    token: str
    expires_s: int


_decode_claims = msgspec.json.Decoder(Claims).decode
_encode = msgspec.json.Encoder().encode


class AccountTokens:
    """Issues and checks with one key. `wall` gives seconds since 1970."""

    def __init__(self, key: bytes, wall: Callable[[], float], rng: Random, issuer: str = ISSUER) -> None:
        if len(key) < 16:
            raise ValueError(f"the token key has {len(key)} bytes; at least 16 are needed")
        self.issuer = issuer
        self._key = key
        self._wall = wall
        self._rng = rng
        self._known: dict[str, tuple[UserInfo, int]] = {}

    def issue(
        self,
        namespace: str,
        account: Ref,
        seconds: int,
        audiences: Sequence[str] = (),
        pod: Ref | None = None,
        node: Ref | None = None,
        secret: Ref | None = None,
    ) -> IssuedToken:
        """A token good for `seconds`; no audiences means the server itself. `node` is that of `pod`."""
        now = int(self._wall())
        aud = list(audiences) or [self.issuer]
        extended = seconds == EXTENDABLE_S and pod is not None and aud == [self.issuer]
        claims = Claims(
            aud=aud,
            exp=now + (EXTENDED_S if extended else seconds),
            iat=now,
            iss=self.issuer,
            jti=str(UUID(int=self._rng.getrandbits(128), version=4)),
            kubernetes=_Kubernetes(namespace, account, pod, secret, node, now + seconds if extended else 0),
            nbf=now,
            sub=f"system:serviceaccount:{namespace}:{account.name}",
        )
        signed = _HEADER + _base64(_encode(claims))
        return IssuedToken((signed + b"." + self._signature(signed)).decode(), now + seconds)

    def verify(self, token: str) -> Claims | None:
        """The claims of a token that this key signed and that is good now for the server itself; else None."""
        claims = self._checked(token)
        return claims if claims is not None and self.issuer in claims.aud else None

    def review(self, token: str, audiences: Sequence[str]) -> tuple[UserInfo, list[str]] | None:
        """Whom a token stands for and for which of `audiences` it is good; None where for none."""
        claims = self._checked(token)
        shared = [] if claims is None else [item for item in audiences if item in claims.aud]
        return (_user(claims), shared) if claims is not None and shared else None

    def _checked(self, token: str) -> Claims | None:
        """The claims of a token that this key signed and that is good now, for whomever; else None."""
        signed, _, signature = token.encode().rpartition(b".")
        if not hmac.compare_digest(self._signature(signed), signature):
            return None
        try:
            claims = _decode_claims(_unbase64(signed.partition(b".")[2]))
        except (msgspec.MsgspecError, binascii.Error):
            return None
        now = self._wall()
        good = claims.nbf <= now < claims.exp and claims.iss == self.issuer
        return claims if good else None

    def user(self, token: str) -> UserInfo | None:
        """Whom a token stands for; None if it is not good."""
        known = self._known.get(token)
        if known is not None and self._wall() < known[1]:
            return known[0]
        claims = self.verify(token)
        if claims is None:
            return None
        if len(self._known) >= _MAX_CACHED:
            self._known.clear()
        user = _user(claims)
        self._known[token] = (user, claims.exp)
        return user

    def _signature(self, signed: bytes) -> bytes:
        return _base64(hmac.digest(self._key, signed, hashlib.sha256))


def _user(claims: Claims) -> UserInfo:
    bound = claims.kubernetes
    user = account_user(bound.namespace, bound.serviceaccount.name, bound.serviceaccount.uid)
    extra = [("authentication.kubernetes.io/credential-id", (f"JTI={claims.jti}",))]
    for kind, ref in (("node", bound.node), ("pod", bound.pod)):
        if ref is not None:
            extra.append((f"authentication.kubernetes.io/{kind}-name", (ref.name,)))
            if ref.uid:
                extra.append((f"authentication.kubernetes.io/{kind}-uid", (ref.uid,)))
    return msgspec.structs.replace(user, extra=tuple(extra))


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _unbase64(data: bytes) -> bytes:
    return base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4))
