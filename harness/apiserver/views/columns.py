"""What a Table shows of each kind: column definitions, and the cells of one object.

A printer takes the decoded object and the time and gives the cells in order of the columns. Kinds without one show
their name and when they were created, as upstream's default convertor does (as/registry/rest/table.go).
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from harness.apiserver.customresources.columns import printer_of
from harness.apiserver.resources import Resource
from harness.apiserver.views.accesscells import ACCESS
from harness.apiserver.views.ages import since
from harness.apiserver.views.networkcells import NETWORK
from harness.apiserver.views.podcells import pod_cells
from harness.apiserver.views.printer import AGE as _AGE
from harness.apiserver.views.printer import AGE_TEXT as _AGE_TEXT
from harness.apiserver.views.printer import NAME as _NAME
from harness.apiserver.views.printer import NAME_TEXT as _NAME_TEXT
from harness.apiserver.views.printer import NONE as _NONE
from harness.apiserver.views.printer import Cells, Object, Printer
from harness.apiserver.views.printer import age as _age
from harness.apiserver.views.printer import column as _column
from harness.apiserver.views.printer import named as _named
from harness.apiserver.views.storagecells import STORAGE
from harness.apiserver.views.workloadcells import WORKLOADS

_UNKNOWN = "<unknown>"
_ROLE = "node-role.kubernetes.io/"


def _node(obj: Object, now: float) -> Cells:
    status, meta = obj.get("status") or {}, obj["metadata"]
    ready = [item for item in status.get("conditions") or () if item.get("type") == "Ready"]
    shown = ["Ready" if item.get("status") == "True" else "NotReady" for item in ready] or ["Unknown"]
    if (obj.get("spec") or {}).get("unschedulable"):
        shown.append("SchedulingDisabled")
    labels = meta.get("labels") or {}
    roles = sorted(
        {key[len(_ROLE) :] for key in labels if key.startswith(_ROLE) and len(key) > len(_ROLE)}
        | ({labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set())
    )
    addresses: dict[str, str] = {}
    for address in status.get("addresses") or ():
        addresses.setdefault(address.get("type", ""), address.get("address", ""))
    info = status.get("nodeInfo") or {}
    return [
        meta["name"],
        ",".join(shown),
        ",".join(roles) or _NONE,
        _age(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", _NONE),
        addresses.get("ExternalIP", _NONE),
        info.get("osImage") or _UNKNOWN,
        info.get("kernelVersion") or _UNKNOWN,
        info.get("containerRuntimeVersion") or _UNKNOWN,
    ]


def _service(obj: Object, now: float) -> Cells:
    spec = obj.get("spec") or {}
    ports = [
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in spec.get("ports") or ()
    ]
    kind = spec.get("type", "")
    external = list(spec.get("externalIPs") or ())
    if kind == "ExternalName":
        external = [spec.get("externalName", "")]
    elif kind == "LoadBalancer":
        ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        external = [item.get("ip") or item.get("hostname", "") for item in ingress] + external
        external = external or ["<pending>"]
    selector = spec.get("selector") or {}
    return [
        obj["metadata"]["name"],
        kind,
        spec.get("clusterIP") or _NONE,
        ",".join(external) or _NONE,
        ",".join(ports) or _NONE,
        _age(obj, now),
        ",".join(f"{key}={selector[key]}" for key in sorted(selector)) or _NONE,
    ]


def _event(obj: Object, now: float) -> Cells:
    involved, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    series = obj.get("series") or {}
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(series.get("lastObservedTime"), now) if series else since(obj.get("lastTimestamp"), now)
    count = series.get("count") or obj.get("count") or 1
    origin = [
        part
        for part in (source.get("component") or obj.get("reportingComponent"), source.get("host"))
        if part
    ]
    kind = str(involved.get("kind", "")).lower()
    return [
        last if last != _UNKNOWN else first,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{involved['name']}" if involved.get("name") else kind,
        involved.get("fieldPath", ""),
        ", ".join(origin),
        str(obj.get("message", "")).strip(),
        first,
        count,
        obj["metadata"]["name"],
    ]


def _lease(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity", ""), _age(obj, now)]


def _csi_driver(obj: Object, now: float) -> Cells:
    spec = obj.get("spec") or {}
    tokens = ",".join(item.get("audience", "") for item in spec.get("tokenRequests") or ())
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        tokens or "<unset>",
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()),
        _age(obj, now),
    ]


_PRINTERS: dict[str, Printer] = {
    "pods": Printer(
        [
            _NAME,
            _column("Ready", text="The aggregate readiness state of this pod for accepting traffic."),
            _column("Status", text="The aggregate status of the containers in this pod."),
            _column(
                "Restarts",
                text="The number of times the containers in this pod have been restarted and when.",
            ),
            _AGE,
            _column("IP", priority=1, text="podIP address allocated to the pod. Empty if not yet allocated."),
            _column("Node", priority=1, text="NodeName indicates in which node this pod is scheduled."),
            _column("Nominated Node", priority=1, text="The node that a preempting pod is to run on."),
            _column(
                "Readiness Gates", priority=1, text="If specified, all of them are evaluated for readiness."
            ),
        ],
        pod_cells,
    ),
    "nodes": Printer(
        [
            _NAME,
            _column("Status", text="The status of the node"),
            _column("Roles", text="The roles of the node"),
            _AGE,
            _column("Version", text="Kubelet Version reported by the node."),
            _column("Internal-IP", priority=1, text="Addresses reachable to the node."),
            _column("External-IP", priority=1, text="Addresses reachable to the node."),
            _column("OS-Image", priority=1, text="OS Image reported by the node."),
            _column("Kernel-Version", priority=1, text="Kernel Version reported by the node."),
            _column("Container-Runtime", priority=1, text="ContainerRuntime Version reported by the node."),
        ],
        _node,
    ),
    "namespaces": Printer(
        [_NAME, _column("Status", text="The status of the namespace"), _AGE],
        _named(lambda obj: (obj.get("status") or {}).get("phase", "")),
    ),
    "secrets": Printer(
        [
            _NAME,
            _column("Type", text="Used to facilitate programmatic handling of secret data."),
            _column("Data", text="The number of keys of secret data."),
            _AGE,
        ],
        _named(lambda obj: obj.get("type", ""), lambda obj: len(obj.get("data") or ())),
    ),
    "configmaps": Printer(
        [_NAME, _column("Data", text="The number of keys of configuration data."), _AGE],
        _named(lambda obj: len(obj.get("data") or ()) + len(obj.get("binaryData") or ())),
    ),
    "serviceaccounts": Printer(
        [_NAME, _column("Secrets", text="The number of secrets that pods of this account may mount."), _AGE],
        _named(lambda obj: len(obj.get("secrets") or ())),
    ),
    "services": Printer(
        [
            _NAME,
            _column("Type", text="How the Service is exposed."),
            _column("Cluster-IP", text="The IP address of the service."),
            _column(
                "External-IP", text="IP addresses at which nodes in the cluster also accept traffic for it."
            ),
            _column("Port(s)", text="The list of ports that are exposed by this service."),
            _AGE,
            _column("Selector", priority=1, text="Route service traffic to pods with labels that match."),
        ],
        _service,
    ),
    "events": Printer(
        [
            _column(
                "Last Seen", text="The time at which the most recent occurrence of this event was recorded."
            ),
            _column(
                "Type", text="Type of this event (Normal, Warning), new types could be added in the future"
            ),
            _column("Reason", text="The reason for the transition into the object's current status."),
            _column("Object", text="The object that this event is about."),
            _column("Subobject", priority=1, text="The part of the object that this event is about."),
            _column("Source", priority=1, text="The component reporting this event."),
            _column("Message", text="A human-readable description of the status of this operation."),
            _column("First Seen", priority=1, text="The time at which the event was first recorded."),
            _column("Count", priority=1, text="The number of times this event has occurred."),
            _column("Name", priority=1, text=_NAME_TEXT, format_="name"),
        ],
        _event,
    ),
    "leases.coordination.k8s.io": Printer(
        [_NAME, _column("Holder", text="The identity of the holder of the current lease."), _AGE], _lease
    ),
    "csinodes.storage.k8s.io": Printer(
        [_NAME, _column("Drivers", "integer", text="The number of CSI drivers on the node"), _AGE],
        _named(lambda obj: len((obj.get("spec") or {}).get("drivers") or ())),
    ),
    "csidrivers.storage.k8s.io": Printer(
        [
            _NAME,
            _column("AttachRequired", "boolean", text="Whether attach has to be called."),
            _column("PodInfoOnMount", "boolean", text="Whether pod information is passed on mount."),
            _column("StorageCapacity", "boolean", text="Whether the driver reports storage capacity."),
            _column("TokenRequests", text="Audiences of the tokens that the driver wants."),
            _column("RequiresRepublish", "boolean", text="Whether volumes are published again periodically."),
            _column("Modes", text="Kinds of volumes that the driver supports."),
            _AGE,
        ],
        _csi_driver,
    ),
    "runtimeclasses.node.k8s.io": Printer(
        [_NAME, _column("Handler", text="The underlying runtime and configuration of this class."), _AGE],
        _named(lambda obj: obj.get("handler", "")),
    ),
}
_PRINTERS |= WORKLOADS | NETWORK | STORAGE | ACCESS
_DEFAULT = Printer(
    [_NAME, _column("Created At", "date", text=_AGE_TEXT)],
    lambda obj, now: [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp", _UNKNOWN)],
)


@lru_cache(maxsize=256)
def _custom(columns: bytes) -> Printer:
    return printer_of(msgspec.json.decode(columns))


def printer_for(resource: Resource) -> Printer:
    if resource.custom:
        return _custom(resource.custom)
    resource = resource.hub or resource
    return _PRINTERS.get(resource.group_resource, _DEFAULT)
