"""A client certificate by the API: a CertificateSigningRequest, its approval, and the certificate in its status.

As a kubelet's TLS bootstrap (kk/pkg/kubelet/certificate/bootstrap/bootstrap.go; client-go util/certificate/csr), except
that it polls where a kubelet watches, and that the request is approved here where nobody else does it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import gevent
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from harness.client.requests import ResourceRef, create_, get_, update_
from harness.load.cluster.errands import message_of
from harness.load.identity.authority import private_pem, subject_of
from harness.load.labels import labels_of
from harness.transport.sinks import Answer
from harness.wire.errors import SwarmletError
from harness.wire.request import Request, Response, TransportError

CSRS = ResourceRef("certificates.k8s.io", "v1", "certificatesigningrequests")
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_USAGES = ["digital signature", "client auth"]
SIGNED_WITHIN_S = 120.0
APPROVED_AFTER_S = 1.0
"""So long somebody else, a controller manager, has to approve the request before we do."""

_POLL_S, _LONGEST_POLL_S = 0.2, 2.0
_TRIES = 5


class NotSigned(SwarmletError):
    """A node that gets no certificate."""


class SigningRequest:
    """Gets certificates. `ask` sends a request with the run's own credentials and waits for its answer; `life_s` is how
    long they are asked to live, 0: as long as the signer gives; `sleep` waits without holding up others."""

    def __init__(
        self,
        ask: Callable[[Request], Answer],
        run: str,
        life_s: int = 0,
        sleep: Callable[[float], object] = gevent.sleep,
    ) -> None:
        self._ask = ask
        self._run = run
        self._life_s = life_s
        self._sleep = sleep
        self._may_approve = True
        self._key = ec.generate_private_key(
            ec.SECP256R1()
        )  # one for all: a server sees no more than certificates

    def obtain(self, user: str, groups: Sequence[str]) -> bytes:
        """PEM: a key and the certificate that the cluster signed for it. Raises NotSigned."""
        key = self._key
        request = (
            x509.CertificateSigningRequestBuilder()
            .subject_name(subject_of(user, groups))
            .sign(key, hashes.SHA256())
        )
        body = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"generateName": "swarmlet-", "labels": labels_of(self._run)},
            "spec": {
                "request": base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
                "signerName": SIGNER,
                "usages": _USAGES,
                **({"expirationSeconds": self._life_s} if self._life_s else {}),
            },
        }
        made = self._object(user, create_(CSRS, None, msgspec.json.encode(body)))
        return private_pem(key) + self._signed(user, str(made["metadata"]["name"]))

    def _signed(self, user: str, name: str) -> bytes:
        waited_s, poll_s = 0.0, _POLL_S
        while True:
            found = self._object(user, get_(CSRS, None, name))
            status = found.get("status") or {}
            kinds = {each.get("type"): each for each in status.get("conditions") or ()}
            for bad in ("Denied", "Failed"):
                if bad in kinds:
                    raise NotSigned(
                        f"{user}: its certificate was {bad.lower()}: {kinds[bad].get('message', '')}"
                    )
            if status.get("certificate"):
                return base64.b64decode(status["certificate"])
            if waited_s >= SIGNED_WITHIN_S:
                lacks = "signed" if "Approved" in kinds else "approved"
                raise NotSigned(f"{user}: request {name} was not {lacks} within {SIGNED_WITHIN_S:g} s")
            if "Approved" not in kinds and waited_s >= APPROVED_AFTER_S and self._may_approve:
                self._approve(found)
            self._sleep(poll_s)
            waited_s += poll_s
            poll_s = min(2 * poll_s, _LONGEST_POLL_S)

    def _approve(self, found: dict[str, Any]) -> None:
        """Where we may not, somebody else must; where somebody else was first, nothing is left to do."""
        status = found.get("status") or {}
        condition = {
            "type": "Approved",
            "status": "True",
            "reason": "SwarmletApproved",
            "message": "a node of a load test",
        }
        body = {**found, "status": {**status, "conditions": [*(status.get("conditions") or ()), condition]}}
        name = str(found["metadata"]["name"])
        answer = self._ask(update_(CSRS, None, name, msgspec.json.encode(body), subresource="approval"))
        self._may_approve = not (isinstance(answer, Response) and answer.status == 403)

    def _object(self, user: str, request: Request) -> dict[str, Any]:
        problem = ""
        for attempt in range(_TRIES):
            if attempt:
                self._sleep(_POLL_S * 2**attempt)
            answer = self._ask(request)
            if isinstance(answer, TransportError):
                problem = str(answer)
                continue
            if answer.ok:
                found: dict[str, Any] = msgspec.json.decode(answer.body)
                return found
            problem = f"HTTP {answer.status}: {message_of(answer)}"
            if answer.status not in (429, 500, 503, 504):
                break
        raise NotSigned(f"{user}: {request.verb} {request.name}: {problem}")
