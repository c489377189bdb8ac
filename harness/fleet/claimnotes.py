"""What binder, scheduler and provisioners tell each other on a claim. component-helpers/storage/volume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
LATE = "WaitForFirstConsumer"
"""The volumeBindingMode of a class whose claims wait until a scheduler has chosen a node for their first consumer."""


def notes_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """An object's annotations."""
    found: dict[str, str] = obj["metadata"].get("annotations") or {}
    return found


def waits_for_node(claim: Mapping[str, Any], storage_class: Mapping[str, Any]) -> bool:
    """Of a class that binds late, and no node has been chosen (IsDelayBindingMode, IsDelayBindingProvisioning)."""
    return storage_class.get("volumeBindingMode") == LATE and SELECTED_NODE not in notes_of(claim)


def ephemeral_claim(pod: str, volume: str) -> str:
    """The claim that a pod brings for one of its volumes (component-helpers/storage/ephemeral/ephemeral.go)."""
    return f"{pod}-{volume}"
