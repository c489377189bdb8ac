"""What Go calls the type of a field, as encoding/json's errors show it.

The models tell structs, lists and maps; which strings have a named type is this table, from k8s.io/api v0.36.
"""

from __future__ import annotations

from harness.apiserver.schema import models
from harness.apiserver.schema.tree import (
    BOOLEAN,
    BYTES,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    OBJECT,
    QUANTITY,
    STRING,
    TIME,
    Schema,
)

# named type: fields that are of it, or lists of it
_NAMED_STRINGS = {
    "AddressType": "EndpointSlice.addressType",
    "AllocationConfigSource": "DeviceAllocationConfiguration.source",
    "AppArmorProfileType": "AppArmorProfile.type",
    "AzureDataDiskCachingMode": "AzureDiskVolumeSource.cachingMode",
    "AzureDataDiskKind": "AzureDiskVolumeSource.kind",
    "Capability": "Capabilities.add Capabilities.drop",
    "CauseType": "StatusCause.reason",
    "CompletionMode": "JobSpec.completionMode",
    "ComponentConditionType": "ComponentCondition.type",
    "ConcurrencyPolicy": "CronJobSpec.concurrencyPolicy",
    "ConditionStatus": (
        "CertificateSigningRequestCondition.status ComponentCondition.status Condition.status "
        "CustomResourceDefinitionCondition.status DaemonSetCondition.status "
        "DeploymentCondition.status FlowSchemaCondition.status "
        "HorizontalPodAutoscalerCondition.status JobCondition.status NamespaceCondition.status "
        "NodeCondition.status PersistentVolumeClaimCondition.status PodCondition.status "
        "PodFailurePolicyOnPodConditionsPattern.status PriorityLevelConfigurationCondition.status "
        "ReplicaSetCondition.status ReplicationControllerCondition.status StatefulSetCondition.status "
        "TableRowCondition.status"
    ),
    "ContainerRestartPolicy": "Container.restartPolicy EphemeralContainer.restartPolicy",
    "ContainerRestartRuleAction": "ContainerRestartRule.action",
    "ContainerRestartRuleOnExitCodesOperator": "ContainerRestartRuleOnExitCodes.operator",
    "ConversionStrategyType": "CustomResourceConversion.strategy",
    "CoordinatedLeaseStrategy": "LeaseSpec.strategy",
    "CustomResourceDefinitionConditionType": "CustomResourceDefinitionCondition.type",
    "DNSPolicy": "PodSpec.dnsPolicy",
    "DaemonSetConditionType": "DaemonSetCondition.type",
    "DaemonSetUpdateStrategyType": "DaemonSetUpdateStrategy.type",
    "DeletionPropagation": "DeleteOptions.propagationPolicy",
    "DeploymentConditionType": "DeploymentCondition.type",
    "DeploymentStrategyType": "DeploymentStrategy.type",
    "DeviceAllocationMode": "DeviceSubRequest.allocationMode ExactDeviceRequest.allocationMode",
    "DeviceTaintEffect": "DeviceTaint.effect DeviceToleration.effect",
    "DeviceTolerationOperator": "DeviceToleration.operator",
    "FSGroupPolicy": "CSIDriverSpec.fsGroupPolicy",
    "FailurePolicyType": (
        "MutatingAdmissionPolicySpec.failurePolicy MutatingWebhook.failurePolicy "
        "ValidatingAdmissionPolicySpec.failurePolicy ValidatingWebhook.failurePolicy"
    ),
    "FieldSelectorOperator": "FieldSelectorRequirement.operator",
    "FinalizerName": "NamespaceSpec.finalizers",
    "FlowDistinguisherMethodType": "FlowDistinguisherMethod.type",
    "FlowSchemaConditionType": "FlowSchemaCondition.type",
    "FullyQualifiedName": (
        "DeviceConstraint.distinctAttribute DeviceConstraint.matchAttribute "
        "ResourceSliceSpec.partitionTypeAttribute"
    ),
    "GRPCProbeMode": "GRPCAction.mode",
    "HPAScalingPolicyType": "HPAScalingPolicy.type",
    "HTTPProtocol": "HTTPGetAction.protocol",
    "HorizontalPodAutoscalerConditionType": "HorizontalPodAutoscalerCondition.type",
    "HostPathType": "HostPathVolumeSource.type",
    "IPFamily": "ServiceSpec.ipFamilies",
    "IPFamilyPolicy": "ServiceSpec.ipFamilyPolicy",
    "IncludeObjectPolicy": "TableOptions.includeObject",
    "JobConditionType": "JobCondition.type",
    "KeyUsage": "CertificateSigningRequestSpec.usages",
    "LabelSelectorOperator": "LabelSelectorRequirement.operator",
    "LimitResponseType": "LimitResponse.type",
    "LimitType": "LimitRangeItem.type",
    "LoadBalancerIPMode": "LoadBalancerIngress.ipMode",
    "ManagedFieldsOperationType": "ManagedFieldsEntry.operation",
    "MatchPolicyType": "MatchResources.matchPolicy MutatingWebhook.matchPolicy ValidatingWebhook.matchPolicy",
    "MetricSourceType": "MetricSpec.type MetricStatus.type",
    "MetricTargetType": "MetricTarget.type",
    "MountPropagationMode": "VolumeMount.mountPropagation",
    "NamespaceConditionType": "NamespaceCondition.type",
    "NamespacePhase": "NamespaceStatus.phase",
    "NodeAddressType": "NodeAddress.type",
    "NodeConditionType": "NodeCondition.type",
    "NodeInclusionPolicy": (
        "TopologySpreadConstraint.nodeAffinityPolicy TopologySpreadConstraint.nodeTaintsPolicy"
    ),
    "NodePhase": "NodeStatus.phase",
    "NodeSelectorOperator": "NodeSelectorRequirement.operator",
    "OSName": "PodOS.name",
    "OperationType": "RuleWithOperations.operations",
    "ParameterNotFoundActionType": "ParamRef.parameterNotFoundAction",
    "PatchType": "Mutation.patchType",
    "PathType": "HTTPIngressPath.pathType",
    "PersistentVolumeAccessMode": (
        "PersistentVolumeClaimSpec.accessModes PersistentVolumeClaimStatus.accessModes "
        "PersistentVolumeSpec.accessModes StorageHealthCondition.accessMode"
    ),
    "PersistentVolumeClaimConditionType": "PersistentVolumeClaimCondition.type",
    "PersistentVolumeClaimModifyVolumeStatus": "ModifyVolumeStatus.status",
    "PersistentVolumeClaimPhase": "PersistentVolumeClaimStatus.phase",
    "PersistentVolumeClaimRetentionPolicyType": (
        "StatefulSetPersistentVolumeClaimRetentionPolicy.whenDeleted "
        "StatefulSetPersistentVolumeClaimRetentionPolicy.whenScaled"
    ),
    "PersistentVolumeMode": (
        "PersistentVolumeClaimSpec.volumeMode PersistentVolumeSpec.volumeMode "
        "StorageHealthCondition.volumeMode"
    ),
    "PersistentVolumePhase": "PersistentVolumeStatus.phase",
    "PersistentVolumeReclaimPolicy": (
        "PersistentVolumeSpec.persistentVolumeReclaimPolicy StorageClass.reclaimPolicy"
    ),
    "PodConditionType": (
        "PodCondition.type PodFailurePolicyOnPodConditionsPattern.type PodReadinessGate.conditionType"
    ),
    "PodFSGroupChangePolicy": "PodSecurityContext.fsGroupChangePolicy",
    "PodFailurePolicyAction": "PodFailurePolicyRule.action",
    "PodFailurePolicyOnExitCodesOperator": "PodFailurePolicyOnExitCodesRequirement.operator",
    "PodManagementPolicyType": "StatefulSetSpec.podManagementPolicy",
    "PodPhase": "PodStatus.phase",
    "PodQOSClass": "PodStatus.qosClass",
    "PodReplacementPolicy": "JobSpec.podReplacementPolicy",
    "PodResizeStatus": "PodStatus.resize",
    "PodSELinuxChangePolicy": "PodSecurityContext.seLinuxChangePolicy",
    "PolicyType": "NetworkPolicySpec.policyTypes",
    "PreemptionPolicy": "PodSpec.preemptionPolicy PriorityClass.preemptionPolicy",
    "PriorityLevelConfigurationConditionType": "PriorityLevelConfigurationCondition.type",
    "PriorityLevelEnablement": "PriorityLevelConfigurationSpec.type",
    "ProcMountType": "SecurityContext.procMount",
    "Protocol": (
        "ContainerPort.protocol EndpointPort.protocol IngressPortStatus.protocol "
        "NetworkPolicyPort.protocol PortStatus.protocol ServicePort.protocol"
    ),
    "PullPolicy": "Container.imagePullPolicy EphemeralContainer.imagePullPolicy ImageVolumeSource.pullPolicy",
    "QualifiedName": "NodeAllocatableMapping.capacityKey",
    "RecursiveReadOnlyMode": "VolumeMount.recursiveReadOnly VolumeMountStatus.recursiveReadOnly",
    "ReinvocationPolicyType": (
        "MutatingAdmissionPolicySpec.reinvocationPolicy MutatingWebhook.reinvocationPolicy"
    ),
    "ReplicaSetConditionType": "ReplicaSetCondition.type",
    "ReplicationControllerConditionType": "ReplicationControllerCondition.type",
    "RequestConditionType": "CertificateSigningRequestCondition.type",
    "ResourceHealthStatus": "ResourceHealth.health",
    "ResourceID": "ResourceHealth.resourceID",
    "ResourceName": (
        "ContainerResizePolicy.resourceName ContainerResourceMetricSource.name "
        "ContainerResourceMetricStatus.name NodeAllocatableMappedResources.name "
        "NodeAllocatableOverheadResources.name ResourceMetricSource.name ResourceMetricStatus.name "
        "ResourceStatus.name"
    ),
    "ResourceQuotaScope": "ResourceQuotaSpec.scopes ScopedResourceSelectorRequirement.scopeName",
    "ResourceResizeRestartPolicy": "ContainerResizePolicy.restartPolicy",
    "ResourceScope": "CustomResourceDefinitionSpec.scope",
    "ResourceVersionMatch": "ListOptions.resourceVersionMatch",
    "RestartPolicy": "PodSpec.restartPolicy",
    "RowConditionType": "TableRowCondition.type",
    "ScalingPolicySelect": "HPAScalingRules.selectPolicy",
    "ScopeSelectorOperator": "ScopedResourceSelectorRequirement.operator",
    "ScopeType": "Rule.scope",
    "SeccompProfileType": "SeccompProfile.type",
    "SecretType": "Secret.type",
    "ServiceAffinity": "ServiceSpec.sessionAffinity",
    "ServiceExternalTrafficPolicy": "ServiceSpec.externalTrafficPolicy",
    "ServiceInternalTrafficPolicy": "ServiceSpec.internalTrafficPolicy",
    "ServiceType": "ServiceSpec.type",
    "SideEffectClass": "MutatingWebhook.sideEffects ValidatingWebhook.sideEffects",
    "Signal": "ContainerStatus.stopSignal Lifecycle.stopSignal",
    "SkipNodeOperation": (
        "DeviceRequestAllocationResult.skipNodeOperations ResourceSliceSpec.skipNodeOperations"
    ),
    "StatefulSetConditionType": "StatefulSetCondition.type",
    "StatefulSetUpdateStrategyType": "StatefulSetUpdateStrategy.type",
    "StatusReason": "Status.reason Validation.reason",
    "StorageHealthStatusType": "StorageHealthCondition.status",
    "StorageMedium": "EmptyDirVolumeSource.medium",
    "SubjectKind": "Subject.kind",
    "SupplementalGroupsPolicy": "PodSecurityContext.supplementalGroupsPolicy",
    "TaintEffect": "Taint.effect Toleration.effect",
    "TerminationMessagePolicy": (
        "Container.terminationMessagePolicy EphemeralContainer.terminationMessagePolicy"
    ),
    "TolerationOperator": "Toleration.operator",
    "URIScheme": "HTTPGetAction.scheme",
    "UnhealthyPodEvictionPolicyType": "PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy",
    "UniqueVolumeName": "AttachedVolume.name NodeStatus.volumesInUse",
    "UnsatisfiableConstraintAction": "TopologySpreadConstraint.whenUnsatisfiable",
    "ValidationAction": "ValidatingAdmissionPolicyBindingSpec.validationActions",
    "VolumeBindingMode": "StorageClass.volumeBindingMode",
    "VolumeHealthStatusType": "VolumeHealthCondition.status",
    "VolumeLifecycleMode": "CSIDriverSpec.volumeLifecycleModes",
}
_STRING_TYPES = {field: name for name, fields in _NAMED_STRINGS.items() for field in fields.split()}
_PLAIN = {
    BOOLEAN: "bool",
    NUMBER: "float64",
    BYTES: "[]uint8",
    QUANTITY: "resource.Quantity",
    TIME: "v1.Time",
}


def go_type(schema: Schema, owner: str, field: str) -> str:
    """The Go type of `field` of the struct `owner`, or of what it is a list or map of."""
    if schema.type == STRING:
        named = _STRING_TYPES.get(f"{owner}.{field}")
        return f"v1.{named}" if named else "string"
    if schema.type == INTEGER:
        return schema.format or "int64"
    if schema.type == OBJECT:
        return (
            f"{models.version_of(schema.model)}.{schema.name}" if schema.model else "map[string]interface {}"
        )
    if schema.items is not None and schema.type in (LIST, MAP):
        if schema.type == MAP and schema.items.type == QUANTITY:
            return "v1.ResourceList"
        return ("[]" if schema.type == LIST else "map[string]") + go_type(schema.items, owner, field)
    return _PLAIN.get(schema.type, "interface {}")
