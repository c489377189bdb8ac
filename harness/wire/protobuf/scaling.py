"""Message types of numbers and limits: autoscalers, priorities, quotas; `schema.py` says how to read a line.

Field numbers as in k8s.io/api/autoscaling/{v1,v2}, scheduling/v1 and core/v1 of v1.36.
"""

KINDS = {
    "autoscaling/v1": frozenset({"HorizontalPodAutoscaler", "Scale"}),
    "autoscaling/v2": frozenset({"HorizontalPodAutoscaler"}),
    "scheduling.k8s.io/v1": frozenset({"PriorityClass"}),
    "v1": frozenset({"LimitRange", "ResourceQuota"}),
}

MESSAGES = """
Scale: 1 metadata ObjectMeta; 2 spec ScaleSpec; 3 status ScaleStatus
ScaleSpec: 1 replicas int
ScaleStatus: 1 replicas !int; 2 selector string
HorizontalPodAutoscaler: 1 metadata ObjectMeta; 2 spec HorizontalPodAutoscalerSpec;
    3 status HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec: 1 scaleTargetRef CrossVersionObjectReference; 2 minReplicas *int;
    3 maxReplicas !int; 4 metrics []MetricSpec; 5 behavior *HorizontalPodAutoscalerBehavior
CrossVersionObjectReference: 1 kind !string; 2 name !string; 3 apiVersion string
MetricSpec: 1 type !string; 2 object *ObjectMetricSource; 3 pods *PodsMetricSource;
    4 resource *ResourceMetricSource; 5 external *ExternalMetricSource;
    7 containerResource *ContainerResourceMetricSource
ObjectMetricSource: 1 describedObject CrossVersionObjectReference; 2 target MetricTarget;
    3 metric MetricIdentifier
MetricTarget: 1 type !string; 2 value *Quantity; 3 averageValue *Quantity; 4 averageUtilization *int
MetricIdentifier: 1 name !string; 2 selector *LabelSelector
PodsMetricSource: 1 metric MetricIdentifier; 2 target MetricTarget
ResourceMetricSource: 1 name !string; 2 target MetricTarget
ExternalMetricSource: 1 metric MetricIdentifier; 2 target MetricTarget
ContainerResourceMetricSource: 1 name !string; 2 target MetricTarget; 3 container !string
HorizontalPodAutoscalerBehavior: 1 scaleUp *HPAScalingRules; 2 scaleDown *HPAScalingRules
HPAScalingRules: 1 selectPolicy *string; 2 policies []HPAScalingPolicy; 3 stabilizationWindowSeconds *int;
    4 tolerance *Quantity
HPAScalingPolicy: 1 type !string; 2 value !int; 3 periodSeconds !int
HorizontalPodAutoscalerStatus: 1 observedGeneration *int; 2 lastScaleTime *Time; 3 currentReplicas int;
    4 desiredReplicas !int; 5 currentMetrics ![]MetricStatus; 6 conditions []HorizontalPodAutoscalerCondition
MetricStatus: 1 type !string; 2 object *ObjectMetricStatus; 3 pods *PodsMetricStatus;
    4 resource *ResourceMetricStatus; 5 external *ExternalMetricStatus;
    7 containerResource *ContainerResourceMetricStatus
ObjectMetricStatus: 1 metric MetricIdentifier; 2 current MetricValueStatus;
    3 describedObject CrossVersionObjectReference
MetricValueStatus: 1 value *Quantity; 2 averageValue *Quantity; 3 averageUtilization *int
PodsMetricStatus: 1 metric MetricIdentifier; 2 current MetricValueStatus
ResourceMetricStatus: 1 name !string; 2 current MetricValueStatus
ExternalMetricStatus: 1 metric MetricIdentifier; 2 current MetricValueStatus
ContainerResourceMetricStatus: 1 name !string; 2 current MetricValueStatus; 3 container !string
HorizontalPodAutoscalerCondition: 1 type !string; 2 status !string; 3 lastTransitionTime Time;
    4 reason string; 5 message string
HorizontalPodAutoscalerV1: 1 metadata ObjectMeta; 2 spec HorizontalPodAutoscalerSpecV1;
    3 status HorizontalPodAutoscalerStatusV1
HorizontalPodAutoscalerSpecV1: 1 scaleTargetRef CrossVersionObjectReference; 2 minReplicas *int;
    3 maxReplicas !int; 4 targetCPUUtilizationPercentage *int
HorizontalPodAutoscalerStatusV1: 1 observedGeneration *int; 2 lastScaleTime *Time; 3 currentReplicas !int;
    4 desiredReplicas !int; 5 currentCPUUtilizationPercentage *int
PriorityClass: 1 metadata ObjectMeta; 2 value !int; 3 globalDefault bool; 4 description string;
    5 preemptionPolicy *string
LimitRange: 1 metadata ObjectMeta; 2 spec LimitRangeSpec
LimitRangeSpec: 1 limits ![]LimitRangeItem
LimitRangeItem: 1 type !string; 2 max {Quantity}; 3 min {Quantity}; 4 default {Quantity};
    5 defaultRequest {Quantity}; 6 maxLimitRequestRatio {Quantity}
ResourceQuota: 1 metadata ObjectMeta; 2 spec ResourceQuotaSpec; 3 status ResourceQuotaStatus
ResourceQuotaSpec: 1 hard {Quantity}; 2 scopes []string; 3 scopeSelector *ScopeSelector
ScopeSelector: 1 matchExpressions []ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement: 1 scopeName !string; 2 operator !string; 3 values []string
ResourceQuotaStatus: 1 hard {Quantity}; 2 used {Quantity}
"""
