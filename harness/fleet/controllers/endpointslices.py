"""EndpointSlices, up to 100 endpoints each. kk/pkg/controller/endpointslice, staging endpointslice/reconciler.go.

An endpoint stays in its slice. Slices that lose or change endpoints are updated; what is new fills those first, then
one more that has room, then new slices; a slice without endpoints is deleted, but a service without any has one
that is empty. A sync looks at the pods that changed and the slices that they are in (`sliceset`); at all of them where
the service changed, where somebody else changed a slice, and where the sync before failed.
"""

from __future__ import annotations

import msgspec

from harness.client.store import Change
from harness.fleet.controllers.api import ENDPOINTSLICES, ApiError, Steps, SyncError, failure
from harness.fleet.controllers.podcontrol import owner_reference
from harness.fleet.controllers.serviceviews import (
    HEADLESS,
    TRIGGER,
    PortGroups,
    ServicePods,
    resolved_ports,
    spec_of,
    target_reference,
)
from harness.fleet.controllers.sliceset import Draft, SliceSet, Wanted, Writes, updated
from harness.fleet.controllers.views import Object, PodView, WholeView, decode_metadata
from harness.fleet.controllers.workqueue import WorkQueue
from harness.wire.request import Request, Response

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
_RETRY_S, _RETRY_CAP_S = 1.0, 1000.0  # defaultSyncBackOff, maxSyncBackOff
_RESYNC_S = 1.0  # endpointSliceChangeMinSyncDelay
_encode = msgspec.json.encode


class EndpointSliceController(ServicePods):
    name = "endpointslice-controller"

    def make_queue(self) -> WorkQueue:
        return WorkQueue(_RETRY_S, _RETRY_CAP_S)

    def subscribe(self) -> None:
        super().subscribe()
        self.slices = self.watch(ENDPOINTSLICES, self.slice_changed)
        self._sets: dict[str, SliceSet] = {}  # by key of the service

    def slice_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        """Changes that were not our own are put right, a second later."""
        if new.labels.get(MANAGED_BY) != MANAGER or SERVICE_NAME not in new.labels:
            return
        key = f"{new.namespace}/{new.labels[SERVICE_NAME]}"
        held = self._sets.get(key)
        if held is None:
            return
        if change is Change.DELETED:
            if new.name in held.deleting:
                held.deleting.discard(new.name)
            elif new.name in held.slices:
                held.broken = True
                self.add_after(key, _RESYNC_S)
        elif change is Change.MODIFIED and not held.writing and _newer(new, held.version_of(new.name)):
            self.add_after(key, _RESYNC_S)

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        service: WholeView | None = self.services.get(key)
        if service is None:
            self._sets.pop(key, None)
            return
        if service.deleted is not None:
            return
        spec = spec_of(service)
        if spec.type == "ExternalName" or not spec.selector:
            return
        views = {each.name: each for each in self._slices_of(service)}
        held = self._held(service, views)
        known: PortGroups = {}
        wanted = {
            uid: None if pod is None else self._wanted(service, pod, known)
            for uid, pod in self.changed_pods(service, held.holder).items()
        }
        labels = self._labels(service)
        yield from self._write(service, held, held.plan(views, wanted, labels), views, labels)
        if not held.broken:
            self.looked_at(service)

    def _held(self, service: WholeView, views: dict[str, WholeView]) -> SliceSet:
        """What is known of the service's slices. Raises SyncError where the informer does not show yet what was written
        (EndpointSliceTracker.StaleSlices)."""
        self.check_fresh(service.key)
        held = self._sets.get(service.key)
        if held is None:
            held = self._sets[service.key] = SliceSet()
        elif not held.deleting.isdisjoint(views):
            raise SyncError(f"{self.slices!r} still has slices of {service.key} that were deleted")
        if held.broken or not held.matches(views):
            held.load(views)
            self.look_at_all(service.key)
        return held

    def _slices_of(self, service: WholeView) -> list[WholeView]:
        return [
            each
            for each in self.slices.owned_by(service.uid)
            if isinstance(each, WholeView) and each.labels.get(MANAGED_BY) == MANAGER
        ]

    def _wanted(self, service: WholeView, pod: PodView, known: PortGroups) -> Wanted | None:
        if not pod.ip or pod.ended:
            return None
        spec = spec_of(service)
        ports_key, ports = resolved_ports(pod, spec.ports, known)
        endpoint = _endpoint(pod, service.name, spec.publish_not_ready_addresses)
        return Wanted(ports_key, ports, msgspec.Raw(_encode(endpoint)))

    def _write(
        self,
        service: WholeView,
        held: SliceSet,
        writes: Writes,
        views: dict[str, WholeView],
        labels: dict[str, str],
    ) -> Steps[None]:
        """Creations, updates and deletions at once. `held` is broken where one of them failed."""
        drafts = [*writes.create, *writes.update]
        bodies = [self._body(service, draft, views, labels) for draft in drafts]
        requests: list[Request] = []
        for draft, body in zip(drafts, bodies, strict=True):
            if draft.of is None:
                requests.append(self.create(ENDPOINTSLICES, service.namespace, body))
            else:
                requests.append(self.update(ENDPOINTSLICES, body))
        requests += [self.delete(ENDPOINTSLICES, service.namespace, each.name) for each in writes.delete]
        if not requests:
            return
        held.deleting.update(each.name for each in writes.delete)
        held.writing = True
        answers = yield requests
        held.writing = False
        first: ApiError | None = None
        for draft, answer in zip(drafts, answers[: len(drafts)], strict=True):
            error = failure(answer)
            if error is None:
                assert isinstance(answer, Response)
                self.wrote(service.key, self.slices, answer)
                view = decode_metadata(answer.body)
                held.wrote(draft, view.name, view.resource_version, view.labels)
                continue
            held.broken = True
            if not error.terminating and not error.not_found:
                first = first or error
        for each, answer in zip(writes.delete, answers[len(drafts) :], strict=True):
            error = failure(answer)
            if error is None or error.not_found:
                held.drop(each.name)
                continue
            held.deleting.discard(each.name)
            held.broken = True
            first = first or error
        if any(_newer(each, held.version_of(each.name)) for each in self._slices_of(service)):
            self.add_after(service.key, _RESYNC_S)  # somebody changed one of them meanwhile
        if first is not None:
            raise first

    def _body(
        self, service: WholeView, draft: Draft, views: dict[str, WholeView], labels: dict[str, str]
    ) -> Object:
        if draft.of is None:
            body = self._new(service, draft, labels)
        else:
            body = updated(views[draft.of.name], draft, labels)
        annotations = body["metadata"].setdefault("annotations", {})
        annotations[TRIGGER] = self.hub.stamp()
        return body

    def _labels(self, service: WholeView) -> dict[str, str]:
        labels = {**service.labels, SERVICE_NAME: service.name, MANAGED_BY: MANAGER}
        if spec_of(service).cluster_ip == "None":
            labels[HEADLESS] = ""
        return labels

    def _new(self, service: WholeView, draft: Draft, labels: dict[str, str]) -> Object:
        owner = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service.name, "uid": service.uid},
        }
        return {
            "kind": "EndpointSlice",
            "apiVersion": "discovery.k8s.io/v1",
            "metadata": {
                "generateName": f"{service.name}-",
                "namespace": service.namespace,
                "labels": labels,
                "ownerReferences": [owner_reference(owner)],
            },
            "addressType": "IPv4",
            "endpoints": draft.endpoints,
            "ports": draft.ports or [],
        }


def _endpoint(pod: PodView, service: str, publish_not_ready: bool) -> Object:
    serving = pod.ready
    terminating = pod.deleted is not None
    made: Object = {
        "addresses": [pod.ip],
        "conditions": {
            "ready": publish_not_ready or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": target_reference(pod),
        "nodeName": pod.node,
    }
    hostname, subdomain = pod.host
    if hostname and subdomain == service:
        made["hostname"] = hostname
    return made


def _newer(view: WholeView, version: str) -> bool:
    return view.resource_version.rjust(20, "0") > version.rjust(20, "0")
