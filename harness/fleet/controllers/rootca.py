"""A ConfigMap `kube-root-ca.crt` in each active namespace. kk/pkg/controller/certificates/rootcacertpublisher.

Every pod with a service-account token mounts it, so it gives each kubelet one more watch for each namespace.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from harness.client.requests import CONFIGMAPS
from harness.client.store import ObjectMeta, decode_object_view
from harness.fleet.controllers.ensurer import Ensurer

NAME = "kube-root-ca.crt"
_ABOUT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class _View(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    data: dict[str, str] = {}


_decode_whole = msgspec.json.Decoder(_View).decode


def _decode(raw: bytes) -> Any:
    """All configmaps pass here, the data of only one of a namespace matters."""
    view = decode_object_view(raw)
    return _decode_whole(raw) if view.metadata.name == NAME else view


def root_ca_publisher(certificate: str, rng: Random) -> Ensurer:
    """The machine; `certificate` is the CA's in PEM. A ConfigMap with other data is put right."""
    data = {"ca.crt": certificate}
    metadata = {"name": NAME, "annotations": {"kubernetes.io/description": _ABOUT}}
    body = msgspec.json.encode({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})
    return Ensurer(
        CONFIGMAPS,
        NAME,
        body,
        rng,
        decode=_decode,
        correct=lambda found: bool(found.data == data),
        asks_first=False,
    )
