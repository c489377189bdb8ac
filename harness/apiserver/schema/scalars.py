"""Which strings, numbers and untyped values of the models have a type that the models do not tell: tables by field
(as ``Type.field``, ``.field`` where the name says it of every type), from k8s.io/api v0.36."""

from __future__ import annotations

from harness.apiserver.schema.tree import ANY, INT_OR_STRING, QUANTITY, STRING

# Strings, and values of maps of strings.
QUANTITIES = frozenset(
    {
        *(".limits", ".requests", ".overhead", ".podFixed", ".allocatable", ".hard", ".used"),
        *(".allocatedResources", ".maxLimitRequestRatio", ".defaultRequest", ".sizeLimit", ".divisor"),
        *(".averageValue", ".tolerance", ".maximumVolumeSize", ".perPod", ".perContainer"),
        *(".capacityMultiplier", ".deviceMultiplier", ".consumedCapacity", ".validValues"),
        *("PersistentVolumeSpec.capacity", "PersistentVolumeClaimStatus.capacity", "NodeStatus.capacity"),
        *("CSIStorageCapacity.capacity", "DeviceCapacity.value", "Counter.value"),
        *("LimitRangeItem.max", "LimitRangeItem.min", "LimitRangeItem.default"),
        *("MetricTarget.value", "MetricValueStatus.value"),
        *("CapacityRequestPolicy.default", "CapacityRequestPolicyRange.min"),
        *("CapacityRequestPolicyRange.max", "CapacityRequestPolicyRange.step"),
    }
)
_REQUEST_NAMES = frozenset(
    {
        "DeviceAllocationConfiguration.requests",
        "DeviceClaimConfiguration.requests",
        "DeviceConstraint.requests",
    }
)
"""Lists of names, where other fields so called are maps of quantities."""
# Of fields that the models call objects.
INTS_OR_STRINGS = frozenset(
    {
        *("HTTPGetAction.port", "TCPSocketAction.port", "ServicePort.targetPort", "NetworkPolicyPort.port"),
        *(".maxUnavailable", ".maxSurge", ".minAvailable"),
    }
)
MICRO_TIMES = frozenset({".acquireTime", ".renewTime", ".eventTime", ".lastObservedTime"})
LONG_INTEGERS = frozenset(
    {
        *(".activeDeadlineSeconds", ".deletionGracePeriodSeconds", ".expirationSeconds", ".fsGroup"),
        *(
            ".generation",
            ".gracePeriodSeconds",
            ".observedGeneration",
            ".remainingItemCount",
            ".resourceSliceCount",
        ),
        *(".runAsGroup", ".runAsUser", ".sizeBytes", ".startingDeadlineSeconds", ".supplementalGroups"),
        *(".terminationGracePeriodSeconds", ".tolerationSeconds"),
        *(".nodeAllocatableUpdatePeriodSeconds", ".defaultUser", ".user", ".maxItems", ".maxLength"),
        *(".maxProperties", ".minItems", ".minLength", ".minProperties"),
        *(
            "SleepAction.seconds",
            "LinuxContainerUser.uid",
            "LinuxContainerUser.gid",
            "NodeSwapStatus.capacity",
        ),
        *("ControllerRevision.revision", "DeviceAttribute.int", "DeviceAttribute.ints"),
        *("ExactDeviceRequest.count", "DeviceSubRequest.count"),
    }
)


# Times and lists that Go writes as null where they are zero: they have no omitempty. An object that a client read and
# sends back has not changed.
WRITTEN_AS_NULL = frozenset(
    {
        *("lastProbeTime", "lastTransitionTime", "lastHeartbeatTime"),
        *("firstTimestamp", "lastTimestamp", "eventTime", "drivers"),
    }
)


def refined(owner: str, field: str, type: str) -> str:
    """The type of a field of `owner` that the models give as a string or as an object."""
    names = (f".{field}", f"{owner}.{field}")
    if type == STRING:
        quantity = not QUANTITIES.isdisjoint(names) and names[1] not in _REQUEST_NAMES
        return QUANTITY if quantity else STRING
    if type == ANY:
        return INT_OR_STRING if not INTS_OR_STRINGS.isdisjoint(names) else ANY
    return type


def number_format(owner: str, field: str) -> str:
    return "int64" if not LONG_INTEGERS.isdisjoint((f".{field}", f"{owner}.{field}")) else "int32"
