"""What each kind's objects look like when they are stored: defaults, validation, what an update may change.

One module for each family of kinds; a `Strategy` is what upstream calls a RESTStrategy together with the defaulting
functions of the versioned type (kk/pkg/registry/*/strategy.go, kk/pkg/apis/*/v1/defaults.go, v1.36.2). Everything here
works on decoded JSON in place and knows neither the store nor requests; a kind without a module of its own gets the
plain `Strategy`.
"""

from __future__ import annotations

from harness.apiserver.customresources.definition import DefinitionStrategy
from harness.apiserver.resources import Resource
from harness.apiserver.strategies.access import BindingStrategy, ClusterRoleStrategy, RoleStrategy
from harness.apiserver.strategies.apps import (
    ControllerRevisionStrategy,
    DaemonSetStrategy,
    DeploymentStrategy,
    PodTemplateStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
    StatefulSetStrategy,
)
from harness.apiserver.strategies.base import Context, Strategy
from harness.apiserver.strategies.batch import CronJobStrategy, JobStrategy
from harness.apiserver.strategies.certificates import CertificateSigningRequestStrategy
from harness.apiserver.strategies.core import (
    ConfigMapStrategy,
    NamespaceStrategy,
    NodeStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from harness.apiserver.strategies.devices import (
    DeviceClassStrategy,
    ResourceClaimStrategy,
    ResourceClaimTemplateStrategy,
    ResourceSliceStrategy,
)
from harness.apiserver.strategies.events import EventStrategy, EventsV1Strategy
from harness.apiserver.strategies.flowcontrol import FlowSchemaStrategy, PriorityLevelStrategy
from harness.apiserver.strategies.network import (
    EndpointSliceStrategy,
    EndpointsStrategy,
    IngressClassStrategy,
    IngressStrategy,
    IPAddressStrategy,
    NetworkPolicyStrategy,
    ServiceCIDRStrategy,
)
from harness.apiserver.strategies.pod import PodStrategy
from harness.apiserver.strategies.policies import (
    AutoscalerStrategy,
    DisruptionBudgetStrategy,
    LimitRangeStrategy,
    PriorityClassStrategy,
    ResourceQuotaStrategy,
)
from harness.apiserver.strategies.service import ServiceStrategy
from harness.apiserver.strategies.storage import (
    CSIDriverStrategy,
    CSINodeStrategy,
    LeaseStrategy,
    RuntimeClassStrategy,
)
from harness.apiserver.strategies.storageclasses import (
    CSIStorageCapacityStrategy,
    StorageClassStrategy,
    VolumeAttachmentStrategy,
    VolumeAttributesClassStrategy,
)
from harness.apiserver.strategies.volumes import PersistentVolumeClaimStrategy, PersistentVolumeStrategy
from harness.apiserver.strategies.webhooks import (
    AdmissionBindingStrategy,
    AdmissionPolicyStrategy,
    WebhookStrategy,
)

_BY_RESOURCE: dict[str, type[Strategy]] = {
    "configmaps": ConfigMapStrategy,
    "events": EventStrategy,
    "namespaces": NamespaceStrategy,
    "nodes": NodeStrategy,
    "pods": PodStrategy,
    "secrets": SecretStrategy,
    "serviceaccounts": ServiceAccountStrategy,
    "services": ServiceStrategy,
    "leases.coordination.k8s.io": LeaseStrategy,
    "csinodes.storage.k8s.io": CSINodeStrategy,
    "csidrivers.storage.k8s.io": CSIDriverStrategy,
    "runtimeclasses.node.k8s.io": RuntimeClassStrategy,
    "persistentvolumes": PersistentVolumeStrategy,
    "persistentvolumeclaims": PersistentVolumeClaimStrategy,
    "storageclasses.storage.k8s.io": StorageClassStrategy,
    "volumeattachments.storage.k8s.io": VolumeAttachmentStrategy,
    "volumeattributesclasses.storage.k8s.io": VolumeAttributesClassStrategy,
    "csistoragecapacities.storage.k8s.io": CSIStorageCapacityStrategy,
    "roles.rbac.authorization.k8s.io": RoleStrategy,
    "clusterroles.rbac.authorization.k8s.io": ClusterRoleStrategy,
    "rolebindings.rbac.authorization.k8s.io": BindingStrategy,
    "clusterrolebindings.rbac.authorization.k8s.io": BindingStrategy,
    "certificatesigningrequests.certificates.k8s.io": CertificateSigningRequestStrategy,
    "flowschemas.flowcontrol.apiserver.k8s.io": FlowSchemaStrategy,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": PriorityLevelStrategy,
    "deployments.apps": DeploymentStrategy,
    "replicasets.apps": ReplicaSetStrategy,
    "statefulsets.apps": StatefulSetStrategy,
    "daemonsets.apps": DaemonSetStrategy,
    "controllerrevisions.apps": ControllerRevisionStrategy,
    "replicationcontrollers": ReplicationControllerStrategy,
    "podtemplates": PodTemplateStrategy,
    "jobs.batch": JobStrategy,
    "cronjobs.batch": CronJobStrategy,
    "limitranges": LimitRangeStrategy,
    "resourcequotas": ResourceQuotaStrategy,
    "poddisruptionbudgets.policy": DisruptionBudgetStrategy,
    "horizontalpodautoscalers.autoscaling": AutoscalerStrategy,
    "priorityclasses.scheduling.k8s.io": PriorityClassStrategy,
    "endpoints": EndpointsStrategy,
    "endpointslices.discovery.k8s.io": EndpointSliceStrategy,
    "networkpolicies.networking.k8s.io": NetworkPolicyStrategy,
    "ingresses.networking.k8s.io": IngressStrategy,
    "ingressclasses.networking.k8s.io": IngressClassStrategy,
    "ipaddresses.networking.k8s.io": IPAddressStrategy,
    "servicecidrs.networking.k8s.io": ServiceCIDRStrategy,
    "resourceclaims.resource.k8s.io": ResourceClaimStrategy,
    "resourceclaimtemplates.resource.k8s.io": ResourceClaimTemplateStrategy,
    "resourceslices.resource.k8s.io": ResourceSliceStrategy,
    "deviceclasses.resource.k8s.io": DeviceClassStrategy,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": WebhookStrategy,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": WebhookStrategy,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": AdmissionPolicyStrategy,
    "validatingadmissionpolicies.admissionregistration.k8s.io": AdmissionPolicyStrategy,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": AdmissionBindingStrategy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": AdmissionBindingStrategy,
    "customresourcedefinitions.apiextensions.k8s.io": DefinitionStrategy,
    "events.events.k8s.io": EventsV1Strategy,
}


def strategy_for(resource: Resource) -> Strategy:
    """Of another version of a stored resource: its own rules on objects in the form that is stored."""
    return _BY_RESOURCE.get(resource.group_resource, Strategy)(resource.hub or resource)


__all__ = ["Context", "Strategy", "strategy_for"]
