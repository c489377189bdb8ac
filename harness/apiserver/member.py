"""One emulated kube-apiserver, composed. Whoever runs it gives it a clock and a store, and exchanges to answer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from harness.apiserver.admission.chain import Admission
from harness.apiserver.admission.lifecycle import NamespaceLifecycle
from harness.apiserver.admission.noderestriction import NodeRestriction
from harness.apiserver.admission.serviceaccount import ServiceAccounts
from harness.apiserver.auth.accounttokens import AccountTokens
from harness.apiserver.auth.authentication import Authenticator, admin_user
from harness.apiserver.auth.authorization import Authorizer
from harness.apiserver.auth.impersonation import Impersonation
from harness.apiserver.auth.nodeauthorizer import NodeAuthorizer
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.uncached import StoreLister, Uncached
from harness.apiserver.chain import JSON, TEXT, Chain
from harness.apiserver.clock import Clock, Promise, Task, sleep, spawn
from harness.apiserver.discovery import Discovery
from harness.apiserver.exchange import Exchange
from harness.apiserver.flowcontrol import FlowController
from harness.apiserver.handlers.reading import Reader
from harness.apiserver.handlers.subresources import Tokens
from harness.apiserver.health import Health
from harness.apiserver.metrics.families import Load, Metrics
from harness.apiserver.metrics.requestmetrics import RequestMetrics
from harness.apiserver.model.capacity import WATCH, Host
from harness.apiserver.model.costs import Costs
from harness.apiserver.options import MemberOptions
from harness.apiserver.registry import Registry
from harness.apiserver.resources import RESOURCES, Resource
from harness.apiserver.router import Endpoint, Router
from harness.apiserver.store.client import Store
from harness.apiserver.store.core import StoreError
from harness.apiserver.store.storage import Storage
from harness.apiserver.strategies import strategy_for
from harness.apiserver.strategies.service import Allocator
from harness.apiserver.systemobjects import create_system_objects
from harness.wire.paths import RequestInfo

COUNT_PERIOD_S = (
    60.0  # as/registry/generic/registry/store.go: how often objects are counted, for flow control
)
RETRY_S = 1.0
MAX_FAULT_S = 3600.0
_BINDABLE = ("Node", "Pod", "Secret")
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_decode = msgspec.json.Decoder().decode


class Member:
    """`start()` fills the caches and makes the system objects; then `handle` answers, one exchange at a time or
    thousands at once. Everything happens on the clock's thread."""

    def __init__(self, options: MemberOptions, clock: Clock, store: Store, host: Host | None = None) -> None:
        self.options = options
        self.clock = clock
        self.metrics = Metrics()
        self.host = host or Host(clock, options.cores, Costs.parse(options.costs))
        self.storage = Storage(store, clock, self.host, self.metrics)
        self.flow = FlowController(clock, self.metrics, options.server_concurrency)
        self.ready = False
        self._stopped = False
        self._connections: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self._rng = Random(f"{options.seed}/{options.name}")
        self._sources: dict[str, Cacher | Uncached] = {
            resource.group_resource: self._source(resource) for resource in RESOURCES
        }
        self.node_authorizer = NodeAuthorizer(
            clock, self.host, self._random("node authorizer"), self.metrics, options.node_authorizer
        )
        self.authorizer = Authorizer(self.metrics, self.node_authorizer)
        self.accounts = AccountTokens(options.token_key, clock.wall, self._random("tokens"))
        self._admission = self._make_admission()
        endpoints = [self._endpoint(resource) for resource in RESOURCES]
        by_kind = {endpoint.resource.kind: endpoint.resource for endpoint in endpoints}
        bindable = {kind: by_kind[kind] for kind in _BINDABLE}
        tokens = Tokens(self.accounts, self.storage.get, bindable, self._admission)
        self.router = Router(endpoints, self._admission, tokens)
        self._registries = {endpoint.resource.group_resource: endpoint.registry for endpoint in endpoints}
        self.discovery = Discovery(RESOURCES, options.server_address)
        self.health = Health(
            {"etcd": self._check_store},
            {"etcd-readiness": self._check_store, "informer-sync": self._check_caches},
        )
        self.chain = self._make_chain()
        self.metrics.model_process(self.host, self._load, clock.wall())
        self._starting: Task[None] | None = None

    # ---- life ------------------------------------------------------------------------------------------------------
    def start(self) -> Promise[None]:
        """Settles once the member is ready to serve; tries until the store answers. Fails with StoreError where that is
        gone before."""
        self.flow.start()
        self.storage.start()
        for source in self._sources.values():
            if isinstance(source, Cacher):
                source.start()
        self._starting = spawn(self._start())
        return self._starting.outcome

    async def _start(self) -> None:
        pods = self._cacher("pods")
        while not all(source.ready for source in self._sources.values() if isinstance(source, Cacher)):
            if self.storage.error is not None:
                raise self.storage.error
            await sleep(self.clock, 0.01)
        pods.subscribe(lambda kind, obj, previous: self.node_authorizer.on_pod(kind, obj.body))
        while True:
            try:
                await create_system_objects(
                    self._registries["namespaces"],
                    self._registries["services"],
                    self.options.service_cluster_ip,
                )
                break
            except StoreError:
                if self.storage.error is not None:
                    raise
                await sleep(self.clock, RETRY_S)
        self._count_objects()
        self._charge_watches()
        self.ready = True

    def stop(self) -> None:
        """End all watches and give up the store."""
        self._stopped = True
        self.ready = False
        if self._starting is not None:
            self._starting.cancel()
        self.flow.stop()
        for source in self._sources.values():
            source.stop()
        self.storage.stop()

    # ---- requests --------------------------------------------------------------------------------------------------
    def serve_from(self, connections: Callable[[], tuple[int, int]]) -> None:
        """Say where requests come from: `connections()` are those open, and the TLS handshakes that failed so far."""
        self._connections = connections

    def handle(self, exchange: Exchange) -> None:
        """Answer one exchange; returns at once."""
        self.chain.handle(exchange)

    def metrics_text(self) -> bytes:
        """The body of /metrics."""
        return self.metrics.render()

    def _page(self, info: RequestInfo, exchange: Exchange) -> tuple[int, str, bytes] | None:
        """What is no resource: health, metrics, discovery, faults."""
        path = info.path
        health = self.health.answer(path, info.query)
        if health is not None:
            return health[0], TEXT, health[1]
        if path == "/metrics":
            return 200, _METRICS_TYPE, self.metrics_text()
        if path == "/swarmlet/faults":
            return self._fault(exchange)
        document = self.discovery.document(path, exchange.headers.get("accept", ""))
        return None if document is None else (200, *document)

    def _fault(self, exchange: Exchange) -> tuple[int, str, bytes]:
        """POST {"kind": "stall-informer", "seconds": 20}: this member's authorizer hears of no pod for so long."""
        if exchange.method != "POST":
            return 405, TEXT, b"use POST\n"
        try:
            fault = msgspec.json.decode(exchange.body, type=_Fault)
        except msgspec.DecodeError as error:
            return 400, TEXT, f"faults: {error}\n".encode()
        if fault.kind != "stall-informer" or not 0 < fault.seconds <= MAX_FAULT_S:
            text = f"faults: {fault.kind!r} for {fault.seconds} s; known is 'stall-informer', up to {MAX_FAULT_S:g} s\n"
            return 400, TEXT, text.encode()
        self.node_authorizer.stall(fault.seconds)
        return 200, JSON, b"{}\n"

    # ---- composition -----------------------------------------------------------------------------------------------
    def _random(self, purpose: str) -> Random:
        """A random source of its own, so that what one part draws does not shift another's."""
        return Random(f"{self.options.seed}/{self.options.name}/{purpose}")

    def _source(self, resource: Resource) -> Cacher | Uncached:
        rng = self._random(f"cache of {resource.group_resource}")
        kind = Cacher if resource.cached else Uncached
        return kind(resource, self.clock, self.host, self.storage, self.metrics, rng)

    def _cacher(self, group_resource: str) -> Cacher:
        source = self._sources[group_resource]
        assert isinstance(source, Cacher)
        return source

    def _body(self, group_resource: str, namespace: str, name: str) -> bytes | None:
        """An object's JSON as the cache has it."""
        cacher = self._cacher(group_resource)
        cached = cacher.get(cacher.resource.key(namespace, name))
        return None if cached is None else cached.body

    def _make_admission(self) -> Admission:
        lifecycle = NamespaceLifecycle(
            self._cacher("namespaces").resource,
            lambda name: self._body("namespaces", "", name),
            self.storage.get,
            self.clock,
        )
        accounts = ServiceAccounts(
            self._cacher("serviceaccounts").resource,
            lambda namespace, name: self._body("serviceaccounts", namespace, name),
            self.storage.get,
            self.clock,
            self._random("service accounts"),
        )
        restrict = NodeRestriction(
            lambda namespace, name: self._body("pods", namespace, name),
            lambda name: self._body("nodes", "", name),
        )
        return Admission(lifecycle, accounts, restrict)

    def _endpoint(self, resource: Resource) -> Endpoint:
        source = self._sources[resource.group_resource]
        cache = source if isinstance(source, Cacher) else None
        lister = source if isinstance(source, Uncached) else StoreLister(resource, self.storage, self.metrics)
        allocate = None
        if resource.group_resource == "services":
            allocator = Allocator(self.options.service_cidr, self._service_specs, self._random("allocator"))
            allocate = allocator.allocate
        registry = Registry(
            resource,
            strategy_for(resource),
            self.storage,
            cache,
            self._admission,
            self.clock,
            self._random(f"registry of {resource.group_resource}"),
            allocate,
        )
        return Endpoint(resource, registry, Reader(resource, lister, cache), source)

    def _service_specs(self) -> list[dict[str, Any]]:
        return [_decode(obj.body)["spec"] for obj in self._cacher("services").list().items]

    def _make_chain(self) -> Chain:
        tokens = {self.options.admin_token: admin_user()} if self.options.admin_token else {}
        return Chain(
            self.clock,
            self.host,
            Authenticator(self.metrics, tokens, self.accounts),
            Impersonation(self.metrics, self.authorizer),
            self.flow,
            self.authorizer,
            self.router,
            self._page,
            RequestMetrics(self.metrics),
            self._random("audit ids"),
            self.options.request_timeout_s,
        )

    # ---- state -----------------------------------------------------------------------------------------------------
    def _check_store(self) -> str | None:
        return None if self.storage.error is None else str(self.storage.error)

    def _check_caches(self) -> str | None:
        return None if self.ready else "caches are being filled"

    def _count_objects(self) -> None:
        """Tell flow control how many objects there are and how large, each minute."""
        if self._stopped:
            return
        for source in self._sources.values():
            if isinstance(source, Cacher) and source.ready:
                count = len(source)
                average = source.size_bytes // count if count else 0
                resource = source.resource
                self.flow.counts.set(resource.group, resource.resource, count, average)
        self.clock.call_at(self.clock.now() + COUNT_PERIOD_S, self._count_objects)

    def _charge_watches(self) -> None:
        """What open watches cost at rest, each second."""
        if not self._stopped:
            self.host.charge(self.host.costs.watch_idle_us * self.chain.open_watches, WATCH)
            self.clock.call_at(self.clock.now() + 1.0, self._charge_watches)

    def _load(self) -> Load:
        cached = sum(source.size_bytes for source in self._sources.values() if isinstance(source, Cacher))
        connections, handshake_errors = self._connections()
        self.metrics.apiserver_tls_handshake_errors_total.labels().value = handshake_errors
        return Load(self.chain.open_watches, cached, connections)


class _Fault(msgspec.Struct):
    kind: str
    seconds: float
