"""How lists and maps of Kubernetes' types merge: the markers +listType, +listMapKey, +structType and +mapType of
k8s.io/api v0.36 and apimachinery, as tables by Go type.

A list that is not named here is atomic, a map or struct is granular.
"""

from __future__ import annotations

_NAME = ("name",)
_CONDITIONS: dict[str, tuple[str, ...]] = {"conditions": ("type",)}
_CONTAINER: dict[str, tuple[str, ...]] = {
    "ports": ("containerPort", "protocol"),
    "env": _NAME,
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
}

# type: field: keys
MAP_LISTS: dict[str, dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            "CertificateSigningRequestStatus",
            "ComponentStatus",
            "CustomResourceDefinitionStatus",
            "APIServiceStatus",
            "DaemonSetStatus",
            "DeploymentStatus",
            "DeviceTaintRuleStatus",
            "AllocatedDeviceStatus",
            "FlowSchemaStatus",
            "HorizontalPodAutoscalerStatus",
            "NamespaceStatus",
            "PersistentVolumeClaimStatus",
            "PodCertificateRequestStatus",
            "PodDisruptionBudgetStatus",
            "PriorityLevelConfigurationStatus",
            "ReplicaSetStatus",
            "ReplicationControllerStatus",
            "ServiceCIDRStatus",
            "ServiceStatus",
            "StatefulSetStatus",
            "StorageVersionMigrationStatus",
            "ValidatingAdmissionPolicyStatus",
        ),
        _CONDITIONS,
    ),
    "ObjectMeta": {"ownerReferences": ("uid",)},
    # core/v1
    "Container": _CONTAINER,
    "EphemeralContainer": _CONTAINER,
    "ContainerStatus": {"volumeMounts": ("mountPath",), "allocatedResourcesStatus": _NAME},
    "NodeStatus": {"conditions": ("type",), "addresses": ("type",)},
    "PodSpec": {
        **dict.fromkeys(
            (
                "containers",
                "ephemeralContainers",
                "evictionResponders",
                "imagePullSecrets",
                "initContainers",
                "resourceClaims",
                "schedulingGates",
                "volumes",
            ),
            _NAME,
        ),
        "hostAliases": ("ip",),
        "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    },
    "PodStatus": {
        "conditions": ("type",),
        "podIPs": ("ip",),
        "resourceClaimStatuses": _NAME,
        "volumeHealth": _NAME,
        "nodeAllocatableResourceClaimStatuses": ("resourceClaimName",),
    },
    "PodVolumeHealth": {"healthConditions": ("status", "reason")},
    "ResourceRequirements": {"claims": _NAME},
    "ResourceStatus": {"resources": ("resourceID",)},
    "ServiceAccount": {"secrets": _NAME},
    "ServiceSpec": {"ports": ("port", "protocol")},
    "VolumeHealthStatus": {"healthConditions": ("status", "reason")},
    # other groups
    "CSINodeSpec": {"drivers": _NAME},
    "CSINodeStatus": {"storageHealth": _NAME},
    "ResourceClaimStatus": {"reservedFor": ("uid",), "devices": ("driver", "device", "pool", "shareID")},
    "MutatingAdmissionPolicySpec": {"matchConditions": _NAME},
    "ValidatingAdmissionPolicySpec": {"matchConditions": _NAME, "variables": _NAME},
    "MutatingWebhook": {"matchConditions": _NAME},
    "MutatingWebhookConfiguration": {"webhooks": _NAME},
    "ValidatingWebhook": {"matchConditions": _NAME},
    "ValidatingWebhookConfiguration": {"webhooks": _NAME},
}

SETS: dict[str, frozenset[str]] = {
    "ObjectMeta": frozenset({"finalizers"}),
    "CSIDriverSpec": frozenset({"volumeLifecycleModes"}),
    "ContainerRestartRuleOnExitCodes": frozenset({"values"}),
    "Endpoint": frozenset({"addresses"}),
    "NodeSpec": frozenset({"podCIDRs"}),
    "NonResourcePolicyRule": frozenset({"verbs", "nonResourceURLs"}),
    "PodFailurePolicyOnExitCodesRequirement": frozenset({"values"}),
    "ResourcePolicyRule": frozenset({"verbs", "apiGroups", "resources", "namespaces"}),
    "UncountedTerminatedPods": frozenset({"succeeded", "failed"}),
    "ValidatingAdmissionPolicyBindingSpec": frozenset({"validationActions"}),
}

ATOMIC_TYPES = frozenset(
    {
        "ConfigMapKeySelector",
        "CrossVersionObjectReference",
        "EndpointAddress",
        "EndpointPort",
        "EvictionResponder",
        "FileKeySelector",
        "LabelSelector",
        "LocalObjectReference",
        "MatchResources",
        "NamedRuleWithOperations",
        "NodeSelector",
        "NodeSelectorTerm",
        "ObjectFieldSelector",
        "ObjectReference",
        "OwnerReference",
        "ParamKind",
        "ParamRef",
        "ResourceFieldSelector",
        "RoleRef",
        "ScopeSelector",
        "SecretKeySelector",
        "SecretReference",
        "ServiceBackendPort",
        "Subject",
        "TopologySelectorTerm",
        "TypedLocalObjectReference",
        "Variable",
    }
)
# Of an atomic type everywhere else.
GRANULAR_FIELDS = frozenset({("PersistentVolumeSpec", "claimRef")})
ATOMIC_MAPS = frozenset(
    {
        ("PodSpec", "nodeSelector"),
        ("ReplicationControllerSpec", "selector"),
        ("ServiceSpec", "selector"),
        ("Scheduling", "nodeSelector"),
    }
)
