"""Requests and objects as a fleet exchanges them, of the usual size."""

from __future__ import annotations

from typing import Any

import msgspec

STAMP = "2026-01-01T00:00:00Z"
TOKEN_VOLUME = {
    "name": "kube-api-access-x2x2x",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ],
    },
}
BODY = b'{"kind":"Secret","data":{"v":"' + b"x" * 993 + b'"}}'  # 1 KB

REQUEST_HEADERS = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":authority", b"127.0.0.1:6443"),
    (b":path", b"/api/v1/nodes/node-17?resourceVersion=0"),
    (b"user-agent", b"kubelet/v1.36.2 (linux/amd64) kubernetes/abcdef0"),
    (b"accept", b"application/json"),
    (b"authorization", b"Bearer abcdefghijklmnopq"),
    (b"accept-encoding", b"gzip"),
]


def request_headers(path: str) -> list[tuple[bytes, bytes]]:
    return [(name, path.encode() if name == b":path" else value) for name, value in REQUEST_HEADERS]


def response_headers(number: int, length: int | None = None) -> list[tuple[bytes, bytes]]:
    """Of an apiserver's answer; the audit-id differs from one to the next. `length` None is a watch's."""
    headers = [
        (b":status", b"200"),
        (b"audit-id", b"12345678-1234-1234-1234-%012d" % number),
        (b"cache-control", b"no-cache, private"),
        (b"content-type", b"application/json"),
        (b"x-kubernetes-pf-flowschema-uid", b"12345678-1234-1234-1234-123456789012"),
        (b"x-kubernetes-pf-prioritylevel-uid", b"12345678-1234-1234-1234-123456789012"),
        (b"date", b"Sun, 29 Nov 2026 14:32:16 GMT"),
    ]
    return headers if length is None else [*headers, (b"content-length", b"%d" % length)]


def node(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}


def pod(name: str, *, mounts: str = "s0", configmap: str = "", node_name: str = "") -> dict[str, Any]:
    """As a client creates it; it mounts a secret and, if named, a configmap. `node_name` is where it is bound."""
    volumes: list[dict[str, Any]] = [{"name": "s", "secret": {"secretName": mounts}}]
    if configmap:
        volumes.append({"name": "c", "configMap": {"name": configmap}})
    container = {
        "name": "c",
        "image": "registry.k8s.io/pause:3.9",
        "resources": {"requests": {"cpu": "5m", "memory": "20M"}},
        "volumeMounts": [{"name": "s", "mountPath": "/s"}],
    }
    spec: dict[str, Any] = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1}
    if node_name:
        spec["nodeName"] = node_name
    metadata = {"name": name, "namespace": "default", "labels": {"app": "x", "group": "load"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def stored_pod(name: str, node_name: str, revision: int = 10, **more: str) -> dict[str, Any]:
    """About 2 KB of JSON, as a server sends it."""
    held = pod(name, node_name=node_name, **more)
    held["metadata"] |= {
        "uid": f"uid-{name}",
        "resourceVersion": str(revision),
        "creationTimestamp": STAMP,
        "managedFields": [{"manager": "benchmarks", "operation": "Update", "fieldsV1": {"f:x": "y" * 700}}],
    }
    held["spec"]["volumes"].append(TOKEN_VOLUME)
    held["spec"] |= {"serviceAccountName": "default", "schedulerName": "default-scheduler"}
    held["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    return held


def running_status() -> dict[str, Any]:
    """The strategic patch of pods/status with which a kubelet reports Running."""
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    conditions = [
        {"type": each, "status": "True", "lastProbeTime": None, "lastTransitionTime": STAMP} for each in types
    ]
    container = {
        "name": "c",
        "state": {"running": {"startedAt": STAMP}},
        "lastState": {},
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": "registry.k8s.io/pause:3.9",
        "imageID": "registry.k8s.io/pause@sha256:0123",
        "containerID": "containerd://0123",
    }
    order = [{"type": each} for each in (*types, "PodScheduled")]
    status = {
        "$setElementOrder/conditions": order,
        "conditions": conditions,
        "phase": "Running",
        "hostIP": "10.0.0.2",
        "hostIPs": [{"ip": "10.0.0.2"}],
        "podIP": "10.1.1.1",
        "podIPs": [{"ip": "10.1.1.1"}],
        "startTime": STAMP,
        "containerStatuses": [container],
    }
    return {"status": status}


def secret(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "type": "Opaque",
        "data": {"v": "eHh4eHh4" * 20},
    }


def event(name: str) -> dict[str, Any]:
    """As a kubelet tells of a pod."""
    involved = {"kind": "Pod", "namespace": "default", "name": "p0", "uid": "uid-p0", "apiVersion": "v1"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {**involved, "fieldPath": "spec.containers{c}"},
        "reason": "Started",
        "message": "Started container c",
        "source": {"component": "kubelet", "host": "n0"},
        "firstTimestamp": STAMP,
        "lastTimestamp": STAMP,
        "count": 1,
        "type": "Normal",
        "reportingComponent": "kubelet",
        "reportingInstance": "n0",
    }


def lease(name: str) -> dict[str, Any]:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec}


encode = msgspec.json.Encoder().encode
