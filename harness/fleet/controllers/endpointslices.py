"""EndpointSlices, up to 100 endpoints each. kk/pkg/controller/endpointslice, staging endpointslice/reconciler.go.

An endpoint stays in its slice. Slices that lose or change endpoints are updated; what is new fills those first, then
one more that has room, then new slices; a slice without endpoints is deleted, but a service without any has one
that is empty.
"""

from __future__ import annotations

from functools import lru_cache

from harness.client.store import Change
from harness.fleet.controllers.api import ENDPOINTSLICES, Answer, ApiError, Steps, failure
from harness.fleet.controllers.podcontrol import owner_reference
from harness.fleet.controllers.serviceviews import (
    HEADLESS,
    TRIGGER,
    PortGroups,
    ServicePods,
    resolved_ports,
    sort_key,
    spec_of,
    target_reference,
)
from harness.fleet.controllers.views import Object, PodView, WholeView, decode_metadata, whole
from harness.fleet.controllers.workqueue import WorkQueue
from harness.wire.request import Request, Response

MOST = 100  # max-endpoints-per-slice
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
_RETRY_S, _RETRY_CAP_S = 1.0, 1000.0  # defaultSyncBackOff, maxSyncBackOff
_RESYNC_S = 1.0  # endpointSliceChangeMinSyncDelay


class EndpointSliceController(ServicePods):
    name = "endpointslice-controller"

    def make_queue(self) -> WorkQueue:
        return WorkQueue(_RETRY_S, _RETRY_CAP_S)

    def subscribe(self) -> None:
        super().subscribe()
        self.slices = self.watch(ENDPOINTSLICES, self.slice_changed)
        self._own: dict[str, str] = {}  # our slices to the newest version that we know of

    def slice_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        """Changes that were not our own are put right, a second later."""
        if new.labels.get(MANAGED_BY) != MANAGER or SERVICE_NAME not in new.labels:
            return
        key = f"{new.namespace}/{new.labels[SERVICE_NAME]}"
        known = self._own.get(new.key)
        if change is Change.DELETED:
            if self._own.pop(new.key, None) is not None:
                self.add_after(key, _RESYNC_S)
        elif change is Change.MODIFIED and known is not None and known < _padded(new.resource_version):
            self.add_after(key, _RESYNC_S)

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        service: WholeView | None = self.services.get(key)
        if service is None or service.deleted is not None:
            return
        spec = spec_of(service)
        if spec.type == "ExternalName" or not spec.selector:
            return
        self._check_slices(service)
        existing = [_copied(_decoded(each)) for each in self._slices_of(service)]
        groups: dict[bytes, tuple[list[Object], dict[str, Object]]] = {}
        known: PortGroups = {}
        for pod in self.selected(service):
            if pod.ip and not pod.ended:
                ports_key, ports = resolved_ports(pod, spec.ports, known)
                members = groups.setdefault(ports_key, (ports, {}))[1]
                members[pod.uid] = _endpoint(pod, service.name, spec.publish_not_ready_addresses)
        yield from self._reconcile(service, existing, groups)

    def _check_slices(self, service: WholeView) -> None:
        """EndpointSliceTracker.StaleSlices: wait until the informer shows what was written."""
        for each in self._slices_of(service):
            if self._own.get(each.key, "") > _padded(each.resource_version):
                self.check_fresh(service.key)

    def _slices_of(self, service: WholeView) -> list[WholeView]:
        return [
            each
            for each in self.slices.owned_by(service.uid)
            if isinstance(each, WholeView) and each.labels.get(MANAGED_BY) == MANAGER
        ]

    def _reconcile(
        self,
        service: WholeView,
        existing: list[Object],
        groups: dict[bytes, tuple[list[Object], dict[str, Object]]],
    ) -> Steps[None]:
        """reconcileByPortMapping for each set of ports; then creations, updates and deletions at once."""
        by_ports: dict[bytes, list[Object]] = {}
        for each in existing:
            by_ports.setdefault(sort_key(sorted(each.get("ports") or [], key=sort_key)), []).append(each)
        create: list[Object] = []
        update: list[Object] = []
        delete: list[Object] = []
        labels = self._labels(service)
        for ports, (listed, wanted) in groups.items():
            slices = by_ports.pop(ports, [])
            made, changed, emptied = _fill(slices, dict(wanted), labels)
            create += [self._new(service, listed, endpoints) for endpoints in made]
            update += changed
            delete += emptied
        for left in by_ports.values():
            delete += left
        if len(delete) == len(existing) and not create:  # then one without endpoints is kept
            if len(delete) == 1 and not delete[0].get("endpoints") and not delete[0].get("ports"):
                return
            create.append(self._new(service, [], []))
        while create and delete:  # one that would be deleted becomes one that would be created (finalize)
            new, old = create.pop(), delete.pop()
            update.append({**old, "endpoints": new["endpoints"], "ports": new["ports"]})
        yield from self._write(service, create, update, delete)

    def _write(
        self, service: WholeView, create: list[Object], update: list[Object], delete: list[Object]
    ) -> Steps[None]:
        stamp = self.hub.stamp()
        for each in [*create, *update]:
            each["metadata"].setdefault("annotations", {})[TRIGGER] = stamp
        requests: list[Request] = [self.create(ENDPOINTSLICES, service.namespace, each) for each in create]
        requests += [self.update(ENDPOINTSLICES, each) for each in update]
        for each in delete:
            requests.append(self.delete(ENDPOINTSLICES, service.namespace, each["metadata"]["name"]))
            self._own.pop(f"{service.namespace}/{each['metadata']['name']}", None)
        if not requests:
            return
        answers = yield requests
        first: ApiError | None = None
        for index, answer in enumerate(answers):
            error = self._took(service, answer, index < len(create) + len(update))
            first = first or error
        if first is not None:
            raise first

    def _took(self, service: WholeView, answer: Answer, remembers: bool) -> ApiError | None:
        error = failure(answer)
        if error is not None:
            return None if error.terminating or error.not_found else error
        assert isinstance(answer, Response)
        if remembers:
            view = decode_metadata(answer.body)
            self._own[view.key] = _padded(view.resource_version)
            self.wrote(service.key, self.slices, answer)
        return None

    def _labels(self, service: WholeView) -> dict[str, str]:
        labels = {**service.labels, SERVICE_NAME: service.name, MANAGED_BY: MANAGER}
        if spec_of(service).cluster_ip == "None":
            labels[HEADLESS] = ""
        return labels

    def _new(self, service: WholeView, ports: list[Object], endpoints: list[Object]) -> Object:
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
                "labels": self._labels(service),
                "ownerReferences": [owner_reference(owner)],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        }


def _fill(
    slices: list[Object], wanted: dict[str, Object], labels: dict[str, str]
) -> tuple[list[list[Object]], list[Object], list[Object]]:
    """Endpoints of slices to make, slices to update, slices to delete."""
    changed: list[Object] = []
    untouched: list[Object] = []
    emptied: list[Object] = []
    for each in slices:
        old = each.get("endpoints") or []
        uids = [(endpoint.get("targetRef") or {}).get("uid", "") for endpoint in old]
        kept = [wanted.pop(uid) for uid in uids if uid in wanted]
        relabelled = (each["metadata"].get("labels") or {}) != labels
        each["metadata"]["labels"] = labels
        if not kept and old:
            emptied.append(each)
        elif kept != old or relabelled:
            each["endpoints"] = kept
            changed.append(each)
        else:
            untouched.append(each)
    new = list(wanted.values())
    if new and emptied and not changed:
        changed.append({**emptied.pop(), "endpoints": []})
    for each in changed:
        room = MOST - len(each["endpoints"])
        each["endpoints"], new = [*each["endpoints"], *new[:room]], new[room:]
    if new:
        new = _into_fullest(untouched, changed, new)
    made = [new[start : start + MOST] for start in range(0, len(new), MOST)]
    return made, changed, emptied


def _into_fullest(untouched: list[Object], changed: list[Object], new: list[Object]) -> list[Object]:
    """The rest goes into the fullest slice that has room for all of it (getSliceToFill); returns what is over."""
    rest = len(new) % MOST or MOST
    fitting = [each for each in untouched if len(each.get("endpoints") or []) + rest <= MOST]
    if not fitting:
        return new
    fullest = max(fitting, key=lambda each: len(each.get("endpoints") or []))
    fullest["endpoints"] = [*(fullest.get("endpoints") or []), *new[-rest:]]
    changed.append(fullest)
    return new[:-rest]


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


@lru_cache(maxsize=256)
def _by_bytes(raw: bytes) -> Object:
    return whole(raw)


def _decoded(view: WholeView) -> Object:
    """Most slices of a large service are as they were at the last sync."""
    return _by_bytes(view.raw)


def _copied(obj: Object) -> Object:
    """As deep as a sync changes it."""
    metadata = {**obj["metadata"], "annotations": dict(obj["metadata"].get("annotations") or {})}
    return {**obj, "metadata": metadata}


def _padded(version: str) -> str:
    return version.rjust(20, "0")
