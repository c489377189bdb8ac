"""Endpoints and their slices, network policies, ingresses, and the addresses of services.

kk/pkg/apis/{core,discovery,networking}/v1/defaults.go and validation, kk/pkg/registry/{core/endpoint,discovery,
networking}/*/strategy.go.
"""

from __future__ import annotations

import ipaddress

from harness.apiserver.apierrors import FieldError, invalid_value, not_supported, required
from harness.apiserver.strategies.apps import WorkloadStrategy
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, section

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_POLICY_TYPES = ("Egress", "Ingress")
_MAX_ENDPOINTS = 1000
_MAX_ADDRESSES = 100


class EndpointsStrategy(Strategy):
    fields = ("subsets",)
    create_on_update = True

    def default(self, new: Object) -> None:
        for subset in new.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")
            drop_empty(subset, "addresses", "notReadyAddresses", "ports")
        drop_empty(new, "subsets")

    def validate(self, new: Object) -> list[FieldError]:
        errors = []
        for index, subset in enumerate(new.get("subsets") or ()):
            at = f"subsets[{index}]"
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                errors.append(required(at, "must specify `addresses` or `notReadyAddresses`"))
            for number, address in enumerate(subset.get("addresses") or ()):
                errors += address_errors(address.get("ip", ""), f"{at}.addresses[{number}].ip")
            for number, port in enumerate(subset.get("ports") or ()):
                errors += _port_errors(port, f"{at}.ports[{number}]")
        return errors


def address_errors(text: str, path: str) -> list[FieldError]:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return [invalid_value(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def _port_errors(port: Object, path: str) -> list[FieldError]:
    errors = []
    number = port.get("port")
    if number is not None and not 0 < number < 65536:
        errors.append(invalid_value(f"{path}.port", number, "must be between 1 and 65535, inclusive"))
    if port["protocol"] not in _PROTOCOLS:
        errors.append(not_supported(f"{path}.protocol", port["protocol"], _PROTOCOLS))
    return errors


class EndpointSliceStrategy(Strategy):
    """The generation counts changes of everything but metadata, and of labels."""

    fields = ("addressType", "endpoints", "ports")
    generations = True

    def default(self, new: Object) -> None:
        new.setdefault("addressType", "")
        for endpoint in new.setdefault("endpoints", None) or ():
            section(endpoint, "conditions")
        for port in new.setdefault("ports", None) or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def changed(self, new: Object, old: Object) -> bool:
        if any(new.get(key) != old.get(key) for key in self.fields):
            return True
        return (new["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {})

    def validate(self, new: Object) -> list[FieldError]:
        kind, endpoints = new["addressType"], new["endpoints"] or ()
        errors = []
        if not kind:
            errors.append(required("addressType"))
        elif kind not in _ADDRESS_TYPES:
            errors.append(not_supported("addressType", kind, _ADDRESS_TYPES))
        if len(endpoints) > _MAX_ENDPOINTS:
            errors.append(too_many("endpoints", len(endpoints), _MAX_ENDPOINTS))
        for index, endpoint in enumerate(endpoints):
            addresses = endpoint.get("addresses") or ()
            at = f"endpoints[{index}].addresses"
            if not addresses:
                errors.append(required(at, "must contain at least 1 address"))
            elif len(addresses) > _MAX_ADDRESSES:
                errors.append(too_many(at, len(addresses), _MAX_ADDRESSES))
            if kind in ("IPv4", "IPv6"):
                for number, address in enumerate(addresses):
                    errors += address_errors(address, f"{at}[{number}]")
        for index, port in enumerate(new["ports"] or ()):
            errors += _port_errors(port, f"ports[{index}]")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new["addressType"] != old["addressType"]:
            return [invalid_value("addressType", new["addressType"], "field is immutable")]
        return []


def too_many(path: str, count: int, limit: int) -> FieldError:
    return FieldError("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", path)


class NetworkPolicyStrategy(Strategy):
    fields = ("spec",)
    generations = True

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        section(spec, "podSelector")
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
        drop_empty(spec, "ingress", "egress")

    def validate(self, new: Object) -> list[FieldError]:
        types = new["spec"]["policyTypes"]
        return [
            not_supported(f"spec.policyTypes[{index}]", kind, _POLICY_TYPES)
            for index, kind in enumerate(types)
            if kind not in _POLICY_TYPES
        ]


class IngressStrategy(WorkloadStrategy):
    def default(self, new: Object) -> None:
        drop_empty(section(new, "spec"), "tls", "rules")
        self.default_status(new)

    def default_status(self, new: Object) -> None:
        section(section(new, "status"), "loadBalancer")

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {"loadBalancer": {}}

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        if not spec.get("rules") and spec.get("defaultBackend") is None:
            detail = "either `defaultBackend` or `rules` must be specified"
            return [invalid_value("spec", spec.get("rules") or [], detail)]
        errors = []
        for index, rule in enumerate(spec.get("rules") or ()):
            for number, path in enumerate((rule.get("http") or {}).get("paths") or ()):
                errors += _path_errors(path, f"spec.rules[{index}].http.paths[{number}]")
        return errors


def _path_errors(path: Object, at: str) -> list[FieldError]:
    kind, errors = path.get("pathType"), []
    if kind is None:
        errors.append(required(f"{at}.pathType", "pathType must be specified"))
    elif kind not in _PATH_TYPES:
        errors.append(not_supported(f"{at}.pathType", kind, _PATH_TYPES))
    elif kind != "ImplementationSpecific" and not path.get("path", "").startswith("/"):
        errors.append(invalid_value(f"{at}.path", path.get("path", ""), "must be an absolute path"))
    if not path.get("backend"):
        errors.append(required(f"{at}.backend", "port name or number is required"))
    return errors


class IngressClassStrategy(Strategy):
    fields = ("spec",)
    generations = True

    def default(self, new: Object) -> None:
        parameters = section(new, "spec").get("parameters")
        if parameters is not None:
            parameters.setdefault("scope", "Cluster")

    def validate(self, new: Object) -> list[FieldError]:
        return [] if new["spec"].get("controller") else [required("spec.controller")]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        after, before = new["spec"].get("controller"), old["spec"].get("controller")
        return [] if after == before else [invalid_value("spec.controller", after, "field is immutable")]


class IPAddressStrategy(Strategy):
    """The name is the address; what it belongs to does not change."""

    fields = ("spec",)

    def default(self, new: Object) -> None:
        section(new, "spec")

    def validate(self, new: Object) -> list[FieldError]:
        name, parent = new["metadata"]["name"], new["spec"].get("parentRef")
        errors = address_errors(name, "metadata.name")
        if not errors and str(ipaddress.ip_address(name)) != name:
            detail = f'must be in canonical form ("{ipaddress.ip_address(name)}")'
            errors.append(invalid_value("metadata.name", name, detail))
        if parent is None:
            return [*errors, required("spec.parentRef")]
        for field in ("resource", "name"):
            if not parent.get(field):
                errors.append(required(f"spec.parentRef.{field}"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new["spec"] != old["spec"]:
            parent = new["spec"].get("parentRef")
            return [invalid_value("spec.parentRef", parent, "field is immutable")]
        return []


class ServiceCIDRStrategy(WorkloadStrategy):
    generations = False

    def default(self, new: Object) -> None:
        section(new, "spec")
        self.default_status(new)

    def validate(self, new: Object) -> list[FieldError]:
        cidrs = new["spec"].get("cidrs") or []
        if not cidrs:
            return [required("spec.cidrs", "at least one CIDR required")]
        errors = []
        for index, text in enumerate(cidrs):
            try:
                ipaddress.ip_network(text)
            except ValueError:
                detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
                errors.append(invalid_value(f"spec.cidrs[{index}]", text, detail))
        return errors
