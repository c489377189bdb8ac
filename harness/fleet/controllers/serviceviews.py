"""What the two endpoint controllers share: services, the pods they select, and their ports."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from harness.client.requests import SERVICES
from harness.client.store import Change
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.views import Object, PodView, WholeView

HEADLESS = "service.kubernetes.io/headless"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"


class ServicePort(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    protocol: str = "TCP"
    port: int = 0
    target_port: int | str | None = None
    app_protocol: str | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    type: str = ""
    publish_not_ready_addresses: bool = False


class _Service(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


_decode = lru_cache(maxsize=8192)(msgspec.json.Decoder(_Service).decode)


def spec_of(service: WholeView) -> _Spec:
    return _decode(service.raw).spec


class ServicePods(Controller):
    """A controller whose keys are services and that hears of the pods behind them."""

    most_retries = 15

    def subscribe(self) -> None:
        self.services = self.watch(SERVICES, self.enqueue)
        self.pods = self.watch_pods(self.pod_changed)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        """GetServicesToUpdateOnPodChange."""
        if change is Change.MODIFIED and old is not None and _same_endpoint(old, new):
            return
        for service in self.services.in_namespace(new.namespace):
            wanted = (spec_of(service).selector or {}).items()
            if not wanted:
                continue
            if wanted <= new.labels.items() or (old is not None and wanted <= old.labels.items()):
                self.queue.add(service.key)

    def selected(self, service: WholeView) -> list[PodView]:
        selector = (spec_of(service).selector or {}).items()
        return self.pods.selected(service.namespace, lambda labels: selector <= labels.items())


def _same_endpoint(old: PodView, new: PodView) -> bool:
    return (
        old.ready is new.ready
        and old.ip == new.ip
        and old.deleted == new.deleted
        and old.phase == new.phase
        and old.node == new.node
        and old.labels is new.labels
        and old.uid == new.uid
    )


def port_number(pod: PodView, port: ServicePort) -> int | None:
    """FindPort: a target port by number or by its name in a container."""
    target = port.target_port
    if isinstance(target, int):
        return target or port.port
    if not target:
        return port.port
    if target.isdecimal():
        return int(target)
    for name, protocol, number in pod.ports:
        if name == target and protocol == port.protocol:
            return number
    return None


def target_reference(pod: PodView) -> Object:
    return {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


def resolved_ports(pod: PodView, ports: tuple[ServicePort, ...], known: PortGroups) -> PortGroup:
    """The ports of a service at a pod, sorted, with a key that equal ones share; `known` has those of other pods, which
    mostly name the same."""
    found = known.get(pod.ports)
    if found is None:
        listed = [_port(port, number) for port in ports if (number := port_number(pod, port)) is not None]
        listed.sort(key=sort_key)
        found = known[pod.ports] = (sort_key(listed), listed)
    return found


def _port(port: ServicePort, number: int) -> Object:
    made: Object = {"name": port.name, "port": number, "protocol": port.protocol}
    if port.app_protocol is not None:
        made["appProtocol"] = port.app_protocol
    return made


PortGroup: TypeAlias = tuple[bytes, list[Object]]
PortGroups: TypeAlias = dict[tuple[tuple[str, str, int], ...], PortGroup]


def sort_key(value: Any) -> bytes:
    return msgspec.json.encode(value)
