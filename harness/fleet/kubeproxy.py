"""kube-proxy, as far as the API server sees it: the watches of one node's proxy. kk/cmd/kube-proxy/app/server.go.

It first watches its own node and waits, looking each second, until that exists and has an address
(kk/pkg/proxy/node.go); then it watches services that have a cluster address and no proxy of their own, endpoint slices
of services that are not headless, and service CIDRs, and posts its birth cry. From then on it listens: what it does
with all that it hears is the node's matter. Its client is its own, with 5 requests a second (clientConnection.qps) and
a burst of 10. Nothing is kept of what it hears: every node hears the same.
"""

from __future__ import annotations

import msgspec

from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Answered, Arm, Disarm, Event, Failed, Fired, Note, Send
from harness.client.reflector import Output, Reflector
from harness.client.requests import ENDPOINTSLICES, NEW_EVENTS, NODES, SERVICECIDRS, SERVICES, create_
from harness.client.store import Changed, NoStore, ObjectView
from harness.fleet.context import Context, Out
from harness.fleet.options import KubeletOptions
from harness.fleet.sharing import shared_decode
from harness.wire.draws import Draws

USER = "system:kube-proxy"
GROUPS = ("system:authenticated",)
"""Bound to system:node-proxier by name (as kube-up does). kubeadm's runs as the service account kube-proxy instead."""

_LIMITS = (5.0, 10)  # kubeproxyconfig defaults (kk/pkg/proxy/apis/config/v1alpha1/defaults.go)
_POLL_S = 1.0  # newNodeManager
_NO_PROXY_NAME = "!service.kubernetes.io/service-proxy-name"
_NOT_HEADLESS = "!service.kubernetes.io/headless"
_HAS_ADDRESS = "spec.clusterIP!=None"


def kube_proxy_limiters() -> dict[str, TokenBucket | None]:
    """What `harness.client.rest.Rest` needs around a `KubeProxy`."""
    return {"main": TokenBucket(*_LIMITS)}


class _Status(msgspec.Struct, frozen=True, gc=False):
    addresses: tuple[dict[str, str], ...] = ()


class _NodeView(ObjectView):
    status: _Status = _Status()


_decode_node = shared_decode(_NodeView)
_decode_shared = shared_decode(ObjectView)


class KubeProxy:
    """A machine: the proxy of node `name`. Emits a Note ``kube-proxy-synced`` (node, after_ms) once it has all."""

    __slots__ = ("_context", "_events", "_informers", "_node", "_running", "_synced")

    def __init__(self, name: str, options: KubeletOptions, rng: Draws, epoch_s: float) -> None:
        self._context = Context(name, options, rng, epoch_s)
        self._events = options.events
        self._running = False
        self._synced = False
        self._node = Reflector(
            "node",
            NODES,
            None,
            f"metadata.name={name}",
            "",
            rng,
            decode=_decode_node,
            watch_list=options.watch_list,
        )
        labels = {
            "services": (SERVICES, _HAS_ADDRESS, _NO_PROXY_NAME),
            "endpointslices": (ENDPOINTSLICES, "", f"{_NOT_HEADLESS},{_NO_PROXY_NAME}"),
            "servicecidrs": (SERVICECIDRS, "", ""),
        }
        self._informers = {
            key: Reflector(
                key,
                resource,
                None,
                fields,
                selector,
                rng,
                decode=_decode_shared,
                watch_list=options.watch_list,
                follow_one_of=options.follow_one_of,
                store=NoStore(),
            )
            for key, (resource, fields, selector) in labels.items()
        }

    def __repr__(self) -> str:
        return f"KubeProxy({self._context.name!r}, running={self._running}, synced={self.synced})"

    @property
    def synced(self) -> bool:
        return all(informer.synced for informer in self._informers.values())

    # ---- the machine -------------------------------------------------------------------------------------------------
    def start(self, now: float) -> list[Action]:
        out: Out = []
        self._context.started = now
        _pass_on(self._node.start(now), out)
        out.append(Arm(("poll",), now + _POLL_S))
        return out

    def handle(self, event: Event, now: float) -> list[Action]:
        out: Out = []
        part = event.key[0]
        informer = self._informers.get(str(part))
        if informer is not None:
            _pass_on(informer.handle(event, now), out)
            if not self._synced and self.synced:
                self._synced = True
                after_ms = (now - self._context.started) * 1000.0
                out.append(Note("kube-proxy-synced", {"node": self._context.name, "after_ms": after_ms}))
        elif part == "node":
            was_synced = self._node.synced
            _pass_on(self._node.handle(event, now), out)
            if self._node.synced and not was_synced and not self._running:
                self._look(now, out)
        elif isinstance(event, Fired):
            self._look(now, out)
        elif isinstance(event, Answered | Failed):
            pass  # the birth cry; nobody waits for it
        return out

    def stop(self, now: float) -> list[Action]:
        out: Out = [Disarm(("poll",))]
        for informer in (self._node, *self._informers.values()):
            _pass_on(informer.stop(now), out)
        return out

    # ---- inner -------------------------------------------------------------------------------------------------------
    def _look(self, now: float, out: Out) -> None:
        """Whether the node is there; if so, begin."""
        if self._running:
            return
        node = self._node.store.get(self._context.name)
        if node is None or not node.status.addresses:
            out.append(Arm(("poll",), now + _POLL_S))
            return
        self._running = True
        out.append(Disarm(("poll",)))
        for key in ("servicecidrs", "endpointslices", "services"):  # the order in which factories are started
            _pass_on(self._informers[key].start(now), out)
        if self._events:
            out.append(Send(("event",), create_(NEW_EVENTS, "default", self._birth_cry(now))))

    def _birth_cry(self, now: float) -> bytes:
        """An events.k8s.io Event; their recorder names it by time, and gives the node's name as its uid."""
        context, name = self._context, self._context.name
        return msgspec.json.encode(
            {
                "kind": "Event",
                "apiVersion": "events.k8s.io/v1",
                "metadata": {
                    "name": f"{name}.{int((context.epoch_s + now) * 1e9):x}",
                    "namespace": "default",
                },
                "eventTime": context.micro_stamp(now),
                "reportingController": "kube-proxy",
                "reportingInstance": f"kube-proxy-{name}",
                "action": "StartKubeProxy",
                "reason": "Starting",
                "regarding": {"kind": "Node", "name": name, "uid": name},
                "type": "Normal",
            }
        )


def _pass_on(outputs: list[Output], out: Out) -> None:
    out += [output for output in outputs if not isinstance(output, Changed)]
