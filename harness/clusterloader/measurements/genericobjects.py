"""WaitForGenericK8sObjects: until so many objects of any resource have one of the conditions asked for.

Mirrors pkg/measurement/common/wait_for_generic_k8s_object.go and util/wait_for_conditions.go: conditions are written
``Type=Status``, the first of an object's that is asked for decides, and without conditions mere presence counts.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from harness.client.requests import ResourceRef
from harness.client.store import Change, Changed, Decode, ObjectMeta, decoder_for
from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Params, Selector
from harness.clusterloader.measurements.pods import Condition
from harness.clusterloader.measurements.waiting import wait_for

_TIMEOUT_S = 1800.0  # defaultWaitForGenericK8sObjectsTimeout
_SHOWN = 5  # failed objects that a message names


class _Status(msgspec.Struct, gc=False):
    conditions: list[Condition] | None = None


class GenericView(msgspec.Struct, gc=False):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: _Status = msgspec.field(default_factory=_Status)


decode_generic: Decode = decoder_for(GenericView)


class _Wanted(NamedTuple):
    """The parameters of a call."""

    namespaces: frozenset[str] | None
    good: frozenset[str]
    bad: frozenset[str]
    least: int
    most_failed: int


class _Counts:
    def __init__(self, wanted: _Wanted) -> None:
        self._wanted = wanted
        self._states: dict[str, str] = {}

    def apply(self, changed: Changed) -> None:
        view: GenericView | None = changed.object
        if view is None:
            return
        namespaces = self._wanted.namespaces
        if namespaces is not None and view.metadata.namespace not in namespaces:
            return
        key = f"{view.metadata.namespace}/{view.metadata.name}"
        if changed.change is Change.DELETED:
            self._states.pop(key, None)
        else:
            self._states[key] = self._state(view)

    def _state(self, view: GenericView) -> str:
        for condition in view.status.conditions or ():
            text = f"{condition.type}={condition.status}"
            if text in self._wanted.good:
                return "successful"
            if text in self._wanted.bad:
                return "failed"
        return ""

    def of(self, state: str) -> int:
        return sum(found == state for found in self._states.values())

    @property
    def reached(self) -> int:
        if not self._wanted.good and not self._wanted.bad:
            return len(self._states)
        return self.of("successful") + self.of("failed")

    @property
    def failed(self) -> list[str]:
        return [key for key, state in self._states.items() if state == "failed"]

    def text(self) -> str:
        return f"successful={self.of('successful')} failed={len(self.failed)} count={len(self._states)}"


class WaitForGenericK8sObjects:
    async def execute(self, call: Call) -> Outcome:
        params = call.params
        ref = object_ref(params)
        wanted = _wanted(params, call.prefix)
        timeout_s = params.duration("timeout", _TIMEOUT_S)
        counts = _Counts(wanted)
        passed = await wait_for(
            call,
            ref,
            decode_generic,
            Selector("", params.text("labelSelector", ""), ""),
            timeout_s,
            apply=counts.apply,
            count=lambda: (min(counts.reached, wanted.least), wanted.least),
            done=lambda: counts.reached >= wanted.least,
            text=lambda: f"{ref}: {counts.text()}",
        )
        if not passed:
            raise MeasurementError(
                f"timed out after {timeout_s:g}s while waiting for {wanted.least} {ref} to be successful or failed: "
                f"{counts.text()}"
            )
        if len(counts.failed) > wanted.most_failed:
            raise MeasurementError(
                f"too many failed {ref}, at most {wanted.most_failed} may: {counts.text()}: "
                f"{', '.join(counts.failed[:_SHOWN])}"
            )
        return Outcome()

    def dispose(self) -> None:
        """Its informer ends with the call."""


def object_ref(params: Params) -> ResourceRef:
    """What is waited for."""
    return ResourceRef(
        params.text("objectGroup"), params.text("objectVersion"), params.text("objectResource")
    )


def _wanted(params: Params, prefix: str) -> _Wanted:
    return _Wanted(
        namespaces=_namespaces(params.mapping("namespaceRange"), prefix),
        good=frozenset(params.texts("successfulConditions", ())),
        bad=frozenset(params.texts("failedConditions", ())),
        least=params.integer("minDesiredObjectCount"),
        most_failed=params.integer("maxFailedObjectCount", 0),
    )


def _namespaces(spread: Params | None, prefix: str) -> frozenset[str] | None:
    """Which namespaces count; None for all. Without a range objects have none (getNamespaces)."""
    if spread is None:
        return frozenset({""})
    if spread.has("allNamespaces") and spread.boolean("allNamespaces"):
        return None
    names = range(spread.integer("min"), spread.integer("max") + 1)
    return frozenset(f"{spread.text('prefix', prefix)}-{index}" for index in names)
