"""What is done for one claim, and for one volume whose claim is gone.

es/lib/controller/controller.go and sl/controller/controller.go: provisionClaimOperation, deleteVolumeOperation;
sl/controller/volume_store.go. A routine that raises is tried again as its queue says; one that returns is done.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from harness.client.limiter import TokenBucket
from harness.client.machine import Sample
from harness.client.requests import PERSISTENTVOLUMES, create_, delete_, get_, patch_
from harness.fleet.controllers.api import Answer, ApiError, SyncError
from harness.fleet.controllers.recorder import Process
from harness.fleet.controllers.views import Object, whole
from harness.fleet.provisioners.backend import Backend
from harness.fleet.provisioners.caches import Caches
from harness.fleet.provisioners.options import ProvisionerOptions
from harness.fleet.provisioners.rules import FINALIZER, to_delete, volume_name, volume_of
from harness.fleet.provisioners.telling import Teller
from harness.fleet.provisioners.threads import Routine, Sleep
from harness.wire.request import Request, Response

_SAVE_RETRY_S, _SAVE_RETRY_CAP_S = 0.005, 1000.0  # DefaultTypedControllerRateLimiter
_SAVE_BUCKET = (10.0, 100)


class Work:
    """The routines of one replica. `spawn` runs one beside the caller."""

    def __init__(
        self,
        options: ProvisionerOptions,
        process: Process,
        caches: Caches,
        backend: Backend,
        teller: Teller,
        spawn: Callable[[Routine[None]], None],
    ) -> None:
        self._options = options
        self._process = process
        self._caches = caches
        self._backend = backend
        self._teller = teller
        self._spawn = spawn
        self._saving = TokenBucket(*_SAVE_BUCKET)

    # ---- a claim -----------------------------------------------------------------------------------------------------
    def provision(self, claim: Object) -> Routine[None]:
        """Raises SwarmletError to be tried again."""
        began, name = self._process.now, volume_name(claim)
        if (yield from self._exists(name)):
            return
        storage_class = self._caches.storage_class(claim["spec"].get("storageClassName") or "")
        if storage_class is None:
            raise SyncError(f"the class of {claim['metadata']['name']} is not known")
        key = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        text = f'External provisioner is provisioning volume for claim "{key}"'
        yield from self._teller.tell(claim, "Normal", "Provisioning", text)
        call = self._backend.create(name, self._process.now)
        yield Sleep(call.seconds)
        if call.error:
            text = f'failed to provision volume with StorageClass "{storage_class["metadata"]["name"]}": {call.error}'
            self._process.out.append(Sample("provisioning_failures", 1.0))
            yield from self._teller.tell(claim, "Warning", "ProvisioningFailed", text)
            raise SyncError(text)
        options = self._options
        labels = dict(options.labels)
        volume = volume_of(claim, storage_class, finalizer=options.finalizer, labels=labels)
        if self._options.save_tries:
            yield from self._save_here(claim, volume)
        else:
            yield from self._save(claim, volume)
        self._process.out.append(Sample("claim_provisioned_ms", (self._process.now - began) * 1e3))

    def _exists(self, name: str) -> Routine[bool]:
        """A direct provisioner asks, as its cache may be behind; what is refused counts as not there."""
        if self._options.watching == "informers":
            return self._caches.has_volume(name)
        answer = yield get_(PERSISTENTVOLUMES, None, name)
        return isinstance(answer, Response) and answer.ok

    def _save(self, claim: Object, volume: Object) -> Routine[None]:
        """queueStore: what fails is tried again in the background, for ever, by nobody that a claim waits for."""
        if _saved((yield _creation(volume))):
            yield from self._succeeded(claim, volume)
        else:
            self._spawn(self._save_later(claim, volume))

    def _save_later(self, claim: Object, volume: Object) -> Routine[None]:
        wait_s = _SAVE_RETRY_S
        while not _saved((yield _creation(volume))):
            yield Sleep(max(wait_s, self._saving.reserve(self._process.now)))
            wait_s = min(2 * wait_s, _SAVE_RETRY_CAP_S)
        yield from self._succeeded(claim, volume)

    def _save_here(self, claim: Object, volume: Object) -> Routine[None]:
        """Some tries; then the storage is given back, and the claim left to a later event of it."""
        options = self._options
        for _ in range(options.save_tries):
            answer = yield _creation(volume)
            if isinstance(answer, Response) and answer.ok:
                yield from self._succeeded(claim, volume)
                return
            yield Sleep(options.save_interval_s)
        text = f"Error creating provisioned PV object for claim {claim['metadata']['name']}. Deleting the volume."
        yield from self._teller.tell(claim, "Warning", "ProvisioningFailed", text)
        for _ in range(options.save_tries):
            call = self._backend.delete()
            yield Sleep(call.seconds)
            if not call.error:
                return
            yield Sleep(options.save_interval_s)

    def _succeeded(self, claim: Object, volume: Object) -> Routine[None]:
        text = f"Successfully provisioned volume {volume['metadata']['name']}"
        yield from self._teller.tell(claim, "Normal", "ProvisioningSucceeded", text)

    # ---- a volume ----------------------------------------------------------------------------------------------------
    def delete(self, volume: Object) -> Routine[None]:
        """Raises SwarmletError to be tried again."""
        name = volume["metadata"]["name"]
        if self._options.watching == "direct":
            answer = yield get_(PERSISTENTVOLUMES, None, name)
            if not isinstance(answer, Response) or not answer.ok:
                return
            volume = whole(answer.body)
            if not to_delete(volume, self._options.driver):
                return
        call = self._backend.delete()
        yield Sleep(call.seconds)
        if call.error:
            yield from self._teller.tell(volume, "Warning", "VolumeFailedDelete", call.error)
            raise SyncError(call.error)
        yield from _asked(delete_(PERSISTENTVOLUMES, None, name))
        if self._options.finalizer:
            yield from self._take_finalizer_off(name)

    def _take_finalizer_off(self, name: str) -> Routine[None]:
        """From the volume as the informer has it by now."""
        volume = self._caches.volume(name)
        before = [] if volume is None else volume["metadata"].get("finalizers") or []
        if FINALIZER not in before:
            return
        left = [each for each in before if each != FINALIZER]
        patch = {
            "metadata": {
                "$deleteFromPrimitiveList/finalizers": [FINALIZER],
                "$setElementOrder/finalizers": left,
            }
        }
        try:
            yield from _asked(patch_(PERSISTENTVOLUMES, None, name, msgspec.json.encode(patch)))
        except ApiError as error:
            if not error.not_found:
                raise


def _creation(volume: Object) -> Request:
    return create_(PERSISTENTVOLUMES, None, msgspec.json.encode(volume))


def _saved(answer: Answer) -> bool:
    return isinstance(answer, Response) and (answer.ok or ApiError(answer).exists)


def _asked(request: Request) -> Routine[Response]:
    """Raises ApiError."""
    answer = yield request
    if isinstance(answer, Response) and answer.ok:
        return answer
    raise ApiError(answer)
