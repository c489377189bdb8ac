"""Tables of network kinds, devices and admission (kk/pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from harness.apiserver.views.printer import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    Object,
    Printer,
    age,
    column,
    named,
    some,
)
from harness.apiserver.views.workloadcells import selector_cell

_SHOWN = 3


def _endpoints(obj: Object) -> str:
    """formatEndpoints: addresses, with their ports where there are any."""
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [item.get("ip", "") for item in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        if not ports:
            found += addresses
        for port in ports:
            found += [f"{_bracketed(address)}:{port.get('port', 0)}" for address in addresses]
    return some(found, _SHOWN) if obj.get("subsets") else NONE


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _slice_ports(obj: Object) -> str:
    ports = [
        str(port["port"]) if port.get("port") is not None else port.get("name", "*")
        for port in obj.get("ports") or ()
    ]
    return some(ports, _SHOWN) or UNSET


def _slice_endpoints(obj: Object) -> str:
    addresses = [address for item in obj.get("endpoints") or () for address in item.get("addresses") or ()]
    return some(addresses, _SHOWN) or UNSET


def _hosts(obj: Object) -> str:
    rules = (obj.get("spec") or {}).get("rules") or []
    hosts = [rule["host"] for rule in rules[:_SHOWN] if rule.get("host")]
    if not hosts:
        return "*"
    return some(hosts, _SHOWN, len(rules)) if len(rules) > _SHOWN else ",".join(hosts)


def _addresses(obj: Object) -> str:
    balancer = (obj.get("status") or {}).get("loadBalancer") or {}
    found = {item.get("ip") or item.get("hostname", "") for item in balancer.get("ingress") or ()}
    return ",".join(sorted(found - {""}))


def _parameters(obj: Object) -> str:
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is None:
        return NONE
    group = f".{parameters['apiGroup']}" if "apiGroup" in parameters else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"


def _parent(obj: Object, now: float) -> Cells:
    parent = (obj.get("spec") or {}).get("parentRef")
    if parent is None:
        return [obj["metadata"]["name"], NONE]
    resource = parent.get("resource", "")
    if parent.get("group"):
        resource += f".{parent['group']}"
    parts = [resource, *([parent["namespace"]] if parent.get("namespace") else []), parent.get("name", "")]
    return [obj["metadata"]["name"], "/".join(parts)]


def _claim_state(obj: Object) -> str:
    """resourceClaimState (printers.go): what its status says, joined by commas."""
    status = obj.get("status") or {}
    states = ["deleted"] if "deletionTimestamp" in obj["metadata"] else []
    if status.get("allocation") is None:
        return ",".join([*states, "pending"])
    states.append("allocated")
    if status.get("reservedFor"):
        states.append("reserved")
    return ",".join(states)


def _param_kind(obj: Object) -> str:
    kind = (obj.get("spec") or {}).get("paramKind")
    return UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def _param_ref(obj: Object) -> str:
    reference = (obj.get("spec") or {}).get("paramRef") or {}
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    return UNSET if reference.get("selector") is None else selector_cell(reference["selector"])


def _in_spec(obj: Object, key: str) -> str:
    text: str = (obj.get("spec") or {}).get(key, "")
    return text


def _count(obj: Object, key: str) -> int:
    return len((obj.get("spec") or {}).get(key) or ())


def _slice(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    pool = spec.get("pool") or {}
    where = (spec.get("nodeName", ""), spec.get("driver", ""), pool.get("name", ""))
    return [obj["metadata"]["name"], *where, age(obj, now)]


_WEBHOOKS = Printer(
    [
        NAME,
        column(
            "Webhooks",
            "integer",
            text="Webhooks indicates the number of webhooks registered in this configuration",
        ),
        AGE,
    ],
    named(lambda obj: len(obj.get("webhooks") or ())),
)
_BINDINGS = Printer(
    [
        NAME,
        column("PolicyName", text="The policy that this binds."),
        column("ParamRef", text="The resource that parameterizes it."),
        AGE,
    ],
    named(lambda obj: _in_spec(obj, "policyName"), _param_ref),
)


def _policies(rules: str, shown: str) -> Printer:
    return Printer(
        [
            NAME,
            column(shown, "integer", text=f"The number of {rules} that the policy has."),
            column(
                "ParamKind",
                text="ParamKind specifies the kind of resources used to parameterize this policy",
            ),
            AGE,
        ],
        named(lambda obj: _count(obj, rules), _param_kind),
    )


_ONLY_AGE = Printer([NAME, AGE], named())
NETWORK: dict[str, Printer] = {
    "endpoints": Printer(
        [NAME, column("Endpoints", text="Addresses and ports that implement the service."), AGE],
        named(_endpoints),
    ),
    "endpointslices.discovery.k8s.io": Printer(
        [
            NAME,
            column("AddressType", text="The type of addresses that the slice carries."),
            column("Ports", text="The ports that each endpoint exposes."),
            column("Endpoints", text="The endpoints of the slice."),
            AGE,
        ],
        named(lambda obj: obj.get("addressType", ""), _slice_ports, _slice_endpoints),
    ),
    "networkpolicies.networking.k8s.io": Printer(
        [NAME, column("Pod-Selector", text="The pods that the policy is about."), AGE],
        named(lambda obj: selector_cell((obj.get("spec") or {}).get("podSelector"))),
    ),
    "ingresses.networking.k8s.io": Printer(
        [
            NAME,
            column(
                "Class",
                text="The name of the IngressClass resource that should be used for additional configuration",
            ),
            column("Hosts", text="Hosts that incoming requests are matched against before the ingress rule"),
            column("Address", text="Address is a list containing ingress points for the load-balancer"),
            column("Ports", text="Ports of TLS configurations that open"),
            AGE,
        ],
        named(
            lambda obj: _in_spec(obj, "ingressClassName") or NONE,
            _hosts,
            _addresses,
            lambda obj: "80, 443" if _count(obj, "tls") else "80",
        ),
    ),
    "ingressclasses.networking.k8s.io": Printer(
        [
            NAME,
            column("Controller", text="Controller that is responsible for handling this class"),
            column("Parameters", text="A reference to a resource with additional parameters"),
            AGE,
        ],
        named(lambda obj: _in_spec(obj, "controller"), _parameters),
    ),
    "ipaddresses.networking.k8s.io": Printer(
        [NAME, column("ParentRef", text="The object that the address belongs to.")], _parent
    ),
    "servicecidrs.networking.k8s.io": Printer(
        [NAME, column("CIDRs", text="Ranges that addresses of services come from."), AGE],
        named(lambda obj: ",".join((obj.get("spec") or {}).get("cidrs") or ())),
    ),
    "resourceclaims.resource.k8s.io": Printer(
        [
            NAME,
            column("State", text="A summary of the current state (allocated, pending, reserved, etc.)."),
            AGE,
        ],
        named(_claim_state),
    ),
    "resourceclaimtemplates.resource.k8s.io": _ONLY_AGE,
    "deviceclasses.resource.k8s.io": _ONLY_AGE,
    "resourceslices.resource.k8s.io": Printer(
        [
            NAME,
            column("Node", text="The node that offers the devices."),
            column("Driver", text="The driver that publishes them."),
            column("Pool", text="The pool that they belong to."),
            AGE,
        ],
        _slice,
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _policies("validations", "Validations"),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": _policies("mutations", "Mutations"),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDINGS,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDINGS,
}
