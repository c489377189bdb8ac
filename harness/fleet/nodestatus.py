"""The Node object: what a kubelet registers and what it keeps reporting. kk/pkg/kubelet/kubelet_node_status.go.

The status is computed every 10 s x U[1, 1.04) and sent as a strategic-merge patch only if something other than a
heartbeat time changed, or 5 minutes have passed; after a change the next unchanged report comes 5 min x U[.5, 1.5)
later, so that nodes which changed together do not report together ever after (:578-596).

What changes here is readiness, the images on the node (of which the kubelet takes note each 30 s:
kk/pkg/kubelet/images/image_gc_manager.go) and the volumes in use. The second failure in a row of one report makes a
kubelet that was started with DISABLE_HTTP2 close all its connections (kk/cmd/kubelet/app/server.go,
buildKubeletClientConfig); any other closes idle ones, and has none while it watches.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from zlib import crc32

import msgspec

from harness.client.machine import Answered, Arm, CloseConnections, Event, Failed, Fired, Send
from harness.client.requests import NODES, get_, patch_
from harness.fleet.context import Context, Out
from harness.fleet.options import KubeletOptions

PART = "node"
_TRIES = 5  # nodeStatusUpdateRetry
_MAX_IMAGES = 50  # nodeStatusMaxImages
_IMAGES_PERIOD_S = 30.0  # realImageGCManager.Start
_FAST_TICK_S = 0.1  # nodeReadyGracePeriod's loop (fastNodeStatusUpdate): ready is reported at its next tick
_HEALTHY = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_NAME, _ADDRESS, _HEARTBEAT, _SINCE, _BOOT = (
    b"\x00name\x00",
    b"\x00address\x00",
    b"\x00heartbeat\x00",
    b"\x00since\x00",
    b"\x00boot\x00",
)


def node_address(name: str, hosted: int = 0) -> str:
    """An address in 10.0.0.0/8 that follows from the node's name; `hosted` > 0 is that of its nth pod."""
    digest = crc32(name.encode())
    return f"10.{digest >> 8 & 255}.{digest & 255}.{hosted % 254 + 1}"


def boot_id(name: str, boots: int) -> str:
    """status.nodeInfo.bootID of a machine that was started again so often."""
    return f"{name}-{boots}" if boots else name


class ReportState(Enum):
    """What the reporter waits for."""

    UNREGISTERED = "the node to be registered"
    WAITING = "the next tick"
    READING = "GET node, before another try"
    PATCHING = "PATCH nodes/status"


class NodeStatus:
    """Reports one node's status once it is registered."""

    __slots__ = (
        "_again",
        "_context",
        "_delay_s",
        "_images",
        "_pulled",
        "_reported",
        "_reported_images",
        "_sending",
        "_sending_lists",
        "_sent",
        "_since",
        "_tries",
        "_volumes",
        "ready",
        "reported_volumes",
        "state",
    )

    def __init__(self, context: Context) -> None:
        self._context = context
        self.state = ReportState.UNREGISTERED
        self.ready = False
        self._sending = False  # readiness in the report under way
        self._sent: bool | None = (
            None  # readiness that the server was last told; None before the first report
        )
        self._again = False  # a sync was asked for while one was under way
        self._since = 0.0  # when `ready` last changed
        self._reported = 0.0
        self._delay_s = 0.0
        self._tries = 0
        self._images: tuple[str, ...] = ()
        self._pulled: dict[str, float] | None = None  # images not taken note of yet, and when they will be
        self._reported_images: tuple[str, ...] = ()
        self._sending_lists: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # of the report under way
        self._volumes: tuple[str, ...] = ()  # attachable volumes in use
        self.reported_volumes: tuple[str, ...] = ()

    def pulled(self, image: str, now: float) -> None:
        """An image is on the node, now at the latest."""
        if image in self._images or (self._pulled is not None and image in self._pulled):
            return
        self._pulled = self._pulled or {}
        self._pulled[image] = self._context.next_tick(_IMAGES_PERIOD_S, now)

    def use_volumes(self, volumes: tuple[str, ...]) -> None:
        """status.volumesInUse, sorted, from the next report on."""
        self._volumes = volumes

    def body(self, now: float) -> bytes:
        """The Node to register."""
        return self._fill(_bodies(self._context.options, self.ready).node, now)

    def start(self, now: float, out: Out) -> None:
        """Report at once (the node was just registered), then periodically."""
        self._since = self._since or now
        self._sync(now, out)

    def become_ready(self, now: float, out: Out) -> None:
        """What kept the node from being ready is gone: the fast loop reports it at its next tick of 100 ms."""
        self.ready, self._since = True, now
        out.append(Arm((PART, "fast"), self._context.next_tick(_FAST_TICK_S, now)))

    def handle(self, event: Event, now: float, out: Out) -> None:
        if isinstance(event, Fired):
            if self.state is ReportState.WAITING:
                self._sync(now, out)
            else:
                self._again = self.state is not ReportState.UNREGISTERED
        elif isinstance(event, Answered) and event.response.ok:
            if self.state is ReportState.READING:
                self._patch(now, out)
            else:
                self._done(now, out)
        elif isinstance(event, Answered | Failed):
            self._failed(now, out)

    # ---- steps -------------------------------------------------------------------------------------------------------
    def _sync(self, now: float, out: Out) -> None:
        self._tries = 0
        self._again = False
        self._take_note(now)
        changed = (
            self._sent is not self.ready
            or self._images is not self._reported_images
            or self._volumes != self.reported_volumes
        )
        options = self._context.options
        if not changed and now - self._reported < options.status_report_s + self._delay_s:
            self._wait(now, out)
            return
        self._delay_s = options.status_report_s * (self._context.rng.random() - 0.5) if changed else 0.0
        self._patch(now, out)

    def _wait(self, now: float, out: Out) -> None:
        self.state = ReportState.WAITING
        out.append(Arm((PART, "tick"), now + self._context.jittered(self._context.options.status_update_s)))

    def _patch(self, now: float, out: Out) -> None:
        self.state = ReportState.PATCHING
        self._sending = self.ready
        bodies = _bodies(self._context.options, self.ready)
        template = bodies.heartbeat if self._sent is self.ready else bodies.change
        if self._sent is None and self._context.boots:
            template = bodies.rebooted
        lists = b""
        if self._images is not self._reported_images:
            lists += b',"images":' + _image_list(self._images)
        if self._volumes != self.reported_volumes:
            lists += b',"volumesInUse":' + msgspec.json.encode(self._volumes or None)
        if lists:
            template = template[:-2] + lists + b"}}"
        self._sending_lists = self._images, self._volumes
        request = patch_(
            NODES,
            None,
            self._context.name,
            self._fill(template, now),
            subresource="status",
            timeout_s=self._context.options.heartbeat_timeout_s,
            client="heartbeat",
        )
        out.append(Send((PART, "patch"), request))

    def _done(self, now: float, out: Out) -> None:
        self._reported, self._sent = now, self._sending
        self._reported_images, self.reported_volumes = self._sending_lists
        if self._again:
            self._sync(now, out)
        else:
            self._wait(now, out)

    def _failed(self, now: float, out: Out) -> None:
        """Tries 2 to 5 follow at once and read the node first (tryUpdateNodeStatus, tryNumber > 0); the patch is the
        same, since what it changes does not depend on what was read."""
        self._tries += 1
        if self._tries > 1 and self._context.options.close_on_heartbeat_failure:
            out.append(CloseConnections("heartbeat failed"))
        if self._tries >= _TRIES:
            self._wait(now, out)
        else:
            self.state = ReportState.READING
            timeout_s = self._context.options.heartbeat_timeout_s
            request = get_(NODES, None, self._context.name, timeout_s=timeout_s, client="heartbeat")
            out.append(Send((PART, "get"), request))

    def _take_note(self, now: float) -> None:
        """The image manager has listed the images."""
        if self._pulled is None:
            return
        seen = [image for image, due in self._pulled.items() if due <= now]
        if seen:
            self._images = _same((*self._images, *seen))
            left = {image: due for image, due in self._pulled.items() if due > now}
            self._pulled = left or None

    def _fill(self, template: bytes, now: float) -> bytes:
        name = self._context.name
        if self._context.boots:
            template = template.replace(_BOOT, boot_id(name, self._context.boots).encode())
        return (
            template.replace(_NAME, name.encode())
            .replace(_ADDRESS, node_address(name).encode())
            .replace(_HEARTBEAT, self._context.stamp(now).encode())
            .replace(_SINCE, self._context.stamp(self._since or now).encode())
        )


@lru_cache(maxsize=1024)
def _same(images: tuple[str, ...]) -> tuple[str, ...]:
    """One tuple for all nodes that have these images."""
    return images


@lru_cache(maxsize=1024)
def _image_list(images: tuple[str, ...]) -> bytes:
    """status.images: the largest first. What an image's size is follows from its name: 1 to 256 MiB."""
    sizes = {image: (1 + crc32(image.encode()) % 256) << 20 for image in images}
    largest = sorted(images, key=lambda image: -sizes[image])[:_MAX_IMAGES]
    return msgspec.json.encode([{"names": [image], "sizeBytes": sizes[image]} for image in largest])


# ---- bodies, encoded once for all kubelets of the same options -------------------------------------------------------
class _Bodies(msgspec.Struct, frozen=True, gc=False):
    """Templates with marks where name, address and times go."""

    node: bytes
    change: bytes
    heartbeat: bytes
    rebooted: bytes
    """The first report after a reboot: whatever somebody thought of the node meanwhile is wrong."""


@lru_cache(maxsize=64)
def _bodies(options: KubeletOptions, ready: bool) -> _Bodies:
    node = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": _mark(_NAME),
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": _mark(_NAME),
                "kubernetes.io/os": "linux",
                **dict(options.labels),
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {},
        "status": _status(options, ready),
    }
    conditions = _conditions(ready)
    times = [{"lastHeartbeatTime": each["lastHeartbeatTime"], "type": each["type"]} for each in conditions]
    return _Bodies(
        node=_encode(node),
        change=_encode(_patch_of([*times[:-1], conditions[-1]])),
        heartbeat=_encode(_patch_of(times)),
        rebooted=_encode(_patch_of(conditions, nodeInfo={"bootID": _mark(_BOOT)})),
    )


def _patch_of(conditions: list[dict[str, str]], **more: object) -> dict[str, object]:
    order = [{"type": each["type"]} for each in conditions]
    return {"status": {"$setElementOrder/conditions": order, "conditions": conditions, **more}}


def _status(options: KubeletOptions, ready: bool) -> dict[str, object]:
    memory_kib = options.memory_gib * 1024 * 1024
    capacity = {
        "cpu": str(options.cpu),
        "ephemeral-storage": "98831908Ki",
        "hugepages-2Mi": "0",
        "memory": f"{memory_kib}Ki",
        "pods": str(options.pods),
    }
    return {
        "capacity": capacity,
        "allocatable": {
            **capacity,
            "memory": f"{memory_kib - 100 * 1024}Ki",
        },  # hard eviction threshold 100 Mi
        "conditions": _conditions(ready),
        "addresses": [
            {"type": "InternalIP", "address": _mark(_ADDRESS)},
            {"type": "Hostname", "address": _mark(_NAME)},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": _mark(_NAME),
            "systemUUID": _mark(_NAME),
            "bootID": _mark(_NAME),
            "kernelVersion": "6.12.0",
            "osImage": "swarmlet",
            "containerRuntimeVersion": "containerd://2.2.0",
            "kubeletVersion": options.version,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }


def _conditions(ready: bool) -> list[dict[str, str]]:
    rows = [(kind, "False", reason, message) for kind, reason, message in _HEALTHY]
    if ready:
        rows.append(("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
    else:
        rows.append(("Ready", "False", "KubeletNotReady", "CSINode is not yet initialized"))
    return [
        {
            "type": kind,
            "status": status,
            "lastHeartbeatTime": _mark(_HEARTBEAT),
            "lastTransitionTime": _mark(_SINCE),
            "reason": reason,
            "message": message,
        }
        for kind, status, reason, message in rows
    ]


def _mark(mark: bytes) -> str:
    return mark.decode()


def _encode(thing: object) -> bytes:
    encoded = msgspec.json.encode(thing)
    for mark in (_NAME, _ADDRESS, _HEARTBEAT, _SINCE, _BOOT):
        encoded = encoded.replace(msgspec.json.encode(mark.decode())[1:-1], mark)
    return encoded
