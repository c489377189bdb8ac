"""WaitForBoundPVCs and WaitForAvailablePVs: until so many claims are bound, or volumes are there.

Mirrors pkg/measurement/common/wait_for_pvcs.go and wait_for_pvs.go: a volume that is bound already counts as available,
and no other claim or volume may be lost or failed meanwhile.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from harness.client.requests import ResourceRef
from harness.client.store import Change, Changed, Decode, ObjectMeta, decoder_for
from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Selector
from harness.clusterloader.measurements.waiting import wait_for

CLAIMS = ResourceRef("", "v1", "persistentvolumeclaims")
VOLUMES = ResourceRef("", "v1", "persistentvolumes")

_TIMEOUT_S = 60.0  # defaultWaitForPVCsTimeout, defaultWaitForPVsTimeout
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class _Meta(ObjectMeta, gc=False):
    annotations: dict[str, str] | None = None


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class StorageView(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    status: _Status = msgspec.field(default_factory=_Status)


decode_storage: Decode = decoder_for(StorageView)


class _Phases:
    """How many objects are in each phase; of volumes only those of one provisioner, "" for all."""

    def __init__(self, provisioner: str = "") -> None:
        self._provisioner = provisioner
        self._counts: Counter[str] = Counter()

    def apply(self, changed: Changed) -> None:
        self._add(changed.old, -1)
        if changed.change is not Change.DELETED:
            self._add(changed.object, 1)

    def _add(self, view: StorageView | None, sign: int) -> None:
        if view is None:
            return
        if (
            not self._provisioner
            or (view.metadata.annotations or {}).get(_PROVISIONED_BY) == self._provisioner
        ):
            self._counts[view.status.phase] += sign

    def of(self, *phases: str) -> int:
        return sum(self._counts[phase] for phase in phases)

    def text(self, desired: int) -> str:
        phases = [f"{count} {phase.lower()}" for phase, count in sorted(self._counts.items()) if count]
        return ", ".join([f"{self._counts.total()} created", f"{desired} desired", *phases])

    def only(self, *phases: str) -> bool:
        """No object is in another phase."""
        return self.of(*phases) == self._counts.total()


class WaitForBoundPVCs:
    async def execute(self, call: Call) -> Outcome:
        desired = call.params.integer("desiredPVCCount")
        phases = _Phases()
        await _wait(call, CLAIMS, phases, desired, ("Bound",))
        return Outcome()

    def dispose(self) -> None:
        """Its informer ends with the call."""


class WaitForAvailablePVs:
    async def execute(self, call: Call) -> Outcome:
        desired = call.params.integer("desiredPVCount")
        phases = _Phases(call.params.text("provisioner"))
        await _wait(call, VOLUMES, phases, desired, ("Available", "Bound"))
        return Outcome()

    def dispose(self) -> None:
        """Its informer ends with the call."""


async def _wait(call: Call, ref: ResourceRef, phases: _Phases, desired: int, good: tuple[str, ...]) -> None:
    """Until `desired` objects are in a good phase and all others are pending. Raises MeasurementError."""
    selector = Selector.of(call.params)
    timeout_s = call.params.duration("timeout", _TIMEOUT_S)
    passed = await wait_for(
        call,
        ref,
        decode_storage,
        selector,
        timeout_s,
        apply=phases.apply,
        count=lambda: (phases.of(*good), desired),
        done=lambda: phases.of(*good) == desired and phases.only(*good, "Pending"),
        text=lambda: phases.text(desired),
    )
    if not passed:
        raise MeasurementError(
            f"timed out after {timeout_s:g}s while waiting for {desired} {ref.resource} to be "
            f"{' or '.join(good).lower()} in {selector} - {phases.text(desired)}"
        )
