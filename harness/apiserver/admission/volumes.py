"""What is asked of claims and volumes: StorageObjectInUseProtection, DefaultStorageClass, PersistentVolumeClaimResize
(kubernetes v1.36 plugin/pkg/admission/storage)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from harness.apiserver.admission.attributes import Attributes, Object
from harness.apiserver.apierrors import forbidden
from harness.apiserver.strategies.volumes import claim_class, requested_storage
from harness.wire.quantity import parse_quantity

PVC_PROTECTION = "kubernetes.io/pvc-protection"
PV_PROTECTION = "kubernetes.io/pv-protection"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_RESIZE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
    "resize"
)


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    creation_timestamp: str = ""
    annotations: dict[str, str] | None = None


class _Class(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    allow_volume_expansion: bool | None = None


_decode_class = msgspec.json.Decoder(_Class).decode


class VolumeAdmission:
    """`classes()` gives the JSON of all storage classes that the informer holds."""

    def __init__(self, classes: Callable[[], Iterable[bytes]]) -> None:
        self._classes = classes

    def protect_claim(self, attributes: Attributes) -> None:
        """A finalizer holds a claim until no pod uses it."""
        _protect(attributes, PVC_PROTECTION)

    def protect_volume(self, attributes: Attributes) -> None:
        """A finalizer holds a volume until it is bound to no claim."""
        _protect(attributes, PV_PROTECTION)

    def default_class(self, attributes: Attributes) -> None:
        """A claim that names no class gets the default one: of several the newest, and of these the first by name
        (kk/pkg/volume/util/storageclass.go, GetDefaultClass)."""
        claim = attributes.new
        assert claim is not None
        if attributes.subresource or claim_class(claim) is not None:
            return
        defaults = [item for item in map(_decode_class, self._classes()) if _is_default(item)]
        if defaults:
            newest = max(item.metadata.creation_timestamp for item in defaults)
            names = [item.metadata.name for item in defaults if item.metadata.creation_timestamp == newest]
            claim.setdefault("spec", {})["storageClassName"] = min(names)

    def check_resize(self, attributes: Attributes) -> None:
        """A claim may only grow where its class allows it. Raises StatusError 403."""
        new, old = attributes.new, attributes.old
        if attributes.subresource or new is None or old is None:
            return
        wanted, before = requested_storage(new), requested_storage(old)
        if wanted == before or not _grows(wanted, before):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            text = "Only bound persistent volume claims can be expanded"
            raise forbidden(attributes.resource, attributes.shown_name, text)
        if not self._may_grow(new, old):
            raise forbidden(attributes.resource, attributes.shown_name, _RESIZE)

    def _may_grow(self, new: Object, old: Object) -> bool:
        name = claim_class(new)
        if not name or name != claim_class(old):
            return False
        return any(
            item.metadata.name == name and item.allow_volume_expansion is True
            for item in map(_decode_class, self._classes())
        )


def _protect(attributes: Attributes, finalizer: str) -> None:
    if attributes.subresource:
        return
    assert attributes.new is not None
    meta: dict[str, Any] = attributes.new["metadata"]
    finalizers = meta.get("finalizers") or []
    if finalizer not in finalizers:
        meta["finalizers"] = [*finalizers, finalizer]


def _is_default(item: _Class) -> bool:
    annotations = item.metadata.annotations or {}
    return any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)


def _grows(wanted: object, before: object) -> bool:
    new, old = parse_quantity(wanted), parse_quantity(before)
    return new is not None and old is not None and new > old
