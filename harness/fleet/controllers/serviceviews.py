"""What the two endpoint controllers share: services, the pods they select, which of those changed, and their ports."""

from __future__ import annotations

from collections.abc import Iterable
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


class _Pending:
    """What the next sync of a service has to look at: the pods (uid to key) that changed since the last one, or all,
    where `version` is not the service's."""

    __slots__ = ("pods", "version")

    def __init__(self) -> None:
        self.pods: dict[str, str] = {}
        self.version = ""


class ServicePods(Controller):
    """A controller whose keys are services and that hears of the pods behind them.

    A sync asks `changed_pods` which of them to look at, so that one pod's change does not cost as much as the service
    has pods, and says `looked_at` once it has done with them; where it fails before, the next one is given all.
    """

    most_retries = 15

    def subscribe(self) -> None:
        self.services = self.watch(SERVICES, self.service_changed)
        self.pods = self.watch_pods(self.pod_changed)
        self._pending: dict[str, _Pending] = {}
        self._selecting: dict[str, dict[int, _Selecting]] = {}

    def service_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        self._selecting.pop(new.namespace, None)
        if change is Change.DELETED:
            self._pending.pop(new.key, None)
        self.queue.add(new.key)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        """GetServicesToUpdateOnPodChange."""
        if change is Change.MODIFIED and old is not None and _same_endpoint(old, new):
            return
        for key in self._services_of(new):
            self._pod_of(key, new)
        if old is not None and old.labels is not new.labels:
            for key in self._services_of(old):
                self._pod_of(key, new)

    def _pod_of(self, service: str, pod: PodView) -> None:
        pending = self._pending.get(service)
        if pending is None:
            pending = self._pending[service] = _Pending()
        pending.pods[pod.uid] = pod.key
        self.queue.add(service)

    def _services_of(self, pod: PodView) -> list[str]:
        """Keys of the services that select the pod. Equal labels are one object (`shared_labels`), so this is found out
        once for the pods of a ReplicaSet."""
        known = self._selecting.get(pod.namespace)
        if known is None or len(known) > _LABELS_KEPT:
            known = self._selecting[pod.namespace] = {}
        found = known.get(id(pod.labels))
        if found is None:
            labels = pod.labels.items()
            keys = [
                service.key
                for service in self.services.in_namespace(pod.namespace)
                if (wanted := spec_of(service).selector) and wanted.items() <= labels
            ]
            found = known[id(pod.labels)] = (pod.labels, keys)
        return found[1]

    # ---- for a sync --------------------------------------------------------------------------------------------------
    def changed_pods(self, service: WholeView, known: Iterable[str]) -> dict[str, PodView | None]:
        """Pods to look at, by uid; None for one that is not behind the service, or no longer. Those that changed since
        the sync before, or, where that failed or the service is another now, all of them and those of `known`."""
        pending = self._pending.setdefault(service.key, _Pending())
        found: dict[str, PodView | None]
        if self.knows(service):
            found = {uid: self._behind(service, uid, key) for uid, key in pending.pods.items()}
        else:
            found = dict.fromkeys(known)
            found.update((pod.uid, pod) for pod in self.selected(service))
        pending.pods, pending.version = {}, ""
        return found

    def looked_at(self, service: WholeView) -> None:
        """What `changed_pods` gave has been dealt with."""
        pending = self._pending.get(service.key)
        if pending is not None:
            pending.version = service.resource_version

    def knows(self, service: WholeView) -> bool:
        """Whether the last sync dealt with the service as it is now."""
        pending = self._pending.get(service.key)
        return pending is not None and pending.version == service.resource_version

    def look_at_all(self, service: str) -> None:
        pending = self._pending.get(service)
        if pending is not None:
            pending.version = ""

    def selected(self, service: WholeView) -> list[PodView]:
        selector = (spec_of(service).selector or {}).items()
        return self.pods.selected(service.namespace, lambda labels: selector <= labels.items())

    def _behind(self, service: WholeView, uid: str, key: str) -> PodView | None:
        pod: PodView | None = self.pods.get(key)
        if pod is None or pod.uid != uid:
            return None
        selector = (spec_of(service).selector or {}).items()
        return pod if selector <= pod.labels.items() else None


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


_LABELS_KEPT = 4096  # sets of labels in a namespace, of which a StatefulSet has one for each pod
_Selecting: TypeAlias = tuple[dict[str, str], list[str]]
"""A set of labels, kept so that its identity stays its own, and the keys of the services that select it."""
PortGroup: TypeAlias = tuple[bytes, list[Object]]
PortGroups: TypeAlias = dict[tuple[tuple[str, str, int], ...], PortGroup]


def sort_key(value: Any) -> bytes:
    return msgspec.json.encode(value)
