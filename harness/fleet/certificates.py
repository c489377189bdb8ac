"""Rotation of a kubelet's client certificate. client-go util/certificate/certificate_manager.go and csr/csr.go.

At 70 to 90 % of the certificate's life: POST a CertificateSigningRequest, then LIST it by name and watch it until it is
signed, denied or 15 minutes have passed. What fails is tried again after 2 s, doubled, five times, then each 32 s; what
was signed is looked at anew after 1 s. The transport looks each 10 s whether there is a new certificate, and then
closes all connections (kk/pkg/kubelet/certificate/transport.go), so that a node's watches all begin anew.

A life counts from the certificate's own notBefore, which the signer of Kubernetes puts 5 min into the past: one that is
to end in 10 min has lived 5 of its 15 when it is new.

The request itself (a key and a PKCS#10 body) is the shell's to make, and certificates are its to read: both stay out of
a pure machine.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    CloseConnections,
    Disarm,
    Event,
    Failed,
    Fired,
    Note,
    Sample,
    Send,
    UseCertificate,
)
from harness.client.reflector import Output, Reflector
from harness.client.requests import CERTIFICATESIGNINGREQUESTS, create_, list_
from harness.client.store import Changed, ObjectMeta, decoder_for
from harness.fleet.context import Context, Out, parsed

PART = "certificate"
WATCH = "certificate-watch"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_WAIT_S = 15 * 60.0  # certificateWaitTimeout
_FIRST_BACKOFF_S, _TRIES, _LATER_S = 2.0, 5, 32.0
_BACKOFF_JITTER = 0.1
_CHECK_S = 10.0  # UpdateTransport
_AGAIN_S = 1.0  # wait.Until's period around a rotation


class RotationState(Enum):
    OFF = "not for this node"
    WAITING = "the certificate's age"
    CREATING = "POST certificatesigningrequests"
    SIGNING = "the request to be signed"
    BACKOFF = "another try"


class _Name(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Made(msgspec.Struct, frozen=True, gc=False):
    metadata: _Name = _Name()


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] = ()
    certificate: str | None = None


class _Request(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    status: _Status = _Status()


_MADE = msgspec.json.Decoder(_Made)
_decode = decoder_for(_Request)


class Validity(NamedTuple):
    """notBefore and notAfter of a certificate, seconds since 1970."""

    begins_s: float
    ends_s: float


class OwnCertificate(Protocol):
    """A node's client certificate, as its shell keeps it."""

    def request(self) -> bytes:
        """PEM of a signing request for a new key."""

    def validity(self, certificate: bytes = b"") -> Validity | None:
        """Of a certificate (PEM), or of the present one; None for what is no certificate."""


class CertificateManager:
    """`own` None: the node has no certificate to renew."""

    __slots__ = (
        "_asked_at", "_backoff_s", "_context", "_name", "_own", "_reflector", "_tries", "state",
    )  # fmt: skip

    def __init__(self, context: Context, own: OwnCertificate | None = None) -> None:
        self._context = context
        self._own = own if context.options.rotate_certificates else None
        self._asked_at = 0.0
        self._name = ""  # of the request that is to be signed
        self._reflector: Reflector | None = None
        self._tries = 0
        self._backoff_s = _FIRST_BACKOFF_S
        self.state = RotationState.OFF

    def start(self, now: float, out: Out) -> None:
        validity = self._own.validity() if self._own is not None else None
        if validity is not None:
            self._sleep(validity, now, now, out)

    def stop(self, now: float, out: Out) -> None:
        if self.state is not RotationState.OFF:
            out += [Disarm((PART, "tick")), Disarm((PART, "check"))]
            self._stop_watching(now, out)
            self.state = RotationState.OFF

    def handle(self, event: Event, now: float, out: Out) -> None:
        if event.key[0] == WATCH:
            if self._reflector is not None:
                self._watched(self._reflector.handle(event, now), now, out)
        elif isinstance(event, Fired):
            self._fired(str(event.key[1]), now, out)
        elif event.key[1] == "list":
            if self.state is RotationState.SIGNING:
                self._watch(now, out)
        elif isinstance(event, Answered):
            made = parsed(_MADE, event.response)
            if made is not None and made.metadata.name:
                self._wait_for(made.metadata.name, now, out)
            else:
                self._failed("refused", now, out)
        elif isinstance(event, Failed):
            self._failed("unreachable", now, out)

    # ---- steps -----------------------------------------------------------------------------------------------------
    def _sleep(self, validity: Validity, earliest: float, now: float, out: Out) -> None:
        """nextRotationDeadline: notBefore + life x U[1, 1.2) - life x 0.3, which may have passed already."""
        self.state = RotationState.WAITING
        self._tries, self._backoff_s = 0, _FIRST_BACKOFF_S
        life_s = validity.ends_s - validity.begins_s
        due_s = validity.begins_s + life_s * (0.7 + 0.2 * self._context.rng.random())
        out.append(Arm((PART, "tick"), max(earliest, due_s - self._context.epoch_s)))

    def _fired(self, what: str, now: float, out: Out) -> None:
        if what == "check":
            out.append(CloseConnections("new certificate"))
        elif self.state is RotationState.SIGNING:
            self._failed("not signed", now, out)
        elif self.state in (RotationState.WAITING, RotationState.BACKOFF):
            self._create(now, out)

    def _create(self, now: float, out: Out) -> None:
        assert self._own is not None
        self.state = RotationState.CREATING
        self._asked_at = now
        labels, life_s = dict(self._context.options.labels), self._context.options.certificate_life_s
        body = msgspec.json.encode(
            {
                "kind": "CertificateSigningRequest",
                "apiVersion": "certificates.k8s.io/v1",
                "metadata": {"generateName": "csr-", **({"labels": labels} if labels else {})},
                "spec": {
                    "request": b64encode(self._own.request()).decode(),
                    "signerName": SIGNER,
                    "usages": ["digital signature", "client auth"],
                    **({"expirationSeconds": life_s} if life_s else {}),
                },
            }
        )
        out.append(Send((PART, "create"), create_(CERTIFICATESIGNINGREQUESTS, None, body, client=PART)))

    def _wait_for(self, name: str, now: float, out: Out) -> None:
        """The LIST only finds out which version of the API there is (WaitForCertificate)."""
        self.state = RotationState.SIGNING
        self._name = name
        out.append(Arm((PART, "tick"), now + _WAIT_S))
        request = list_(CERTIFICATESIGNINGREQUESTS, field_selector=f"metadata.name={name}", client=PART)
        out.append(Send((PART, "list"), request))

    def _watch(self, now: float, out: Out) -> None:
        self._reflector = Reflector(
            WATCH,
            CERTIFICATESIGNINGREQUESTS,
            None,
            f"metadata.name={self._name}",
            "",
            self._context.rng,
            decode=_decode,
            watch_list=self._context.options.watch_list,
            client=PART,
        )
        self._watched(self._reflector.start(now), now, out)

    def _watched(self, outputs: list[Output], now: float, out: Out) -> None:
        for output in outputs:
            if not isinstance(output, Changed):
                out.append(output)
            elif isinstance(output.object, _Request) and self.state is RotationState.SIGNING:
                self._look(output.object.status, now, out)

    def _look(self, status: _Status, now: float, out: Out) -> None:
        kinds = {each.type for each in status.conditions}
        if kinds & {"Denied", "Failed"}:
            self._stop_watching(now, out)
            self._failed("denied", now, out)
        elif "Approved" in kinds and status.certificate:
            self._stop_watching(now, out)
            self._use(status.certificate, now, out)

    def _use(self, encoded: str, now: float, out: Out) -> None:
        assert self._own is not None
        try:
            certificate = b64decode(encoded, validate=True)
        except ValueError:
            certificate = b""
        validity = self._own.validity(certificate) if certificate else None
        if validity is None:
            self._failed("unreadable", now, out)
            return
        out.append(Note("kubelet-certificate", {"node": self._context.name}))
        out.append(Sample("certificate_signing_ms", (now - self._asked_at) * 1e3))
        out.append(UseCertificate(certificate))
        out.append(Arm((PART, "check"), self._context.next_tick(_CHECK_S, now)))
        self._sleep(validity, now + _AGAIN_S, now, out)

    def _failed(self, why: str, now: float, out: Out) -> None:
        self._stop_watching(now, out)
        out.append(Sample("kubelet_certificates_failed", 1.0, (("why", why),)))
        self.state = RotationState.BACKOFF
        self._tries += 1
        if self._tries < _TRIES:
            wait_s = self._backoff_s * (1.0 + _BACKOFF_JITTER * self._context.rng.random())
            self._backoff_s *= 2
        else:
            wait_s = _LATER_S
        out.append(Arm((PART, "tick"), now + wait_s))

    def _stop_watching(self, now: float, out: Out) -> None:
        if self._reflector is not None:
            reflector, self._reflector = self._reflector, None
            stopped: list[Action] = [
                each for each in reflector.stop(now) if isinstance(each, Cancel | Disarm)
            ]
            out += stopped
