"""Bookmark events: an object of the watched kind with nothing but a resourceVersion, as Go writes its zero value."""

from __future__ import annotations

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.resources import Resource

INITIAL_EVENTS_END = b',"annotations":{"k8s.io/initial-events-end":"true"}'

# What Go's encoder writes of an empty object of these kinds after its metadata (am and kk api types: fields without
# omitempty). Recorded for pods of v1.36.2, read off the types for the others.
_NODE_INFO = (
    b'"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"",'
    b'"kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""'
)
_TEMPLATE = b'"template":{"metadata":{},"spec":{"containers":null}}'
_CLAIM = b'"spec":{"devices":{"requests":null}}'
_REST: dict[str, bytes] = {
    "Namespace": b',"spec":{},"status":{}',
    "Node": b',"spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{'
    + _NODE_INFO
    + b"}}",
    "Pod": b',"spec":{"containers":null},"status":{}',
    "Service": b',"spec":{},"status":{"loadBalancer":{}}',
    "Event": b',"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,'
    b'"reportingComponent":"","reportingInstance":""',
    "Lease": b',"spec":{}',
    "CSINode": b',"spec":{"drivers":null}',
    "CSIDriver": b',"spec":{}',
    "Deployment": b',"spec":{"selector":null,' + _TEMPLATE + b',"strategy":{}},"status":{}',
    "ReplicaSet": b',"spec":{"selector":null,' + _TEMPLATE + b'},"status":{"replicas":0}',
    "StatefulSet": b',"spec":{"selector":null,'
    + _TEMPLATE
    + b',"serviceName":"","updateStrategy":{}},"status":{"replicas":0,"availableReplicas":0}',
    "DaemonSet": b',"spec":{"selector":null,'
    + _TEMPLATE
    + b',"updateStrategy":{}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,'
    b'"desiredNumberScheduled":0,"numberReady":0}',
    "ControllerRevision": b',"revision":0',
    "ReplicationController": b',"spec":{},"status":{"replicas":0}',
    "PodTemplate": b"," + _TEMPLATE,
    "Job": b',"spec":{' + _TEMPLATE + b'},"status":{}',
    "CronJob": b',"spec":{"schedule":"","jobTemplate":{"metadata":{},"spec":{'
    + _TEMPLATE
    + b'}}},"status":{}',
    "LimitRange": b',"spec":{"limits":null}',
    "ResourceQuota": b',"spec":{},"status":{}',
    "PodDisruptionBudget": b',"spec":{},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,'
    b'"expectedPods":0}',
    "HorizontalPodAutoscaler": b',"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},'
    b'"status":{"desiredReplicas":0,"currentMetrics":null}',
    "PriorityClass": b',"value":0',
    "EndpointSlice": b',"addressType":"","endpoints":null,"ports":null',
    "NetworkPolicy": b',"spec":{"podSelector":{}}',
    "Ingress": b',"spec":{},"status":{"loadBalancer":{}}',
    "IngressClass": b',"spec":{}',
    "IPAddress": b',"spec":{}',
    "ServiceCIDR": b',"spec":{},"status":{}',
    "ResourceClaim": b"," + _CLAIM + b',"status":{}',
    "ResourceClaimTemplate": b',"spec":{"metadata":{},' + _CLAIM + b"}",
    "ResourceSlice": b',"spec":{"driver":"","pool":{"name":"","generation":0,"resourceSliceCount":0}}',
    "DeviceClass": b',"spec":{}',
    "ValidatingAdmissionPolicy": b',"spec":{},"status":{}',
    "ValidatingAdmissionPolicyBinding": b',"spec":{}',
    "MutatingAdmissionPolicy": b',"spec":{}',
    "MutatingAdmissionPolicyBinding": b',"spec":{}',
    "RuntimeClass": b',"handler":""',
}


def bookmark(resource: Resource, revision: int, *, initial_events_end: bool = False) -> CachedObject:
    """The object of a bookmark; annotated where it says that all initial events have been sent."""
    body = b'{"kind":"%b","apiVersion":"%b","metadata":{"resourceVersion":"%d"%b}%b}' % (
        resource.kind.encode(),
        resource.api_version.encode(),
        revision,
        INITIAL_EVENTS_END if initial_events_end else b"",
        _REST.get(resource.kind, b""),
    )
    return CachedObject("", revision, body, "", "", {}, {}, ())
