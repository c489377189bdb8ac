"""The resources that the emulated apiserver serves, one row each: adding a resource is adding a row."""

from __future__ import annotations

import msgspec

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Resource(msgspec.Struct, frozen=True):
    """One resource.

    `selectable` are the fields, as dotted paths, that field selectors accept beside metadata.name and
    metadata.namespace; `index` is the one by which watches are found (pods: spec.nodeName). `cached` False means
    reads and watches go to the store, as kube-apiserver does for events. `stored` False: what is created is answered
    and forgotten (access reviews). `hub` is the row that is stored where this one is another version of it: one
    cache, one place in the store, objects converted at the boundary (`conversion`). `custom` are a custom
    resource's columns, as JSON, empty of what is built in.
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
    stored: bool = True
    hub: Resource | None = None
    custom: bytes = b""

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
        if self.hub is not None:
            return self.hub.prefix
        middle = f"{self.group}/" if self.group else ""
        return f"/registry/{middle}{self.resource}/"

    def key(self, namespace: str | None, name: str) -> str:
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name


def _review(group: str, resource: str, kind: str, namespaced: bool = False) -> Resource:
    """A question put by POST and answered at once: nothing is stored, so there is nothing else to do with it."""
    return Resource(
        group, "v1", resource, kind, kind.lower(), namespaced, cached=False, verbs=("create",), stored=False
    )


def _v1(
    group: str,
    resource: str,
    kind: str,
    short_names: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    selectable: tuple[str, ...] = (),
    *,
    namespaced: bool = True,
    categories: tuple[str, ...] = (),
) -> Resource:
    """A row of version v1, whose singular is its kind."""
    singular = kind.lower()
    return Resource(
        group,
        "v1",
        resource,
        kind,
        singular,
        namespaced,
        short_names,
        categories,
        subresources,
        selectable,
    )


_ALL = ("all",)  # the category that `kubectl get all` shows
_REFERENCE = ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
_EVENTS = Resource(
    "",
    "v1",
    "events",
    "Event",
    "event",
    short_names=("ev",),
    selectable=(
        *(f"involvedObject.{part}" for part in _REFERENCE),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    cached=False,
)
_AUTOSCALERS = Resource(
    "autoscaling",
    "v2",
    "horizontalpodautoscalers",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscaler",
    short_names=("hpa",),
    categories=_ALL,
    subresources=("status",),
)
EVENT_FIELDS = {
    **{f"regarding.{part}": f"involvedObject.{part}" for part in _REFERENCE},
    "reason": "reason",
    "reportingController": "reportingComponent",
    "type": "type",
}
"""What events of events.k8s.io are selected by, and the field of a core event that it is
(kk/pkg/apis/events/v1/conversion.go AddFieldLabelConversionsForEvent)."""


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
        subresources=(
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "resize",
            "status",
        ),
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
    _EVENTS,
    Resource("coordination.k8s.io", "v1", "leases", "Lease", "lease"),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", "csinode", namespaced=False),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", "csidriver", namespaced=False),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", "runtimeclass", namespaced=False),
    # ---- storage
    Resource(
        "",
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        "persistentvolume",
        namespaced=False,
        short_names=("pv",),
        subresources=("status",),
    ),
    Resource(
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        "persistentvolumeclaim",
        short_names=("pvc",),
        subresources=("status",),
    ),
    Resource(
        "storage.k8s.io",
        "v1",
        "storageclasses",
        "StorageClass",
        "storageclass",
        namespaced=False,
        short_names=("sc",),
    ),
    Resource(
        "storage.k8s.io",
        "v1",
        "volumeattachments",
        "VolumeAttachment",
        "volumeattachment",
        namespaced=False,
        subresources=("status",),
    ),
    Resource(
        "storage.k8s.io",
        "v1",
        "volumeattributesclasses",
        "VolumeAttributesClass",
        "volumeattributesclass",
        namespaced=False,
        short_names=("vac",),
    ),
    Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", "csistoragecapacity"),
    # ---- access
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", "role"),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", "rolebinding"),
    Resource(
        "rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", "clusterrole", namespaced=False
    ),
    Resource(
        "rbac.authorization.k8s.io",
        "v1",
        "clusterrolebindings",
        "ClusterRoleBinding",
        "clusterrolebinding",
        namespaced=False,
    ),
    Resource(
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        "certificatesigningrequest",
        namespaced=False,
        short_names=("csr",),
        subresources=("approval", "status"),
        selectable=("spec.signerName",),
    ),
    Resource(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "flowschemas",
        "FlowSchema",
        "flowschema",
        namespaced=False,
        subresources=("status",),
    ),
    Resource(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "prioritylevelconfigurations",
        "PriorityLevelConfiguration",
        "prioritylevelconfiguration",
        namespaced=False,
        subresources=("status",),
    ),
    _review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    _review("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
    _review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    _review("authentication.k8s.io", "tokenreviews", "TokenReview"),
    # ---- workloads
    _v1(
        "apps",
        "deployments",
        "Deployment",
        short_names=("deploy",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _v1(
        "apps",
        "replicasets",
        "ReplicaSet",
        short_names=("rs",),
        categories=_ALL,
        subresources=("scale", "status"),
        selectable=("status.replicas",),
    ),
    _v1(
        "apps",
        "statefulsets",
        "StatefulSet",
        short_names=("sts",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _v1(
        "apps",
        "daemonsets",
        "DaemonSet",
        short_names=("ds",),
        categories=_ALL,
        subresources=("status",),
    ),
    _v1("apps", "controllerrevisions", "ControllerRevision"),
    _v1(
        "batch",
        "jobs",
        "Job",
        categories=_ALL,
        subresources=("status",),
        selectable=("status.successful",),
    ),
    _v1(
        "batch",
        "cronjobs",
        "CronJob",
        short_names=("cj",),
        categories=_ALL,
        subresources=("status",),
    ),
    _v1(
        "",
        "replicationcontrollers",
        "ReplicationController",
        short_names=("rc",),
        categories=_ALL,
        subresources=("scale", "status"),
        selectable=("status.replicas",),
    ),
    _v1("", "podtemplates", "PodTemplate"),
    _v1("", "limitranges", "LimitRange", short_names=("limits",)),
    _v1("", "resourcequotas", "ResourceQuota", short_names=("quota",), subresources=("status",)),
    _v1(
        "policy",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        short_names=("pdb",),
        subresources=("status",),
    ),
    _AUTOSCALERS,
    msgspec.structs.replace(_AUTOSCALERS, version="v1", hub=_AUTOSCALERS),
    _v1("scheduling.k8s.io", "priorityclasses", "PriorityClass", namespaced=False, short_names=("pc",)),
    # ---- network
    _v1("", "endpoints", "Endpoints", short_names=("ep",)),
    _v1("discovery.k8s.io", "endpointslices", "EndpointSlice"),
    _v1("networking.k8s.io", "networkpolicies", "NetworkPolicy", short_names=("netpol",)),
    _v1("networking.k8s.io", "ingresses", "Ingress", short_names=("ing",), subresources=("status",)),
    _v1("networking.k8s.io", "ingressclasses", "IngressClass", namespaced=False),
    _v1(
        "networking.k8s.io",
        "ipaddresses",
        "IPAddress",
        namespaced=False,
        short_names=("ip",),
        selectable=(
            "spec.parentRef.group",
            "spec.parentRef.name",
            "spec.parentRef.namespace",
            "spec.parentRef.resource",
        ),
    ),
    _v1("networking.k8s.io", "servicecidrs", "ServiceCIDR", namespaced=False, subresources=("status",)),
    # ---- devices
    _v1("resource.k8s.io", "resourceclaims", "ResourceClaim", subresources=("status",)),
    _v1("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    _v1(
        "resource.k8s.io",
        "resourceslices",
        "ResourceSlice",
        namespaced=False,
        selectable=("spec.driver", "spec.nodeName"),
    ),
    _v1("resource.k8s.io", "deviceclasses", "DeviceClass", namespaced=False),
    # ---- admission that clients configure: kept, not obeyed
    *(
        _v1("admissionregistration.k8s.io", resource, kind, namespaced=False, subresources=subresources)
        for resource, kind, subresources in (
            ("mutatingadmissionpolicies", "MutatingAdmissionPolicy", ()),
            ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", ()),
            ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", ()),
            ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", ("status",)),
            ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", ()),
            ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", ()),
        )
    ),
    # ---- definitions of custom resources
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "customresourcedefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=("status",),
    ),
    # ---- events in their newer form
    Resource(
        "events.k8s.io",
        "v1",
        "events",
        "Event",
        "event",
        short_names=("ev",),
        selectable=tuple(EVENT_FIELDS),
        cached=False,
        hub=_EVENTS,
    ),
)

NODE_PORTS = Resource(
    "",
    "v1",
    "servicenodeportallocations",
    "RangeAllocation",
    "servicenodeportallocation",
    namespaced=False,
    cached=False,
    verbs=(),
)
"""The node ports that services have, in one object that no client sees (kk/pkg/registry/core/rest)."""
