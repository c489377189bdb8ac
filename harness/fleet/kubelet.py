"""One kubelet: its parts put together, each event routed to the part whose key it carries.

At its start it does what a recorded kubelet v1.36.2 did: GET csinode at resourceVersion 0; watch-lists of its node and
of services; after 8 to 10 ms csidrivers, the lease and runtimeclasses; the node's registration after 100 ms; and its
pods' watch at the first full second at which the node's informer has synced (kk/pkg/kubelet/config/apiserver.go:37).
"""

from __future__ import annotations

from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Arm, Disarm, Event, Fired, Note, Sample
from harness.client.reflector import Output, Reflector
from harness.client.requests import CSIDRIVERS, NODES, PODS, RUNTIMECLASSES, SERVICES
from harness.client.store import Change, Changed, ObjectView
from harness.fleet import (
    certificates,
    claims,
    lease,
    nodestatus,
    objectcache,
    podstatus,
    podworker,
    registration,
    volumes,
)
from harness.fleet.certificates import CertificateManager, OwnCertificate
from harness.fleet.claims import ClaimManager, DriverView
from harness.fleet.context import Context, Out
from harness.fleet.eventcorrelator import WARNING
from harness.fleet.events import PART as EVENTS
from harness.fleet.events import EventRecorder
from harness.fleet.firstreads import FirstReads
from harness.fleet.nodestatus import NodeStatus
from harness.fleet.objectcache import ObjectCache
from harness.fleet.options import KubeletOptions
from harness.fleet.pods import Pod, decode_pod
from harness.fleet.podstatus import StatusManager
from harness.fleet.podworker import PodWorkers
from harness.fleet.registration import Registration
from harness.fleet.sharing import shared_decode
from harness.fleet.tokens import TokenManager
from harness.fleet.volumes import VolumeManager
from harness.wire.draws import Draws

_BOOT = "boot"
_TOUCH = "touch"
_DRIVERS_AFTER_S, _CLASSES_AFTER_S = 0.008, 0.009  # as recorded
_SYNC_POLL_S = 1.0  # WaitForAPIServerSyncPeriod

_decode_shared = shared_decode(ObjectView)
_decode_driver = shared_decode(DriverView)


CERTIFICATE_LIMITS = (5.0, 10)
"""The certificate manager's client is made without QPS and burst: client-go's defaults (cg/rest/config.go:47-48)."""


def kubelet_limiters(options: KubeletOptions) -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around a `Kubelet`; None is a client without a limit."""
    return {
        "main": TokenBucket(options.qps, options.burst),
        "events": TokenBucket(options.event_qps, options.event_burst),
        "heartbeat": None,
        certificates.PART: TokenBucket(*CERTIFICATE_LIMITS),
    }


class Kubelet:
    """A machine (`harness.client.machine.Machine`): the kubelet of node `name`.

    `epoch_s`: wall-clock seconds since 1970 at ``now == 0``. It emits Notes ``kubelet-registered`` and
    ``kubelet-ready`` (node, after_ms: since its start) and Samples ``pod_startup_ms`` (from hearing of a pod to Running
    reported; label mount = first, or retried where a volume or the environment needed another try),
    ``pod_deletion_ms`` (from hearing of the deletion to hearing that the pod is gone) and ``kubelet_events_lost``,
    beside those of its reflectors. `certificate` is the node's client certificate, None where it has none of its own.
    `boots`: how often the machine was started again before. Then the node is there, its pods' containers have died with
    the machine, and there is a Sample ``node_ready_again_ms`` (since its start).
    """

    __slots__ = (
        "_cache",
        "_certificates",
        "_claims",
        "_context",
        "_events",
        "_informers",
        "_lease",
        "_node",
        "_pods",
        "_registration",
        "_status",
        "_touching",
        "_volumes",
        "_workers",
    )

    def __init__(
        self,
        name: str,
        options: KubeletOptions,
        rng: Draws,
        epoch_s: float,
        *,
        certificate: OwnCertificate | None = None,
        boots: int = 0,
    ) -> None:
        context = self._context = Context(name, options, rng, epoch_s, boots)
        self._registration = Registration(context)
        self._node = NodeStatus(context)
        self._lease = lease.LeaseController(context)
        self._events = EventRecorder(context)
        self._cache = ObjectCache(context)
        first_reads, tokens = FirstReads(context), TokenManager(context)
        drivers = Reflector(
            "csidrivers", CSIDRIVERS, None, "", "", rng, decode=_decode_driver, watch_list=options.watch_list
        )
        self._claims = ClaimManager(context, self._node, drivers, self._events)
        self._volumes = VolumeManager(context, self._cache, tokens, self._events, first_reads, self._claims)
        self._certificates = CertificateManager(context, certificate) if certificate else None
        self._status = StatusManager(context)
        self._workers = PodWorkers(
            context, self._cache, self._volumes, self._status, self._events, first_reads, self._node
        )
        self._touching = False
        own, no_headless = f"metadata.name={name}", "spec.clusterIP!=None"
        follow = options.follow_one_of
        self._informers = {
            "nodes": Reflector(
                "nodes", NODES, None, own, "", rng, watch_list=options.watch_list, follow_one_of=follow
            ),
            "services": Reflector(
                "services",
                SERVICES,
                None,
                no_headless,
                "",
                rng,
                decode=_decode_shared,
                watch_list=options.watch_list,
                follow_one_of=follow,
            ),
            "csidrivers": drivers,
            "runtimeclasses": Reflector(
                "runtimeclasses",
                RUNTIMECLASSES,
                None,
                "",
                "",
                rng,
                decode=_decode_shared,
                watch_list=options.watch_list,
            ),
        }
        self._pods = Reflector(
            "pods",
            PODS,
            None,
            f"spec.nodeName={name}",
            "",
            rng,
            decode=decode_pod,
            generated_client=False,
            watch_list=options.watch_list,
            follow_one_of=follow,
        )

    def __repr__(self) -> str:
        return (
            f"Kubelet({self.name!r}, registered={self.registered}, ready={self._node.ready}, "
            f"pods={len(self._workers)}, objects={len(self._cache)})"
        )

    # ---- what a shell or a test may ask ------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return self._context.name

    @property
    def registered(self) -> bool:
        return self._registration.registered

    @property
    def ready(self) -> bool:
        return self._node.ready

    @property
    def pods(self) -> PodWorkers:
        return self._workers

    @property
    def objects(self) -> ObjectCache:
        return self._cache

    # ---- the machine -------------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Action]:
        out: Out = []
        delay_s = self._context.options.draw_start_s(self._context.rng)
        if delay_s:
            out.append(Arm((_BOOT, "start"), now + delay_s))
        else:
            self._start(now, out)
        return out

    def _start(self, now: float, out: Out) -> None:
        self._context.started = now
        self._registration.start(now, out)
        self._inform(self._informers["nodes"].start(now), out)
        self._inform(self._informers["services"].start(now), out)
        out.append(Arm((_BOOT, "drivers"), now + _DRIVERS_AFTER_S))
        out.append(Arm((_BOOT, "classes"), now + _CLASSES_AFTER_S))
        out.append(Arm((_BOOT, "pods"), now + _SYNC_POLL_S))
        self._events.node("Starting", "Starting kubelet.", now, out)
        if self._certificates is not None:
            self._certificates.start(now, out)

    def handle(self, event: Event, now: float) -> list[Action]:
        out: Out = []
        part = event.key[0]
        if isinstance(part, tuple):
            for uid in self._cache.handle(event, now, out):
                self._workers.resume(uid, now, out)
        elif part == "pods":
            self._take_pods(self._pods.handle(event, now), now, out)
        elif part == podstatus.PART:
            self._status.handle(event, now, out)
        elif part == volumes.PART:
            self._mount(event, now, out)
        elif part == podworker.PART:
            if isinstance(event, Fired):
                self._workers.fired(event, now, out)
        elif part == lease.PART:
            self._lease.handle(event, now, out)
        elif part == EVENTS:
            self._events.handle(event, now, out)
        else:
            self._seldom(str(part), event, now, out)
        return out

    def stop(self, now: float) -> list[Action]:
        out: Out = []
        for informer in (*self._informers.values(), self._pods):
            self._inform(informer.stop(now), out)
        self._cache.stop(now, out)
        self._status.stop(out)
        self._events.stop(out)
        if self._certificates is not None:
            self._certificates.stop(now, out)
        for key in ((lease.PART, "tick"), (nodestatus.PART, "tick"), (_TOUCH,)):
            out.append(Disarm(key))
        return out

    def validate(self) -> None:
        """Check what must hold between two events; for tests."""
        self._workers.validate()

    # ---- routing -----------------------------------------------------------------------------------------------------
    def _seldom(self, part: str, event: Event, now: float, out: Out) -> None:
        if part == nodestatus.PART:
            self._node.handle(event, now, out)
            if len(self._claims):
                self._claims.reported(now, out)
        elif part == claims.PART:
            uid = self._claims.handle(event, now, out)
            if uid:
                self._volumes.claims_ready(uid, now, out)
        elif part in self._informers:
            self._inform(self._informers[part].handle(event, now), out)
        elif part == registration.PART:
            self._register(event, now, out)
        elif part == objectcache.PART:
            self._cache.handle(event, now, out)
        elif part == _TOUCH:
            self._touching = False
            self._workers.touch(now, out)
            self._keep_touching(now, out)
        elif part in (certificates.PART, certificates.WATCH) and self._certificates is not None:
            self._certificates.handle(event, now, out)
        elif part == _BOOT:
            self._boot(str(event.key[1]), now, out)

    def _boot(self, what: str, now: float, out: Out) -> None:
        if what == "start":
            self._start(now, out)
        elif what == "drivers":
            self._inform(self._informers["csidrivers"].start(now), out)
            self._lease.start(now, out)
        elif what == "classes":
            self._inform(self._informers["runtimeclasses"].start(now), out)
        elif self._informers["nodes"].synced:
            self._take_pods(self._pods.start(now), now, out)
        else:
            out.append(Arm((_BOOT, "pods"), now + _SYNC_POLL_S))

    def _register(self, event: Event, now: float, out: Out) -> None:
        was = (self._registration.registered, self._registration.initialised)
        body = self._node.body(now) if isinstance(event, Fired) else b""
        self._registration.handle(event, body, now, out)
        if self._registration.registered and not was[0]:
            self._note("kubelet-registered", now, out)
            self._node.start(now, out)
            boots = self._context.boots
            if boots:
                text = f"Node {self.name} has been rebooted, boot id: {nodestatus.boot_id(self.name, boots)}"
                self._events.node("Rebooted", text, now, out, WARNING)
            for reason in ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"):
                self._events.node(reason, f"Node {self.name} status is now: {reason}", now, out)
        if self._registration.initialised and not was[1]:
            self._note("kubelet-ready", now, out)
            self._node.become_ready(now, out)
            self._events.node("NodeReady", f"Node {self.name} status is now: NodeReady", now, out)

    def _note(self, kind: str, now: float, out: Out) -> None:
        after_ms = (now - self._context.started) * 1000.0
        out.append(Note(kind, {"node": self.name, "after_ms": after_ms}))
        if kind == "kubelet-ready" and self._context.boots:
            out.append(Sample("node_ready_again_ms", after_ms))

    def _mount(self, event: Event, now: float, out: Out) -> None:
        uid = str(event.key[1])
        failures = self._volumes.handle(event, self._workers.get(uid), now, out)
        if failures is not None:
            self._workers.mounted(uid, failures, now, out)

    def _take_pods(self, outputs: list[Output], now: float, out: Out) -> None:
        for output in outputs:
            if not isinstance(output, Changed):
                out.append(output)
            elif isinstance(output.object, Pod):
                if output.change is Change.DELETED:
                    self._workers.remove(output.object.uid, now, out)
                else:
                    self._workers.update(output.object, self._pods.member, now, out)
        self._keep_touching(now, out)

    def _keep_touching(self, now: float, out: Out) -> None:
        """Pods are synced about each minute for as long as there are any."""
        if not self._touching and len(self._workers):
            self._touching = True
            out.append(Arm((_TOUCH,), self._context.next_tick(self._context.options.sync_frequency_s, now)))

    @staticmethod
    def _inform(outputs: list[Output], out: Out) -> None:
        """An informer whose content nothing here depends on."""
        out += [output for output in outputs if not isinstance(output, Changed)]
