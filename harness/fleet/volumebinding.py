"""What the claims of a pod have to say before it is scheduled. kk/pkg/scheduler/framework/plugins/volumebinding.

A pod waits while one of its claims is missing, lost, or not bound although its class binds at once. Claims of a class
that waits for its first consumer are told the node that was chosen, and the pod is bound to it once they are bound. Not
looked at: where a volume can be reached from (its node affinity, a class's topologies, capacities), and which existing
volume a claim that waits could have; the binder of volumes decides that here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import msgspec

from harness.client.machine import Event
from harness.client.reflector import Output, Reflector
from harness.client.requests import PERSISTENTVOLUMECLAIMS, update_
from harness.client.store import Change, Changed, ObjectMeta, object_key
from harness.fleet.claimnotes import BIND_COMPLETED, LATE, SELECTED_NODE
from harness.fleet.controllers.api import STORAGECLASSES
from harness.fleet.schedulable import PodView
from harness.wire.request import Request


class _Meta(ObjectMeta, gc=False, rename="camel"):
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    deletion_timestamp: str | None = None


class _ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_name: str = ""
    storage_class_name: str | None = None


class _ClaimStatus(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class Claim(msgspec.Struct, gc=False):
    """A claim; `raw` is all of it, since it is written back whole."""

    metadata: _Meta
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()
    raw: bytes = b""

    @property
    def bound(self) -> bool:
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def node(self) -> str:
        """The node that a scheduler chose for its consumer, "" for none."""
        return self.metadata.annotations.get(SELECTED_NODE, "")


class _Class(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    metadata: _Meta
    volume_binding_mode: str = "Immediate"


_claim_decoder = msgspec.json.Decoder(Claim)


def _decode_claim(raw: bytes) -> Claim:
    claim = _claim_decoder.decode(raw)
    claim.raw = bytes(raw)
    return claim


class VolumeBinding:
    """The informers of claims and classes, and which pods have which claims. Keys begin with "claims" or "classes"."""

    __slots__ = ("_claims", "_classes", "_consumers")

    def __init__(self, rng: Random) -> None:
        self._claims = Reflector("claims", PERSISTENTVOLUMECLAIMS, None, "", "", rng, decode=_decode_claim)
        self._classes = Reflector(
            "classes", STORAGECLASSES, None, "", "", rng, decode=msgspec.json.Decoder(_Class).decode
        )
        self._consumers: dict[str, dict[str, None]] = {}  # claims to the uids of pods without a node

    def __repr__(self) -> str:
        return f"VolumeBinding(claims={len(self._claims.store)}, wanted={len(self._consumers)})"

    @property
    def synced(self) -> bool:
        return self._claims.synced and self._classes.synced

    # ---- the informers -----------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Output]:
        return self._classes.start(now) + self._claims.start(now)

    def handle(self, event: Event, now: float) -> list[Output]:
        reflector = self._claims if event.key[0] == "claims" else self._classes
        return reflector.handle(event, now)

    def stop(self, now: float) -> list[Output]:
        return self._claims.stop(now) + self._classes.stop(now)

    # ---- pods --------------------------------------------------------------------------------------------------------
    def wanted(self, pod: PodView) -> None:
        """It waits for a node: `concerned` names it from now on."""
        for key in _keys(pod):
            self._consumers.setdefault(key, {})[pod.uid] = None

    def forget(self, pod: PodView) -> None:
        for key in _keys(pod):
            consumers = self._consumers.get(key, {})
            consumers.pop(pod.uid, None)
            if not consumers:
                self._consumers.pop(key, None)

    def concerned(self, changed: Changed) -> Iterable[str]:
        """Uids of waiting pods that a change of a claim, or a new class, may let go on."""
        if changed.change is Change.REPLACED:
            return ()
        if isinstance(changed.object, Claim):
            return tuple(self._consumers.get(object_key(changed.object), ()))
        return {uid: None for consumers in self._consumers.values() for uid in consumers}

    # ---- what the scheduler asks -------------------------------------------------------------------------------------
    def obstacle(self, pod: PodView) -> str:
        """Why it cannot be scheduled anywhere yet, in kube-scheduler's words (PreFilter); "" where it can."""
        immediate = False
        for name, ephemeral in pod.claims:
            claim = self._claims.store.get(f"{pod.namespace}/{name}")
            if claim is None and ephemeral:
                return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim.status.phase == "Lost":
                volume = claim.spec.volume_name
                return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
            if claim.metadata.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
            immediate = immediate or not (claim.bound or self._is_late(claim))
        return "pod has unbound immediate PersistentVolumeClaims" if immediate else ""

    def unbound(self, pod: PodView) -> list[Claim]:
        """Its claims that are still to be bound, where there is no `obstacle`."""
        return [claim for claim in self._of(pod) if not claim.bound]

    def told(self, pod: PodView, node: str) -> bool:
        """Whether it has all its claims, and those still to be bound are known to have `node` for their consumer's."""
        return self._has_all(pod) and all(claim.node == node for claim in self.unbound(pod))

    def bound(self, pod: PodView) -> bool:
        """Whether it has all its claims, and all are bound."""
        return self._has_all(pod) and not self.unbound(pod)

    def _has_all(self, pod: PodView) -> bool:
        return all(key in self._claims.store for key in _keys(pod))

    def _of(self, pod: PodView) -> Iterator[Claim]:
        found = (self._claims.store.get(key) for key in _keys(pod))
        return (claim for claim in found if claim is not None)

    def _is_late(self, claim: Claim) -> bool:
        """IsDelayBindingMode of a claim that names no volume yet."""
        if claim.spec.volume_name or not claim.spec.storage_class_name:
            return False
        found = self._classes.store.get(claim.spec.storage_class_name)
        return found is not None and found.volume_binding_mode == LATE


def select_node(claim: Claim, node: str) -> Request:
    """The update that tells a claim where its first consumer will run."""
    body = msgspec.json.decode(claim.raw)
    body["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node
    metadata = claim.metadata
    encoded = msgspec.json.encode(body)
    return update_(PERSISTENTVOLUMECLAIMS, metadata.namespace, metadata.name, encoded)


def _keys(pod: PodView) -> Iterator[str]:
    return (f"{pod.namespace}/{name}" for name, _ in pod.claims)
