"""The resources that the emulated apiserver serves, one row each: adding a resource is adding a row."""

from __future__ import annotations

import msgspec

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Resource(msgspec.Struct, frozen=True):
    """One resource.

    `selectable` are the fields, as dotted paths, that field selectors accept beside metadata.name and
    metadata.namespace; `index` is the one by which watches are found (pods: spec.nodeName). `cached` False means
    reads and watches go to the store, as kube-apiserver does for events.
    """

    group: str
    version: str
    resource: str
    kind: str
    singular: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    selectable: tuple[str, ...] = ()
    index: str = ""
    cached: bool = True
    verbs: tuple[str, ...] = ALL_VERBS

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """As in messages and metrics: ``pods``, ``leases.coordination.k8s.io``."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def prefix(self) -> str:
        """Where the store keeps it, with a final slash, as kube-apiserver lays out etcd."""
        middle = f"{self.group}/" if self.group else ""
        return f"/registry/{middle}{self.resource}/"

    def key(self, namespace: str | None, name: str) -> str:
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name


RESOURCES: tuple[Resource, ...] = (
    Resource(
        "",
        "v1",
        "namespaces",
        "Namespace",
        "namespace",
        namespaced=False,
        short_names=("ns",),
        subresources=("finalize", "status"),
        selectable=("status.phase",),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    Resource(
        "",
        "v1",
        "nodes",
        "Node",
        "node",
        namespaced=False,
        short_names=("no",),
        subresources=("status",),
        selectable=("spec.unschedulable",),
    ),
    Resource(
        "",
        "v1",
        "pods",
        "Pod",
        "pod",
        short_names=("po",),
        categories=("all",),
        subresources=("binding", "eviction", "status"),
        selectable=(
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
        ),
        index="spec.nodeName",
    ),
    Resource("", "v1", "secrets", "Secret", "secret", selectable=("type",)),
    Resource("", "v1", "configmaps", "ConfigMap", "configmap", short_names=("cm",)),
    Resource(
        "",
        "v1",
        "services",
        "Service",
        "service",
        short_names=("svc",),
        categories=("all",),
        subresources=("status",),
        selectable=("spec.clusterIP", "spec.type"),
    ),
    Resource(
        "",
        "v1",
        "serviceaccounts",
        "ServiceAccount",
        "serviceaccount",
        short_names=("sa",),
        subresources=("token",),
    ),
    Resource(
        "",
        "v1",
        "events",
        "Event",
        "event",
        short_names=("ev",),
        selectable=(
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ),
        cached=False,
    ),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", "lease"),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", "csinode", namespaced=False),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", "csidriver", namespaced=False),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "runtimeclass", namespaced=False),
)
