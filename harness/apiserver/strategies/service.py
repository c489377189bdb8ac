"""Services: defaults, and the cluster IP that a server allocates (kk/pkg/registry/core/service/storage/alloc.go).

Upstream keeps an IPAddress object for each address; here the addresses in use are those of the services that the
member's cache holds, so two members may, within the cache's lag, give the same one to two services.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterable

from harness.apiserver.apierrors import FieldError, invalid_value, not_supported, required, unclassified
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep
from harness.apiserver.strategies.names import dns1035_label

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_NODE_PORTS = range(30000, 32768)
_KEPT = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


class ServiceStrategy(Strategy):
    name_check = staticmethod(dns1035_label)
    returns_deleted = True

    def default(self, new: Object) -> None:
        spec = new.get("spec")
        if spec is None:
            new["spec"] = spec = {}
        kind = spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
        drop_empty(spec, "selector", "externalIPs", "loadBalancerSourceRanges", "ports")
        if kind != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind in ("NodePort", "LoadBalancer"):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        if kind != "ExternalName":
            spec.setdefault("ipFamilies", ["IPv4"])
            spec.setdefault("ipFamilyPolicy", "SingleStack")
        new.setdefault("status", {}).setdefault("loadBalancer", {})

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {"loadBalancer": {}}

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        keep(new, old, "status")
        spec, before = new["spec"], old["spec"]
        if spec["type"] == "ExternalName" or before["type"] == "ExternalName":
            return
        for key in _KEPT:
            if not spec.get(key):
                keep(spec, before, key)
        old_ports = {_port_key(port): port.get("nodePort") for port in before.get("ports") or ()}
        if spec["type"] in ("NodePort", "LoadBalancer"):
            for port in spec.get("ports") or ():
                number = old_ports.get(_port_key(port))
                if number and not port.get("nodePort"):
                    port["nodePort"] = number

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = []
        if spec["type"] not in _TYPES:
            errors.append(not_supported("spec.type", spec["type"], _TYPES))
        if not spec.get("ports") and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
            errors.append(required("spec.ports"))
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("port", 0)
            if not isinstance(number, int) or not 0 < number < 65536:
                errors.append(
                    invalid_value(
                        f"spec.ports[{index}].port", number, "must be between 1 and 65535, inclusive"
                    )
                )
            if len(spec["ports"]) > 1 and not port.get("name"):
                errors.append(required(f"spec.ports[{index}].name"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
        if before and after != before and new["spec"]["type"] != "ExternalName":
            return [
                invalid_value("spec.clusterIPs[0]", [after or ""], "may not change once set"),
            ]
        return []


def _port_key(port: Object) -> tuple[object, object]:
    return port.get("port"), port.get("protocol", "TCP")


class Allocator:
    """Chooses free cluster IPs and node ports; `used()` gives the specs of the services that exist."""

    def __init__(self, cidr: str, used: Callable[[], Iterable[Object]], rng: random.Random) -> None:
        self._network = ipaddress.ip_network(cidr)
        self._used = used
        self._rng = rng

    def allocate(self, new: Object) -> None:
        """Fill in clusterIP, clusterIPs and node ports where they are missing."""
        spec = new["spec"]
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._address()
        spec["clusterIPs"] = [spec["clusterIP"]]
        if spec["type"] in ("NodePort", "LoadBalancer"):
            self._ports(spec)

    def _address(self) -> str:
        used = {spec.get("clusterIP") for spec in self._used()}
        last = self._network.num_addresses - 2
        start = self._rng.randint(2, last)
        for step in range(last):
            address = str(self._network[1 + (start + step) % last])
            if address not in used:
                return address
        raise unclassified("failed to allocate a serviceIP: range is full")

    def _ports(self, spec: Object) -> None:
        used = {port.get("nodePort") for other in self._used() for port in other.get("ports") or ()}
        for port in spec.get("ports") or ():
            if port.get("nodePort"):
                continue
            free = [number for number in _NODE_PORTS if number not in used]
            if not free:
                raise unclassified("failed to allocate a nodePort: range is full")
            port["nodePort"] = self._rng.choice(free)
            used.add(port["nodePort"])
