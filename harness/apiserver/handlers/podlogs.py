"""GET pods/log: there is no kubelet to ask, so a bound pod's log is what a real server answers when it reaches none.

kk/pkg/registry/core/pod/strategy.go LogLocation, kk/pkg/registry/core/pod/rest/log.go; an error of its client is told
as it is (as/registry/generic/rest/streamer.go).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec

from harness.apiserver.apierrors import bad_request, unclassified
from harness.apiserver.handlers.call import Answer, Call
from harness.apiserver.handlers.reading import Read, Reader

KUBELET_PORT = 10250
_PASSED_ON = ("follow", "limitBytes", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps")
_decode = msgspec.json.Decoder().decode


async def get(call: Call, reader: Reader) -> Read:
    """Nothing for a pod without a node. Raises StatusError."""
    body, from_store = await reader.find(call)
    pod = _decode(body)
    name, spec = pod["metadata"]["name"], pod["spec"]
    container = container_of(name, spec, call.info.query.get("container", ""))
    if not spec.get("nodeName"):
        return Read(Answer(b"", content_type="text/plain"), consistent=from_store, from_store=from_store)
    host = (pod.get("status") or {}).get("hostIP") or spec["nodeName"]
    query = call.info.query
    asked = urlencode({key: query[key] for key in _PASSED_ON if query.get(key, "false") != "false"})
    path = f"/containerLogs/{pod['metadata']['namespace']}/{name}/{container}{'?' if asked else ''}{asked}"
    url = f"https://{host}:{KUBELET_PORT}{path}"
    raise unclassified(f'Get "{url}": dial tcp {host}:{KUBELET_PORT}: connect: connection refused')


def container_of(pod: str, spec: dict[str, Any], wanted: str) -> str:
    """The container that is asked for; the only one where none is named. Raises StatusError 400."""
    names = [item["name"] for item in spec.get("containers") or ()]
    inits = [item["name"] for item in spec.get("initContainers") or ()]
    others = [item["name"] for item in spec.get("ephemeralContainers") or ()]
    if not wanted and len(names) == 1:
        return str(names[0])
    if not wanted:
        choices = f"choose one of: [{' '.join(names)}]"
        if inits:
            choices += f" or one of the init containers: [{' '.join(inits)}]"
        if others:
            choices += f" or one of the ephemeral containers: [{' '.join(others)}]"
        raise bad_request(f"a container name must be specified for pod {pod}, {choices}")
    if wanted not in (*names, *inits, *others):
        raise bad_request(f"container {wanted} is not valid for pod {pod}")
    return wanted
