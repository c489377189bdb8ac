"""pods/exec, attach and portforward: there is no kubelet to connect to, so what a client hears is what a real server
says when it reaches none.

kk/pkg/registry/core/pod/strategy.go streamLocation, am/util/proxy/upgradeaware.go.
"""

from __future__ import annotations

from typing import NoReturn

import msgspec

from harness.apiserver.apierrors import bad_request, unclassified
from harness.apiserver.handlers.call import Call
from harness.apiserver.handlers.podlogs import KUBELET_PORT, container_of
from harness.apiserver.handlers.reading import Reader

_decode = msgspec.json.Decoder().decode


async def refuse(call: Call, reader: Reader) -> NoReturn:
    """GET or POST. Raises StatusError."""
    body, _ = await reader.find(call)
    pod = _decode(body)
    name, spec = pod["metadata"]["name"], pod["spec"]
    if call.info.subresource != "portforward":
        container_of(name, spec, call.info.query.get("container", ""))
    if not spec.get("nodeName"):
        raise bad_request(f"pod {name} does not have a host assigned")
    if "upgrade" not in call.exchange.headers:  # its Connection stays with the connection
        raise bad_request("Upgrade request required")
    host = (pod.get("status") or {}).get("hostIP") or spec["nodeName"]
    raise unclassified(f"error dialing backend: dial tcp {host}:{KUBELET_PORT}: connect: connection refused")
