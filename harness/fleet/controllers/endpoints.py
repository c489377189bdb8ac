"""Endpoints objects. kk/pkg/controller/endpoint."""

from __future__ import annotations

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
from harness.fleet.controllers.views import Object, PodView, WholeView, whole

_MOST = 1000  # maxCapacity
_MANAGED = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


class EndpointsController(ServicePods):
    name = "endpoint-controller"

    def subscribe(self) -> None:
        super().subscribe()
        self.endpoints = self.watch(ENDPOINTS, self.endpoints_changed)

    def endpoints_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        """onEndpointsDelete: it is made again."""
        if change is Change.DELETED:
            self.queue.add(new.key)

    def sync(self, key: str) -> Steps[None]:
        service: WholeView | None = self.services.get(key)
        if service is None:
            namespace, _, name = key.partition("/")
            (error,) = yield from call_all([self.delete(ENDPOINTS, namespace, name)])
            if error is not None and not error.not_found:
                raise error
            return
        spec = spec_of(service)
        if spec.type == "ExternalName" or spec.selector is None:
            return
        subsets = self._subsets(service)
        labels = {**service.labels, **_MANAGED}
        if spec.cluster_ip == "None":
            labels[HEADLESS] = ""
        found: WholeView | None = self.endpoints.get(key)
        if found is not None:
            current = whole(found)
            same = (current.get("subsets") or []) == subsets
            if same and (current["metadata"].get("labels") or {}) == labels:
                return
            current["subsets"] = subsets
            current["metadata"]["labels"] = labels
            yield from call(self.update(ENDPOINTS, current))
            return
        metadata = {"name": service.name, "namespace": service.namespace, "labels": labels}
        made: Object = {"kind": "Endpoints", "apiVersion": "v1", "metadata": metadata, "subsets": subsets}
        try:
            yield from call(self.create(ENDPOINTS, service.namespace, made))
        except ApiError as error:
            if not error.terminating:
                raise

    def _subsets(self, service: WholeView) -> list[Object]:
        """Addresses by their ports (RepackSubsets), ready and not ready."""
        spec = spec_of(service)
        groups: dict[bytes, tuple[list[Object], list[tuple[PodView, bool]]]] = {}
        known: PortGroups = {}
        pods = [
            each for each in self.selected(service) if each.ip and each.deleted is None and not each.ended
        ]
        for pod in sorted(pods, key=lambda each: each.ip)[:_MOST]:
            ports_key, ports = resolved_ports(pod, spec.ports, known)
            if spec.ports and not ports:
                continue
            group = groups.setdefault(ports_key, (ports, []))
            group[1].append((pod, pod.ready or spec.publish_not_ready_addresses))
        return [_subset(ports, members, service.name) for _, (ports, members) in sorted(groups.items())]


def _subset(ports: list[Object], members: list[tuple[PodView, bool]], service: str) -> Object:
    made: Object = {}
    ready = [_address(pod, service) for pod, is_ready in members if is_ready]
    unready = [_address(pod, service) for pod, is_ready in members if not is_ready]
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
