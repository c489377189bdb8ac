"""Persistent volumes of pods: from the claim to a volume that can be mounted.

The populator (kk/pkg/kubelet/volumemanager/populator) goes through its pods each 100 ms, one GET after the other: the
claim, and once that is bound its volume, both without resourceVersion, so from etcd. What fails is tried again in the
next pass, without an event. A volume of a CSI driver that attaches then waits until the node's status was told that the
volume is in use, until the attach-detach controller has put it among the node's volumesAttached (GET node, tried again
after 500 ms, doubled up to 2 min 2 s: GenerateVerifyControllerAttachedVolumeFunc), and until its VolumeAttachment says
so too (csi_attacher.go). Each sync of a running pod goes through the claim and its volume again.
"""

from __future__ import annotations

from enum import Enum
from hashlib import sha256

import msgspec

from harness.client.machine import Answered, Arm, Disarm, Event, Failed, Fired, Key, Send
from harness.client.reflector import Reflector
from harness.client.requests import NODES, PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, VOLUMEATTACHMENTS, get_
from harness.client.store import ObjectView
from harness.fleet.context import Context, Out, describe, parsed
from harness.fleet.events import EventRecorder
from harness.fleet.nodestatus import NodeStatus
from harness.fleet.pods import Pod

PART = "claims"
_POLL_S, _POLL_FACTOR, _POLL_CAP_S, _POLL_JITTER = 0.5, 1.05, 7.0, 0.1  # waitForVolumeAttachDetachStatus


class Step(Enum):
    """What one volume waits for."""

    CLAIM = "its turn in the populator's pass, or GET claim"
    VOLUME = "GET volume"
    REPORT = "the node's status to say that the volume is in use"
    ATTACH = "another look at the node"
    NODE = "GET node"
    ATTACHMENT = "GET volumeattachment, or another look at it"
    READY = "nothing"


class _Volume:
    """`name` is the volume's in the pod, `unique` the node's name for it ("" where nothing is attached)."""

    __slots__ = ("attachment", "claim", "name", "poll_s", "step", "uid", "unique", "volume", "wait_s")

    def __init__(self, name: str, claim: str) -> None:
        self.name = name
        self.claim = claim
        self.step = Step.CLAIM
        self.uid = self.volume = self.unique = self.attachment = ""
        self.wait_s = 0.0  # the last back-off of the operation that it is in
        self.poll_s = 0.0  # the last wait for an attachment that is under way


class _Pod:
    __slots__ = ("failures", "pod", "volumes")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.volumes = [_Volume(name, claim) for name, claim in pod.claims]
        self.failures = 0


# ---- what is read ----------------------------------------------------------------------------------------------------
class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class _ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_name: str = ""


class _Phase(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _Claim(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    spec: _ClaimSpec = _ClaimSpec()
    status: _Phase = _Phase()


class _Reference(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class _CSI(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    driver: str = ""
    volume_handle: str = ""


class _VolumeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    claim_ref: _Reference | None = None
    csi: _CSI | None = None


class _PersistentVolume(msgspec.Struct, frozen=True, gc=False):
    spec: _VolumeSpec = _VolumeSpec()


class _Named(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _NodeStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volumes_attached: tuple[_Named, ...] = ()


class _Node(msgspec.Struct, frozen=True, gc=False):
    status: _NodeStatus = _NodeStatus()


class _Problem(msgspec.Struct, frozen=True, gc=False):
    message: str = ""


class _AttachmentStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    attached: bool = False
    attach_error: _Problem | None = None


class _Attachment(msgspec.Struct, frozen=True, gc=False):
    status: _AttachmentStatus = _AttachmentStatus()


class _DriverSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    attach_required: bool = True


class DriverView(ObjectView):
    """A CSIDriver as the kubelet's informer keeps it."""

    spec: _DriverSpec = _DriverSpec()


_CLAIM, _VOLUME = msgspec.json.Decoder(_Claim), msgspec.json.Decoder(_PersistentVolume)
_NODE, _ATTACHMENT = msgspec.json.Decoder(_Node), msgspec.json.Decoder(_Attachment)


class ClaimManager:
    """Keys: the populator's timer ("claims", "pass"); requests and timers of a volume ("claims", uid, index, what);
    what = claim and volume (the populator's), node, attachment, wait."""

    __slots__ = ("_context", "_current", "_drivers", "_events", "_node", "_pods", "_queue", "_ticking")

    def __init__(self, context: Context, node: NodeStatus, drivers: Reflector, events: EventRecorder) -> None:
        self._context = context
        self._node = node
        self._drivers = drivers  # the informer of CSIDrivers
        self._events = events
        self._pods: dict[str, _Pod] = {}
        self._queue: list[tuple[str, int]] = []  # what is left of the populator's pass
        self._current: tuple[str, int] | None = None
        self._ticking = False

    def __len__(self) -> int:
        """Pods with claims."""
        return len(self._pods)

    def begin(self, pod: Pod, now: float, out: Out) -> None:
        if pod.claims:
            self._pods[pod.uid] = _Pod(pod)
            self._tick(now, out)

    def ready(self, uid: str) -> bool:
        """Whether each volume can be mounted."""
        known = self._pods.get(uid)
        return known is None or all(volume.step is Step.READY for volume in known.volumes)

    def failures(self, uid: str) -> int:
        """Attachments that were not there when they were looked for."""
        known = self._pods.get(uid)
        return 0 if known is None else known.failures

    def drop(self, uid: str, out: Out) -> None:
        """The pod's volumes are unmounted, or will not be mounted."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        out += [Disarm((PART, uid, index, "wait")) for index in range(len(known.volumes))]
        self._tell_node()

    def touch(self, uid: str, now: float, out: Out) -> None:
        """The periodic sync of a running pod (ReprocessPod): its claims and volumes are read again."""
        known = self._pods.get(uid)
        if known is not None:
            self._queue.extend((uid, index) for index in range(len(known.volumes)))
            self._tick(now, out)

    def reported(self, now: float, out: Out) -> None:
        """The API server was told which volumes are in use (MarkVolumesAsReportedInUse)."""
        for uid, known in self._pods.items():
            for index, volume in enumerate(known.volumes):
                if volume.step is Step.REPORT and volume.unique in self._node.reported_volumes:
                    self._look_at_node(uid, index, volume, out)

    def handle(self, event: Event, now: float, out: Out) -> str:
        """Returns the uid of a pod whose volumes have all become ready just now, else ""."""
        if event.key[1] == "pass":
            self._ticking = False
            self._queue.extend(self._unread())
            self._next(now, out)
            return ""
        uid, index, what = str(event.key[1]), int(str(event.key[2])), str(event.key[3])
        known = self._pods.get(uid)
        if known is None:
            if what in ("claim", "volume"):
                self._next(now, out)
            return ""
        volume = known.volumes[index]
        was_ready = self.ready(uid)
        if isinstance(event, Fired):
            self._look_again(uid, index, volume, out)
        elif isinstance(event, Answered | Failed):
            self._answered(known, index, what, event, now, out)
        return uid if self.ready(uid) and not was_ready else ""

    # ---- the populator -----------------------------------------------------------------------------------------------
    def _unread(self) -> list[tuple[str, int]]:
        return [
            (uid, index)
            for uid, known in self._pods.items()
            for index, volume in enumerate(known.volumes)
            if volume.step in (Step.CLAIM, Step.VOLUME)
        ]

    def _tick(self, now: float, out: Out) -> None:
        if not self._ticking and self._current is None:
            self._ticking = True
            out.append(Arm((PART, "pass"), self._context.next_tick(self._context.options.volume_loop_s, now)))

    def _next(self, now: float, out: Out) -> None:
        """One GET after the other; what is unread after the pass waits for the next."""
        self._current = None
        while self._queue:
            uid, index = self._queue.pop(0)
            known = self._pods.get(uid)
            if known is not None:
                self._current = (uid, index)
                request = get_(PERSISTENTVOLUMECLAIMS, known.pod.namespace, known.volumes[index].claim)
                out.append(Send((PART, uid, index, "claim"), request))
                return
        if self._unread():
            self._tick(now, out)

    def _answered(
        self, known: _Pod, index: int, what: str, event: Answered | Failed, now: float, out: Out
    ) -> None:
        volume, uid = known.volumes[index], known.pod.uid
        response = event.response if isinstance(event, Answered) else None
        if what == "claim":
            claim = parsed(_CLAIM, response) if response is not None else None
            bound = (
                claim is not None and claim.status.phase == "Bound" and not claim.metadata.deletion_timestamp
            )
            if claim is not None and bound and claim.spec.volume_name:
                volume.uid, volume.volume = claim.metadata.uid, claim.spec.volume_name
                request = get_(PERSISTENTVOLUMES, None, volume.volume)
                out.append(Send((PART, uid, index, "volume"), request))
                return
            self._next(now, out)
        elif what == "volume":
            found = parsed(_VOLUME, response) if response is not None else None
            if (
                found is not None
                and found.spec.claim_ref is not None
                and found.spec.claim_ref.uid == volume.uid
            ):
                self._resolved(uid, index, volume, found.spec.csi, out)
            self._next(now, out)
        elif what == "node":
            node = parsed(_NODE, response) if response is not None else None
            if node is not None and any(each.name == volume.unique for each in node.status.volumes_attached):
                self._look_at_attachment(uid, index, volume, out)
            else:
                volume.step = Step.ATTACH
                self._back_off(known, index, now, out)
        elif what == "attachment":
            self._attachment(known, index, event, now, out)

    def _resolved(self, uid: str, index: int, volume: _Volume, csi: _CSI | None, out: Out) -> None:
        if volume.step not in (Step.CLAIM, Step.VOLUME):
            return  # read again by a later sync
        if csi is None or not self._attaches(csi.driver):
            volume.step = Step.READY
            return
        volume.step = Step.REPORT
        volume.unique = f"kubernetes.io/csi/{csi.driver}^{csi.volume_handle}"
        name = f"{csi.volume_handle}{csi.driver}{self._context.name}"  # getAttachmentName, csi_attacher.go
        volume.attachment = f"csi-{sha256(name.encode()).hexdigest()}"
        self._tell_node()
        if volume.unique in self._node.reported_volumes:  # another pod here uses it
            self._look_at_node(uid, index, volume, out)

    def _attaches(self, driver: str) -> bool:
        """Without a CSIDriver object it is taken to (csi_plugin.go, skipAttach)."""
        if not self._context.options.wait_for_attach:
            return False
        found = self._drivers.store.get(driver)
        return found is None or bool(found.spec.attach_required)

    def _tell_node(self) -> None:
        volumes = {
            volume.unique for known in self._pods.values() for volume in known.volumes if volume.unique
        }
        self._node.use_volumes(tuple(sorted(volumes)))

    # ---- attaching ---------------------------------------------------------------------------------------------------
    def _look_again(self, uid: str, index: int, volume: _Volume, out: Out) -> None:
        if volume.step is Step.ATTACH:
            self._look_at_node(uid, index, volume, out)
        elif volume.step is Step.ATTACHMENT:
            self._look_at_attachment(uid, index, volume, out)

    def _look_at_node(self, uid: str, index: int, volume: _Volume, out: Out) -> None:
        volume.step = Step.NODE
        out.append(Send((PART, uid, index, "node"), get_(NODES, None, self._context.name)))

    def _look_at_attachment(self, uid: str, index: int, volume: _Volume, out: Out) -> None:
        if volume.step is not Step.ATTACHMENT:
            volume.step, volume.wait_s, volume.poll_s = Step.ATTACHMENT, 0.0, 0.0
        out.append(Send((PART, uid, index, "attachment"), get_(VOLUMEATTACHMENTS, None, volume.attachment)))

    def _back_off(self, known: _Pod, index: int, now: float, out: Out) -> None:
        options, volume = self._context.options, known.volumes[index]
        known.failures += 1
        volume.wait_s = min(2 * volume.wait_s, options.mount_backoff_cap_s) or options.mount_backoff_s
        self._wait(known.pod.uid, index, now + volume.wait_s, out)

    def _attachment(self, known: _Pod, index: int, event: Answered | Failed, now: float, out: Out) -> None:
        volume = known.volumes[index]
        found = parsed(_ATTACHMENT, event.response) if isinstance(event, Answered) else None
        if found is not None and found.status.attached:
            volume.step = Step.READY
        elif found is not None and found.status.attach_error is None:
            volume.poll_s = min(volume.poll_s * _POLL_FACTOR, _POLL_CAP_S) or _POLL_S
            jittered_s = volume.poll_s * (1.0 + _POLL_JITTER * self._context.rng.random())
            self._wait(known.pod.uid, index, now + jittered_s, out)
        else:
            handle = volume.unique.partition("^")[2]
            if found is not None and found.status.attach_error is not None:
                why = found.status.attach_error.message
            else:
                asked = f"get volumeattachments.storage.k8s.io {volume.attachment}"
                why = describe(event.response, asked) if isinstance(event, Answered) else str(event.error)
                why = f"volume {handle} has GET error for volume attachment {volume.attachment}: {why}"
            text = f'MountVolume.WaitForAttach failed for volume "{volume.volume}" : {why}'
            self._events.warning(known.pod, "FailedMount", text, now, out)
            self._back_off(known, index, now, out)

    def _wait(self, uid: str, index: int, at: float, out: Out) -> None:
        key: Key = (PART, uid, index, "wait")
        out.append(Arm(key, at))
