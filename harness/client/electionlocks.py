"""Where a leader election's record is kept: in a Lease, or in an annotation of the object that is fought for.

Mirrored: cg/tools/leaderelection/resourcelock (leaselock.go, interface.go) and, for the annotation, external-storage
v4.0.0 (lib/leaderelection/resourcelock/provisionpvclock.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from harness.client.requests import LEASES, ResourceRef, create_, get_, update_
from harness.wire import rfc3339
from harness.wire.request import Request

ANNOTATION = "control-plane.alpha.kubernetes.io/leader"


class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=False):
    """A LeaderElectionRecord, as its JSON has it; times as the lock writes them. An empty `holder` holds nothing."""

    holder: str = msgspec.field(name="holderIdentity", default="")
    lease_duration_seconds: int = 0
    acquire_time: str | None = None
    renew_time: str | None = None
    leader_transitions: int = 0


class Lock(Protocol):
    """One lock. `record` is what the last answer held."""

    record: Record

    def get(self) -> Request: ...

    def create(self, record: Record) -> Request | None:
        """None where a lock that is not there cannot be made."""
        ...

    def update(self, record: Record) -> Request:
        """Based on the object of the last answer."""
        ...

    def take(self, body: bytes) -> None:
        """What a successful answer held. Raises msgspec.MsgspecError for what is no such object."""
        ...

    def stamp(self, epoch_s: float) -> str: ...


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: dict[str, Any]
    spec: _LeaseSpec = _LeaseSpec()


_decode_lease = msgspec.json.Decoder(_Lease).decode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_record = msgspec.json.Decoder(Record).decode


class LeaseLock:
    """A Lease called `name`, with `labels` where it is made here."""

    __slots__ = ("_client", "_labels", "_metadata", "_name", "_namespace", "record")

    def __init__(
        self, namespace: str, name: str, client: str, labels: Mapping[str, str] | None = None
    ) -> None:
        self._labels = dict(labels or {})
        self._namespace = namespace
        self._name = name
        self._client = client
        self._metadata: dict[str, Any] = {}
        self.record = Record()

    def get(self) -> Request:
        return get_(LEASES, self._namespace, self._name, client=self._client)

    def create(self, record: Record) -> Request:
        metadata: dict[str, Any] = {"name": self._name, "namespace": self._namespace}
        if self._labels:
            metadata["labels"] = self._labels
        body = self._body(metadata, record)
        return create_(LEASES, self._namespace, body, client=self._client)

    def update(self, record: Record) -> Request:
        body = self._body(self._metadata, record)
        return update_(LEASES, self._namespace, self._name, body, client=self._client)

    def take(self, body: bytes) -> None:
        lease = _decode_lease(body)
        self._metadata, spec = lease.metadata, lease.spec
        self.record = Record(
            spec.holder_identity or "",
            spec.lease_duration_seconds or 0,
            spec.acquire_time,
            spec.renew_time,
            spec.lease_transitions or 0,
        )

    def stamp(self, epoch_s: float) -> str:
        return rfc3339.micro(epoch_s)

    def _body(self, metadata: dict[str, Any], record: Record) -> bytes:
        spec = _LeaseSpec(
            record.holder,
            record.lease_duration_seconds,
            record.acquire_time,
            record.renew_time,
            record.leader_transitions,
        )
        lease = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": metadata,
            "spec": spec,
        }
        return msgspec.json.encode(lease)


class AnnotationLock:
    """An annotation of an object that exists; the whole object is read and written for it."""

    __slots__ = ("_client", "_name", "_namespace", "_object", "_ref", "record")

    def __init__(self, ref: ResourceRef, namespace: str, name: str, client: str) -> None:
        self._ref = ref
        self._namespace = namespace
        self._name = name
        self._client = client
        self._object: dict[str, Any] = {}
        self.record = Record()

    def get(self) -> Request:
        return get_(self._ref, self._namespace, self._name, client=self._client)

    def create(self, record: Record) -> None:
        return None

    def update(self, record: Record) -> Request:
        annotations = self._object["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION] = msgspec.json.encode(record).decode()
        body = msgspec.json.encode(self._object)
        return update_(self._ref, self._namespace, self._name, body, client=self._client)

    def take(self, body: bytes) -> None:
        self._object = found = _decode_object(body)
        metadata = msgspec.convert(found.get("metadata"), dict[str, Any])
        text = (metadata.get("annotations") or {}).get(ANNOTATION)
        self.record = _decode_record(text) if text else Record()

    def stamp(self, epoch_s: float) -> str:
        return rfc3339.seconds(epoch_s)
