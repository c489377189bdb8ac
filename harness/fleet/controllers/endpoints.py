"""Endpoints objects. kk/pkg/controller/endpoint.

One object holds all of a service's addresses (1,000 at most), so each change of a pod writes all of them; but only the
address of that pod is made anew, the others are copied as bytes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.client.store import Change
from harness.fleet.controllers.api import ENDPOINTS, ApiError, Steps, call, call_all
from harness.fleet.controllers.serviceviews import (
    HEADLESS,
    PortGroups,
    ServicePods,
    resolved_ports,
    spec_of,
    target_reference,
)
from harness.fleet.controllers.views import Object, PodView, WholeView

_MOST = 1000  # maxCapacity
_MANAGED = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
_encode = msgspec.json.encode


class _Current(msgspec.Struct, gc=False):
    metadata: dict[str, Any]
    subsets: list[Object] | None = None


class _Written(msgspec.Struct, gc=False):
    metadata: dict[str, Any]


_decode_current = msgspec.json.Decoder(_Current).decode
_decode_written = msgspec.json.Decoder(_Written).decode


@dataclass(slots=True)
class _Address:
    ip: str
    ready: bool
    ports_key: bytes
    raw: msgspec.Raw


class _Addresses:
    """Those of one service, in the order of IPs. `version` is that of the Endpoints object that had exactly these, ""
    where none is known to have had, and `metadata` its metadata; `changed` where these are others by now."""

    __slots__ = ("_by_uid", "_order", "_ports", "changed", "metadata", "version")

    def __init__(self) -> None:
        self._by_uid: dict[str, _Address] = {}
        self._order: list[tuple[str, str]] = []
        self._ports: dict[bytes, list[Object]] = {}
        self.changed = False
        self.version = ""
        self.metadata: Object = {}

    def __repr__(self) -> str:
        return f"_Addresses({len(self._order)})"

    @property
    def pods(self) -> list[str]:
        return list(self._by_uid)

    def put(self, uid: str, new: _Address | None, ports: list[Object]) -> None:
        """Take the address of a pod, None for one that has none."""
        old = self._by_uid.pop(uid, None)
        if old is not None:
            place = bisect_left(self._order, (old.ip, uid))
            del self._order[place]
            self.changed |= old != new and place < _MOST
        if new is not None:
            self._by_uid[uid] = new
            self._ports[new.ports_key] = ports
            place = bisect_left(self._order, (new.ip, uid))
            self._order.insert(place, (new.ip, uid))
            self.changed |= old != new and place < _MOST

    def written(self, metadata: Object) -> None:
        """There is an object with exactly these."""
        metadata.pop("managedFields", None)
        self.metadata, self.version, self.changed = metadata, metadata["resourceVersion"], False

    def subsets(self, any_ports: bool) -> list[Object]:
        """By their ports (RepackSubsets), ready and not ready. `any_ports`: also of pods that have none of them."""
        groups: dict[bytes, tuple[list[msgspec.Raw], list[msgspec.Raw]]] = {}
        by_uid = self._by_uid
        for _, uid in self._order[:_MOST]:
            address = by_uid[uid]
            group = groups.get(address.ports_key)
            if group is None:
                if not any_ports and not self._ports[address.ports_key]:
                    continue
                group = groups[address.ports_key] = ([], [])
            group[0 if address.ready else 1].append(address.raw)
        return [_subset(self._ports[key], *group) for key, group in sorted(groups.items())]


class EndpointsController(ServicePods):
    name = "endpoint-controller"

    def subscribe(self) -> None:
        super().subscribe()
        self.endpoints = self.watch(ENDPOINTS, self.endpoints_changed)
        self._addresses: dict[str, _Addresses] = {}  # by key of the service

    def endpoints_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        """onEndpointsDelete: it is made again."""
        if change is Change.DELETED:
            self.queue.add(new.key)

    def sync(self, key: str) -> Steps[None]:
        service: WholeView | None = self.services.get(key)
        if service is None:
            self._addresses.pop(key, None)
            namespace, _, name = key.partition("/")
            (error,) = yield from call_all([self.delete(ENDPOINTS, namespace, name)])
            if error is not None and not error.not_found:
                raise error
            return
        spec = spec_of(service)
        if spec.type == "ExternalName" or spec.selector is None:
            return
        held = self._addresses.setdefault(key, _Addresses())
        self._look(service, held)
        found: WholeView | None = self.endpoints.get(key)
        if found is None:
            yield from self._create(service, held)
        elif held.version != found.resource_version:
            yield from self._compare(service, held, found)
        elif held.changed:
            yield from self._update(service, held, held.metadata)

    def _look(self, service: WholeView, held: _Addresses) -> None:
        """Bring the addresses up to date; the service's own changes may need another object whatever they are."""
        spec = spec_of(service)
        known: PortGroups = {}
        if not self.knows(service):
            held.version = ""
        for uid, pod in self.changed_pods(service, held.pods).items():
            if pod is None or not pod.ip or pod.deleted is not None or pod.ended:
                held.put(uid, None, [])
                continue
            ports_key, ports = resolved_ports(pod, spec.ports, known)
            raw = msgspec.Raw(_encode(_address(pod, service.name)))
            ready = pod.ready or spec.publish_not_ready_addresses
            held.put(uid, _Address(pod.ip, ready, ports_key, raw), ports)
        self.looked_at(service)

    def _create(self, service: WholeView, held: _Addresses) -> Steps[None]:
        metadata = {"name": service.name, "namespace": service.namespace, "labels": self._labels(service)}
        made = self._body(service, held, metadata)
        try:
            response = yield from call(self.create(ENDPOINTS, service.namespace, made))
        except ApiError as error:
            if not error.terminating:
                raise
            return
        held.written(_decode_written(response.body).metadata)

    def _compare(self, service: WholeView, held: _Addresses, found: WholeView) -> Steps[None]:
        """With an object that is not what was last written; it may be older."""
        current = _decode_current(found.raw)
        labels = current.metadata.get("labels") or {}
        if labels == self._labels(service) and _same(current.subsets, self._subsets(service, held)):
            held.written(current.metadata)
        else:
            yield from self._update(service, held, current.metadata)

    def _update(self, service: WholeView, held: _Addresses, metadata: Object) -> Steps[None]:
        labelled = {**metadata, "labels": self._labels(service)}
        labelled.pop("managedFields", None)
        held.version = ""
        response = yield from call(self.update(ENDPOINTS, self._body(service, held, labelled)))
        held.written(_decode_written(response.body).metadata)

    def _body(self, service: WholeView, held: _Addresses, metadata: Object) -> Object:
        subsets = self._subsets(service, held)
        return {"kind": "Endpoints", "apiVersion": "v1", "metadata": metadata, "subsets": subsets}

    def _subsets(self, service: WholeView, held: _Addresses) -> list[Object]:
        return held.subsets(any_ports=not spec_of(service).ports)

    def _labels(self, service: WholeView) -> dict[str, str]:
        labels = {**service.labels, **_MANAGED}
        if spec_of(service).cluster_ip == "None":
            labels[HEADLESS] = ""
        return labels


def _same(current: list[Object] | None, subsets: list[Object]) -> bool:
    return bool((current or []) == msgspec.json.decode(_encode(subsets)))


def _subset(ports: list[Object], ready: list[msgspec.Raw], unready: list[msgspec.Raw]) -> Object:
    made: Object = {}
    if ready:
        made["addresses"] = ready
    if unready:
        made["notReadyAddresses"] = unready
    if ports:
        made["ports"] = ports
    return made


def _address(pod: PodView, service: str) -> Object:
    made: Object = {"ip": pod.ip}
    hostname, subdomain = pod.host
    if hostname and subdomain == service:
        made["hostname"] = hostname
    return {**made, "nodeName": pod.node, "targetRef": target_reference(pod)}
