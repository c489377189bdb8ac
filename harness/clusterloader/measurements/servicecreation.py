"""ServiceCreationLatency: from a Service's creation to the moment its address is assigned, as the API shows it.

Mirrors pkg/measurement/common/service_creation_latency.go without its pings: whether an address answers needs a
container to ask from, so `reachability` is skipped and the run says so. waitForReady waits for addresses.
"""

from __future__ import annotations

import msgspec

from harness.client.requests import SERVICES, ResourceRef
from harness.client.store import Change, Changed, Decode, ObjectMeta, decoder_for
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Params,
    Result,
    Selector,
    unknown_action,
)
from harness.clusterloader.measurements.transitions import TransitionTimes
from harness.clusterloader.perfdata import latency_data, latency_values
from harness.clusterloader.runtime import Informer, Runtime
from harness.clusterloader.tasks import Signal

INGRESSES = ResourceRef("networking.k8s.io", "v1", "ingresses")

_TIMEOUT_S = 600.0  # defaultServiceCreationLatencyTimeout
_CREATING, _ASSIGNED, _DELETING, _DELETED = "creating", "ipAssigning", "deleting", "deleted"
_INGRESS = "ingress"
TYPES = ("ClusterIP", "NodePort", "LoadBalancer", _INGRESS)
TRANSITIONS = {
    **{
        f"create_to_assigned_{kind.lower()}": (f"{_CREATING}_{kind}", f"{_ASSIGNED}_{kind}") for kind in TYPES
    },
    "delete_loadbalancer": (f"{_DELETING}_LoadBalancer", f"{_DELETED}_LoadBalancer"),
    "delete_ingress": (f"{_DELETING}_{_INGRESS}", f"{_DELETED}_{_INGRESS}"),
}


class _Meta(ObjectMeta, gc=False, rename="camel"):
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class _Address(msgspec.Struct, gc=False):
    ip: str = ""


class _LoadBalancer(msgspec.Struct, gc=False):
    ingress: list[_Address] | None = None


class _Status(msgspec.Struct, gc=False, rename="camel"):
    load_balancer: _LoadBalancer = msgspec.field(default_factory=_LoadBalancer)


class _Spec(msgspec.Struct, gc=False):
    type: str = ""


class ServiceView(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


decode_service: Decode = decoder_for(ServiceView)


def services_and_ingresses(params: Params) -> list[ResourceRef]:
    """What a start looks at."""
    return [SERVICES, INGRESSES] if params.boolean("checkIngress", False) else [SERVICES]


class ServiceCreationLatency:
    def __init__(self) -> None:
        self._informers: list[Informer] = []
        self._times = TransitionTimes()
        self._changed = Signal()
        self._timeout_s = _TIMEOUT_S

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            await self._start(call)
        elif action == "waitForReady":
            await self._wait(call, _ASSIGNED)
        elif action == "waitForDeletion":
            await self._wait(call, _DELETED)
        elif action == "gather":
            return self._gather(call)
        else:
            raise unknown_action(action, "start", "waitForReady", "waitForDeletion", "gather")
        return Outcome()

    def dispose(self) -> None:
        for informer in self._informers:
            informer.stop()
        self._informers = []

    async def _start(self, call: Call) -> None:
        if self._informers:
            return
        params, runtime = call.params, call.runtime
        namespace, labels, fields = Selector.of(params)
        self._timeout_s = params.duration("waitTimeout", _TIMEOUT_S)
        call.skip("ServiceCreationLatency reachability", "needs a container to call the service from")
        resources = [(ref, _INGRESS if ref is INGRESSES else "") for ref in services_and_ingresses(params)]
        self._informers = [
            runtime.watch(
                ref,
                decode_service,
                lambda changed, kind=kind: self._look(changed, kind, runtime),  # type: ignore[misc]
                namespace=namespace,
                labels=labels,
                fields=fields,
            )
            for ref, kind in resources
        ]
        for informer in self._informers:
            await informer.synced

    def _look(self, changed: Changed, kind: str, runtime: Runtime) -> None:
        view: ServiceView | None = changed.object
        if view is None:
            return
        kind = kind or view.spec.type
        if kind not in TYPES:
            return
        key = f"{kind}/{view.key}"
        if changed.change is Change.DELETED:
            self._times.stamp(key, f"{_DELETING}_{kind}", view.metadata.deletion_timestamp)
            self._times.first(key, f"{_DELETED}_{kind}", runtime.wall_s)
        else:
            self._times.stamp(key, f"{_CREATING}_{kind}", view.metadata.creation_timestamp)
            balanced = kind in ("LoadBalancer", _INGRESS)
            if not balanced or view.status.load_balancer.ingress:
                self._times.first(key, f"{_ASSIGNED}_{kind}", runtime.wall_s)
        self._changed.notify()

    async def _wait(self, call: Call, moment: str) -> None:
        """Until every service that was created has reached `moment`."""
        self._expect_started()
        tasks = call.runtime.tasks
        deadline = tasks.now + self._timeout_s
        while lacking := self._lacking(moment):
            if tasks.now >= deadline:
                raise MeasurementError(f"timed out after {self._timeout_s:g}s: {lacking}")
            await tasks.either(self._changed.changed, deadline)

    def _lacking(self, moment: str) -> str:
        """The first type whose services have not all reached `moment`, with the counts; "" where all have."""
        for kind in TYPES:
            created = self._times.count(f"{_CREATING}_{kind}")
            reached = self._times.count(f"{moment}_{kind}")
            if reached < created:
                return f"type {kind}: {created} created, {reached} {moment}"
        return ""

    def _expect_started(self) -> None:
        if not self._informers:
            raise MeasurementError("metric ServiceCreationLatency has not been started")

    def _gather(self, call: Call) -> Outcome:
        self._expect_started()
        found = self._times.latencies_ms(TRANSITIONS)
        values: dict[str, object] = {
            "services": sum(self._times.count(f"{_CREATING}_{kind}") for kind in TYPES),
            **latency_values({name: times for name, times in found.items() if times}),
        }
        return Outcome((Result(f"ServiceCreationLatency_{call.identifier}", values, latency_data(found)),))
