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
