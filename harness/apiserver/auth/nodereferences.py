"""What pods, volumes and attachments say of the objects that their node may read.

kubernetes v1.36 pkg/api/v1/pod/util.go (VisitPodSecretNames, VisitPodConfigmapNames),
pkg/api/v1/persistentvolume/util.go (VisitPVSecretNames), dynamic-resource-allocation/resourceclaim (Name).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import msgspec


class Vertex(Enum):
    """Kinds of objects that lead to nodes."""

    SECRET = "secret"  # noqa: S105  # a kind of object
    CONFIGMAP = "configmap"
    SERVICE_ACCOUNT = "serviceaccount"
    CLAIM = "persistentvolumeclaim"
    VOLUME = "persistentvolume"
    ATTACHMENT = "volumeattachment"
    RESOURCE_CLAIM = "resourceclaim"
    SLICE = "resourceslice"


class _Named(msgspec.Struct):
    name: str = ""


class _SecretVolume(msgspec.Struct, rename="camel"):
    secret_name: str = ""


class _Claim(msgspec.Struct, rename="camel"):
    claim_name: str = ""


class _Source(msgspec.Struct, rename="camel"):
    secret: _Named | None = None
    config_map: _Named | None = None


class _Projected(msgspec.Struct):
    sources: list[_Source] | None = None


class _WithSecret(msgspec.Struct, rename="camel"):
    secret_ref: _Named | None = None
    node_publish_secret_ref: _Named | None = None
    secret_name: str = ""


class _Volume(msgspec.Struct, rename="camel"):
    name: str = ""
    secret: _SecretVolume | None = None
    config_map: _Named | None = None
    projected: _Projected | None = None
    persistent_volume_claim: _Claim | None = None
    ephemeral: dict[str, object] | None = None
    csi: _WithSecret | None = None
    azure_file: _WithSecret | None = None
    cephfs: _WithSecret | None = None
    cinder: _WithSecret | None = None
    flex_volume: _WithSecret | None = None
    iscsi: _WithSecret | None = None
    rbd: _WithSecret | None = None
    scale_io: _WithSecret | None = msgspec.field(name="scaleIO", default=None)
    storageos: _WithSecret | None = None


class _ValueFrom(msgspec.Struct, rename="camel"):
    secret_key_ref: _Named | None = None
    config_map_key_ref: _Named | None = None


class _Env(msgspec.Struct, rename="camel"):
    value_from: _ValueFrom | None = None


class _EnvFrom(msgspec.Struct, rename="camel"):
    secret_ref: _Named | None = None
    config_map_ref: _Named | None = None


class _Container(msgspec.Struct, rename="camel"):
    env: list[_Env] | None = None
    env_from: list[_EnvFrom] | None = None


class _ResourceClaim(msgspec.Struct, rename="camel"):
    """One that a pod asks for, or what its status says has been made for it; a name that is None is none."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    service_account_name: str = ""
    resource_claims: list[_ResourceClaim] | None = None
    volumes: list[_Volume] | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    image_pull_secrets: list[_Named] | None = None


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] | None = None


class _Status(msgspec.Struct, rename="camel"):
    resource_claim_statuses: list[_ResourceClaim] | None = None
    extended_resource_claim_status: _ResourceClaim | None = None


class PodView(msgspec.Struct):
    """What of a pod the graph needs."""

    metadata: _Metadata
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


_ABSENT = msgspec.Raw()


class _Binding(msgspec.Struct, rename="camel"):
    node_name: str = ""
    ephemeral_containers: msgspec.Raw = _ABSENT  # a union with None would take nothing but null
    resource_claims: msgspec.Raw = _ABSENT

    @property
    def may_change(self) -> bool:
        """Whether what the pod refers to may change though it is bound: by new ephemeral containers, or by claims that
        are made for it."""
        return bool(self.ephemeral_containers or self.resource_claims)


class PodHead(msgspec.Struct):
    """What says whether a pod's event changes anything; a third of the cost of the whole view."""

    metadata: _Metadata
    spec: _Binding


decode_pod = msgspec.json.Decoder(PodView).decode
decode_pod_head = msgspec.json.Decoder(PodHead).decode
MIRROR = "kubernetes.io/config.mirror"
Key = tuple[Vertex, str, str]


def references(pod: PodView) -> set[Key]:
    """What the pod's node may read because of it; nothing for a mirror pod, which the node made itself."""
    if MIRROR in (pod.metadata.annotations or ()):
        return set()
    namespace = pod.metadata.namespace
    found = {(Vertex.SECRET, namespace, name) for name in _secrets(pod) if name}
    found |= {(Vertex.CONFIGMAP, namespace, name) for name in _configmaps(pod) if name}
    if pod.spec.service_account_name:
        found.add((Vertex.SERVICE_ACCOUNT, namespace, pod.spec.service_account_name))
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.add((Vertex.CLAIM, namespace, volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            found.add((Vertex.CLAIM, namespace, f"{pod.metadata.name}-{volume.name}"))
    found |= {(Vertex.RESOURCE_CLAIM, namespace, name) for name in _resource_claims(pod)}
    return found


def _containers(spec: _Spec) -> Iterator[_Container]:
    for containers in (spec.containers, spec.init_containers, spec.ephemeral_containers):
        yield from containers or ()


def _secrets(pod: PodView) -> Iterator[str]:
    for reference in pod.spec.image_pull_secrets or ():
        yield reference.name
    for container in _containers(pod.spec):
        for env_from in container.env_from or ():
            if env_from.secret_ref is not None:
                yield env_from.secret_ref.name
        for env in container.env or ():
            if env.value_from is not None and env.value_from.secret_key_ref is not None:
                yield env.value_from.secret_key_ref.name
    for volume in pod.spec.volumes or ():
        yield from _volume_secrets(volume)


def _volume_secrets(volume: _Volume) -> Iterator[str]:
    if volume.config_map is not None:
        return
    if volume.secret is not None:
        yield volume.secret.secret_name
        return
    if volume.projected is not None:
        for source in volume.projected.sources or ():
            if source.secret is not None:
                yield source.secret.name
        return
    for other in (
        volume.csi,
        volume.azure_file,
        volume.cephfs,
        volume.cinder,
        volume.flex_volume,
        volume.iscsi,
        volume.rbd,
        volume.scale_io,
        volume.storageos,
    ):
        if other is not None:
            yield other.secret_name
            for reference in (other.secret_ref, other.node_publish_secret_ref):
                if reference is not None:
                    yield reference.name


def _configmaps(pod: PodView) -> Iterator[str]:
    for container in _containers(pod.spec):
        for env_from in container.env_from or ():
            if env_from.config_map_ref is not None:
                yield env_from.config_map_ref.name
        for env in container.env or ():
            if env.value_from is not None and env.value_from.config_map_key_ref is not None:
                yield env.value_from.config_map_key_ref.name
    for volume in pod.spec.volumes or ():
        if volume.config_map is not None:
            yield volume.config_map.name
        if volume.projected is not None:
            for source in volume.projected.sources or ():
                if source.config_map is not None:
                    yield source.config_map.name


def _resource_claims(pod: PodView) -> Iterator[str]:
    """Claims by name; those made from a template once the pod's status says how they are called."""
    made = {claim.name: claim.resource_claim_name for claim in pod.status.resource_claim_statuses or ()}
    for claim in pod.spec.resource_claims or ():
        name = claim.resource_claim_name
        if name is None and claim.resource_claim_template_name is not None:
            name = made.get(claim.name)
        if name is not None:
            yield name
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        yield extended.resource_claim_name


# ---- volumes, attachments, slices ------------------------------------------------------------------------------------
class _SecretRef(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _VolumeSource(msgspec.Struct, rename="camel"):
    """Any source's ways of naming a secret; those of a CSI driver's controller are none of a kubelet's business."""

    secret_name: str = ""  # azureFile
    secret_namespace: str | None = None
    secret_ref: _SecretRef | None = None
    node_publish_secret_ref: _SecretRef | None = None
    node_stage_secret_ref: _SecretRef | None = None
    node_expand_secret_ref: _SecretRef | None = None


class _VolumeSpec(msgspec.Struct, rename="camel"):
    claim_ref: _SecretRef | None = None
    azure_file: _VolumeSource | None = None
    cephfs: _VolumeSource | None = None
    cinder: _VolumeSource | None = None
    flex_volume: _VolumeSource | None = None
    rbd: _VolumeSource | None = None
    scale_io: _VolumeSource | None = msgspec.field(name="scaleIO", default=None)
    iscsi: _VolumeSource | None = None
    storageos: _VolumeSource | None = None
    csi: _VolumeSource | None = None


class VolumeView(msgspec.Struct):
    """What of a PersistentVolume the graph needs."""

    metadata: _Metadata
    spec: _VolumeSpec = msgspec.field(default_factory=_VolumeSpec)


class _OnNode(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class NodeObject(msgspec.Struct):
    """A VolumeAttachment or a ResourceSlice: something of one node, if of any."""

    metadata: _Metadata
    spec: _OnNode = msgspec.field(default_factory=_OnNode)


decode_volume = msgspec.json.Decoder(VolumeView).decode
decode_node_object = msgspec.json.Decoder(NodeObject).decode


def volume_claim(volume: VolumeView) -> Key | None:
    """The claim that it is bound to."""
    claim = volume.spec.claim_ref
    return None if claim is None else (Vertex.CLAIM, claim.namespace, claim.name)


def volume_secrets(volume: VolumeView) -> set[Key]:
    """The secrets that a kubelet reads to mount it. Where a source says no namespace it is the claim's, as that of
    objects written long ago; cinder, storageos and CSI must say one."""
    spec = volume.spec
    own = "" if spec.claim_ref is None else spec.claim_ref.namespace
    if spec.azure_file is not None:
        return _named(spec.azure_file.secret_namespace or own, spec.azure_file.secret_name)
    for source in (spec.cephfs, spec.flex_volume, spec.rbd, spec.scale_io, spec.iscsi):
        if source is not None:
            ref = source.secret_ref
            return set() if ref is None else _named(ref.namespace or own, ref.name)
    for source in (spec.cinder, spec.storageos, spec.csi):
        if source is not None:
            refs = (
                (source.node_publish_secret_ref, source.node_stage_secret_ref, source.node_expand_secret_ref)
                if source is spec.csi
                else (source.secret_ref,)
            )
            return set().union(*(_named(ref.namespace, ref.name) for ref in refs if ref is not None))
    return set()


def _named(namespace: str, name: str) -> set[Key]:
    return {(Vertex.SECRET, namespace, name)} if name else set()
