"""Services: kk/pkg/apis/core/v1/defaults.go SetDefaults_Service, kk/pkg/registry/core/service/strategy.go and
storage/alloc.go. Cluster IPs and node ports are given out by `serviceallocation`, behind everything here.
"""

from __future__ import annotations

from harness.apiserver.apierrors import FieldError, invalid_value, not_supported, required
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep, section
from harness.apiserver.strategies.names import dns1035_label

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
_AFFINITY_S = 10800  # DefaultClientIPServiceAffinitySeconds
_KEPT = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


class ServiceStrategy(Strategy):
    name_check = staticmethod(dns1035_label)
    returns_deleted = True
    create_on_update = True

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        kind = spec.setdefault("type", "ClusterIP")
        if spec.setdefault("sessionAffinity", "None") == "ClientIP":
            section(section(spec, "sessionAffinityConfig"), "clientIP").setdefault(
                "timeoutSeconds", _AFFINITY_S
            )
        else:
            spec.pop("sessionAffinityConfig", None)
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
        drop_empty(spec, "selector", "externalIPs", "loadBalancerSourceRanges", "ports")
        if kind in _WITH_NODE_PORTS or (kind == "ClusterIP" and spec.get("externalIPs")):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if kind != "ExternalName":
            spec.setdefault("internalTrafficPolicy", "Cluster")
            _default_families(spec)
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        self.default_status(new)

    def default_status(self, new: Object) -> None:
        balancer = section(section(new, "status"), "loadBalancer")
        if (new.get("spec") or {}).get("type") == "LoadBalancer":
            for ingress in balancer.get("ingress") or ():
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {"loadBalancer": {}}
        if new["spec"].get("clusterIP") == "None":
            new["spec"]["clusterIPs"] = ["None"]

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        keep(new, old, "status")
        spec, before = new["spec"], old["spec"]
        if spec["type"] != "ExternalName" and before["type"] != "ExternalName":
            for key in _KEPT:
                if not spec.get(key):
                    keep(spec, before, key)
        if spec["type"] in _WITH_NODE_PORTS:
            _keep_node_ports(spec, before)
        if spec["type"] != before["type"]:
            _drop_of_other_type(spec, before)

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


def _default_families(spec: Object) -> None:
    """Of a cluster with IPv4 services. Endpoints without a selector may be of both families (alloc.go)."""
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _keep_node_ports(spec: Object, before: Object) -> None:
    old_ports = {_port_key(port): port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        number = old_ports.get(_port_key(port))
        if number and not port.get("nodePort"):
            port["nodePort"] = number


def _drop_of_other_type(spec: Object, before: Object) -> None:
    """dropTypeDependentFields (strategy.go): what was allocated for the old type goes, unless the client changed it."""
    kind = spec["type"]
    gone: list[str] = []
    if kind == "ExternalName":
        gone += [*_KEPT, "internalTrafficPolicy"]
    if kind not in _WITH_NODE_PORTS:
        numbers = [port.get("nodePort") for port in spec.get("ports") or ()]
        if numbers == [port.get("nodePort") for port in before.get("ports") or ()]:
            for port in spec.get("ports") or ():
                port.pop("nodePort", None)
        if not spec.get("externalIPs"):
            gone.append("externalTrafficPolicy")
    if kind != "LoadBalancer":
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"]
    for key in gone:
        if spec.get(key) == before.get(key):
            spec.pop(key, None)


def _port_key(port: Object) -> tuple[object, object]:
    return port.get("port"), port.get("protocol", "TCP")
