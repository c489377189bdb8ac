"""What one operation costs a server: microseconds of CPU of kube-apiserver and of etcd.

"Measured" means one kube-apiserver v1.36.2 with one etcd 3.6 on a 2-core x86-64 machine (2026-11-29), CPU time of each
process divided by operations, JSON over TLS; "derived" is arithmetic on measured figures; "estimate" is neither.
Absolute values age with machines, ratios between operations much less, so a scenario scales cores rather than these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.apiserver.model.figures import parse_figures


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds of CPU. `..._etcd_us` is etcd's share of the field before it; the rest is kube-apiserver's."""

    # Writes, measured; each includes what the server that takes the write does to apply it to its own watch cache.
    create_pod_us: float = 880.0  # with one secret volume
    create_pod_etcd_us: float = 220.0
    bind_pod_us: float = 755.0  # POST pods/binding
    bind_pod_etcd_us: float = 210.0
    patch_status_us: float = 1310.0  # PATCH pods/status, strategic merge, as the pod's node
    patch_status_etcd_us: float = 255.0
    create_event_us: float = 490.0
    create_event_etcd_us: float = 170.0
    create_object_us: float = 600.0  # a configmap of 500 bytes; stands for every other kind
    create_object_etcd_us: float = 180.0
    create_lease_us: float = 550.0
    create_lease_etcd_us: float = 200.0
    update_lease_us: float = 560.0  # stands for every update of a small object
    update_lease_etcd_us: float = 137.0
    # Writes, not measured alone.
    create_token_us: float = 700.0  # derived: the published 5,000-node run in these units
    create_token_etcd_us: float = 254.0  # derived: reads service account and pod, two consistent gets
    delete_object_us: float = 560.0  # estimate: as an update, one read and one write
    delete_object_etcd_us: float = 200.0  # estimate

    # Reads, measured.
    get_cached_us: float = 238.0  # resourceVersion=0, as a node (275 as an impersonating admin)
    get_consistent_us: float = 360.0
    get_consistent_etcd_us: float = 127.0
    list_us: float = 273.0  # by metadata.name, resourceVersion=0: a list without its objects
    list_consistent_extra_us: float = 85.0  # derived: consistent get less cached get as admin, 360 - 275
    list_consistent_etcd_us: float = 127.0  # derived: one quorum read of the revision, as a consistent get
    list_per_pod_us: float = 25.0  # JSON; a pod of about 2 KB stands for pods and nodes
    list_per_pod_protobuf_us: float = 13.0
    list_per_pod_paged_us: float = 24.0  # pages of 500, exact
    list_per_pod_etcd_us: float = 0.5  # "under 1", where the list is read from etcd
    list_per_object_us: float = (
        8.0  # estimate: a third of a pod, as secrets, configmaps and leases are in bytes
    )
    gzip_kib_us: float = (
        4.0  # estimate: zlib at level 1 took this for a list of 2,000 pods, 258 MB/s, on the same
    )
    # kind of machine; paid for each answer of more than 128 KiB to a client that asks for gzip, as client-go does
    scan_per_object_us: float = (
        0.2  # estimate: copying and sorting the whole store for a pods watch-list with
    )
    # spec.nodeName (storage/cacher/watch_cache_interval.go:140-180), a comparison sort of pointers

    # Watches, measured over HTTP/2: 10,500 watch-lists of single secrets on 300 connections.
    watch_open_us: float = 418.0  # one object sent; 730 over HTTP/1.1 without its connection
    watch_open_etcd_us: float = 217.0  # a quorum read of the revision; over HTTP/1.1
    watch_list_per_pod_us: float = 33.0
    watch_list_per_object_us: float = 10.0  # estimate: as list_per_object_us, in proportion
    watch_event_us: float = 38.0  # one event to one watcher
    watch_event_http1_us: float = 20.0
    watch_filter_us: float = (
        1.5  # estimate: one event to one watcher that does not want it: a goroutine woken by its
    )
    # channel, labels and fields of the object and of the one before matched; watchers found by index pay none
    watch_idle_us: float = 1.0  # each second, for each open watch at rest

    # Connections, measured.
    connect_us: float = 1008.0  # derived: new TLS connection and one request, 1283, less the request, 275

    # Parts of the above, and refusals: estimates where not said.
    filters_us: float = 100.0  # request info to authorization; the first part of every request's cost
    discovery_us: float = 200.0  # /version, /api, /apis, health, anything that is not a resource
    forbidden_us: float = (
        130.0  # a request refused after its filters, filters included: a cached get less its body
    )
    rejected_us: float = 60.0  # a request refused by flow control: authentication, classification, 429
    graph_update_us: float = (
        15.0  # node authorizer: edges of one pod, under its write lock; beside the binding's cost
    )
    check_per_object_us: float = 10.0  # estimate: consistency check, an object of etcd's decoded and hashed
    cache_event_us: float = 60.0  # another server's write decoded and applied to this one's cache
    replica_etcd_us: float = (
        200.0  # derived: a write of another server, "about 0.2 ms" of three masters worth 2.3
    )

    @classmethod
    def parse(cls, mapping: Mapping[str, float]) -> Costs:
        """Defaults with the given fields replaced; raises ConfigError on an unknown key or a value that is no cost."""
        return parse_figures(cls, "costs", mapping, 1e9)


# (verb, resource, subresource) of writes that have a measured row of their own.
_WRITES: dict[tuple[str, str, str], str] = {
    ("create", "pods", ""): "create_pod",
    ("create", "pods", "binding"): "bind_pod",
    ("create", "bindings", ""): "bind_pod",
    ("create", "pods", "eviction"): "delete_object",
    ("create", "events", ""): "create_event",
    ("create", "leases", ""): "create_lease",
    ("create", "serviceaccounts", "token"): "create_token",
    ("patch", "events", ""): "create_event",
    ("update", "leases", ""): "update_lease",
    ("patch", "leases", ""): "update_lease",
}
_WRITE_VERBS = {
    "create": "create_object",
    "update": "update_lease",
    "patch": "patch_status",
    "delete": "delete_object",
    "deletecollection": "delete_object",
}
# Questions that are answered from memory and stored nowhere.
_REVIEWS = frozenset(
    {
        *("localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
        *("selfsubjectreviews", "subjectaccessreviews", "tokenreviews"),
    }
)
_LARGE = frozenset({"pods", "nodes"})  # objects of the size that the measured pod has


def operation_cost(
    costs: Costs,
    verb: str,
    resource: str,
    subresource: str = "",
    objects: int = 1,
    *,
    consistent: bool = False,
    from_etcd: bool = False,
    protobuf: bool = False,
    scanned: int = 0,
) -> tuple[float, float]:
    """Microseconds of (apiserver, etcd) for one request, filters included.

    `objects` are those returned (list), sent at first (watch) or deleted (deletecollection). `consistent`: the read
    asks etcd for the current revision. `from_etcd`: the objects themselves come from etcd. `scanned`: objects that a
    watch-list sorted without sending them. An unknown verb costs what discovery does.
    """
    if verb == "get":
        if consistent:
            return costs.get_consistent_us, costs.get_consistent_etcd_us
        return costs.get_cached_us, 0.0
    if verb == "list":
        return _list_cost(costs, resource in _LARGE, objects, consistent, from_etcd, protobuf)
    if verb == "watch":
        sent = costs.watch_open_us + initial_cost_us(costs, resource, objects, scanned)
        return sent, costs.watch_open_etcd_us if consistent else 0.0
    if resource in _REVIEWS:
        return costs.get_cached_us, 0.0
    row = _WRITES.get((verb, resource, subresource)) or _WRITE_VERBS.get(verb)
    if row is None:
        return costs.discovery_us, 0.0
    times = max(1, objects) if verb == "deletecollection" else 1
    cost: float = getattr(costs, row + "_us")
    etcd: float = getattr(costs, row + "_etcd_us")
    return cost * times, etcd * times


def initial_cost_us(costs: Costs, resource: str, objects: int, scanned: int = 0) -> float:
    """What the initial events of a watch add to `Costs.watch_open_us`, whose measured row sent one object already."""
    each = costs.watch_list_per_pod_us if resource in _LARGE else costs.watch_list_per_object_us
    return each * max(0, objects - 1) + costs.scan_per_object_us * scanned


def _list_cost(
    costs: Costs, large: bool, objects: int, consistent: bool, from_etcd: bool, protobuf: bool
) -> tuple[float, float]:
    each = costs.list_per_pod_us if large else costs.list_per_object_us
    if protobuf:
        each *= costs.list_per_pod_protobuf_us / costs.list_per_pod_us
    elif from_etcd:
        each *= costs.list_per_pod_paged_us / costs.list_per_pod_us
    cost, etcd = costs.list_us + each * objects, 0.0
    if consistent or from_etcd:
        cost += costs.list_consistent_extra_us
        etcd = costs.list_consistent_etcd_us
    if from_etcd:
        etcd += costs.list_per_pod_etcd_us * objects
    return cost, etcd
