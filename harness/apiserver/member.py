"""One emulated kube-apiserver, composed. Whoever runs it gives it a clock and a store, and exchanges to answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from random import Random

import msgspec

from harness.apiserver.admission.attributes import Operation
from harness.apiserver.admission.certificates import CertificateAdmission
from harness.apiserver.admission.chain import Admission, Plugins
from harness.apiserver.admission.lifecycle import NamespaceLifecycle
from harness.apiserver.admission.nodeaudience import AudienceCheck
from harness.apiserver.admission.noderestriction import NodeRestriction
from harness.apiserver.admission.priorities import PriorityClasses
from harness.apiserver.admission.serviceaccount import ServiceAccounts
from harness.apiserver.admission.volumes import VolumeAdmission
from harness.apiserver.auth.accounttokens import AccountTokens
from harness.apiserver.auth.authentication import Authenticator, UserInfo, admin_user
from harness.apiserver.auth.authorization import Authorizer
from harness.apiserver.auth.bootstrappolicy import GROUP as RBAC_GROUP
from harness.apiserver.auth.bootstrappolicy import BootstrapObject
from harness.apiserver.auth.escalation import EscalationCheck
from harness.apiserver.auth.impersonation import Impersonation
from harness.apiserver.auth.nodeauthorizer import NodeAuthorizer
from harness.apiserver.auth.rbac import KINDS as RBAC_KINDS
from harness.apiserver.auth.rbac import Rbac
from harness.apiserver.auth.rbacinformer import RbacInformer
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.uncached import StoreLister, Uncached
from harness.apiserver.cache.upkeep import Upkeep
from harness.apiserver.certificates import controller as certificates_group
from harness.apiserver.certificates.controller import CertificateController
from harness.apiserver.certificates.signer import Signer
from harness.apiserver.chain import JSON, TEXT, Chain, PageAnswer
from harness.apiserver.clock import Clock, Promise, Task, sleep, spawn
from harness.apiserver.conversion.viewregistry import ViewRegistry
from harness.apiserver.customresources.serving import CustomResources, Maker
from harness.apiserver.discovery import VERSION, Discovery
from harness.apiserver.exchange import Exchange
from harness.apiserver.faults.active import Faults
from harness.apiserver.faults.active import serve as serve_faults
from harness.apiserver.faults.parts import disturb_caches, disturb_informer, disturb_store
from harness.apiserver.faults.requests import RequestFaults
from harness.apiserver.flowcontrol import FlowController, MaxInFlight, dump
from harness.apiserver.flowcontrol.objects import FlowObjects
from harness.apiserver.handlers.reading import Reader
from harness.apiserver.handlers.reviews import Reviews
from harness.apiserver.handlers.subresources import Tokens
from harness.apiserver.health import Health
from harness.apiserver.metrics.families import Load, Metrics
from harness.apiserver.metrics.requestmetrics import RequestMetrics
from harness.apiserver.model.capacity import WATCH, Host
from harness.apiserver.model.costs import Costs
from harness.apiserver.options import MemberOptions
from harness.apiserver.policyobjects import create_policy
from harness.apiserver.registry import Registry
from harness.apiserver.resources import RESOURCES, Resource
from harness.apiserver.router import After, Endpoint, Router
from harness.apiserver.serviceallocation import ServiceAllocator
from harness.apiserver.store.client import Store
from harness.apiserver.store.core import StoreError
from harness.apiserver.store.storage import Storage
from harness.apiserver.strategies import Strategy, strategy_for
from harness.apiserver.systemobjects import (
    create_storage_class,
    create_system_objects,
    loopback_user,
    publish_client_ca,
)
from harness.wire.paths import RequestInfo

COUNT_PERIOD_S = (
    60.0  # as/registry/generic/registry/store.go: how often objects are counted, for flow control
)
RETRY_S = 1.0
SYNC_POLL_S = 0.01
RBAC_RESOURCES = tuple(f"{kind}.{RBAC_GROUP}" for kind in RBAC_KINDS)
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
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
        self.flow = self._flow_control()
        self.ready = False
        self.shutting_down = False  # set by whoever runs it, at SIGTERM: /readyz fails from then on
        self._stopped = False
        self._connections: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self._rng = Random(f"{options.seed}/{options.name}")
        self._sources: dict[str, Cacher | Uncached] = {
            resource.group_resource: self._source(resource) for resource in RESOURCES if resource.hub is None
        }
        self.upkeep = Upkeep(
            [source for source in self._sources.values() if isinstance(source, Cacher)],
            clock,
            self.host,
            self.storage,
            self.metrics,
            options.feature_gates,
            self._random,
        )
        self.node_authorizer = NodeAuthorizer(
            clock,
            self.host,
            self._random("node authorizer"),
            self.metrics,
            options.node_authorizer,
            self.storage,
        )
        self._rbac = Rbac()
        self._rbac_informer = RbacInformer(clock, self._rbac)
        self.authorizer = Authorizer(self.metrics, self.node_authorizer, self._rbac)
        self.accounts = AccountTokens(options.token_key, clock.wall, self._random("tokens"))
        tokens_given = {options.admin_token: admin_user()} if options.admin_token else {}
        self.authenticator = Authenticator(self.metrics, tokens_given, self.accounts, clock.wall)
        self._priorities = PriorityClasses()
        self._admission = self._make_admission()
        endpoints = [self._endpoint(resource) for resource in RESOURCES]
        by_kind = {endpoint.resource.kind: endpoint.resource for endpoint in endpoints}
        bindable = {kind: by_kind[kind] for kind in _BINDABLE}
        tokens = Tokens(self.accounts, self.storage.get, bindable, self._admission)
        registries = {endpoint.resource.group_resource: endpoint.registry for endpoint in endpoints}
        self.router = Router(
            endpoints,
            self._admission,
            tokens,
            self.authorizer.authorize,
            Reviews(self.authorizer, self.authenticator, self._rbac).handlers,
            self._controllers(registries),
        )
        self._registries = {
            endpoint.resource.group_resource: endpoint.registry
            for endpoint in endpoints
            if endpoint.resource.hub is None
        }
        self._flow_objects = FlowObjects(
            clock,
            self.flow,
            self._cachers(),
            self._registries,
            loopback_user(),
            self._random("flow control's objects"),
        )
        self.discovery = Discovery(RESOURCES, options.server_address)
        self._custom = CustomResources(
            self._cacher(DEFINITIONS),
            self._registries[DEFINITIONS],
            Maker(
                self._custom_source,
                self._custom_endpoint,
                lambda row: StoreLister(row, self.storage, self.metrics),
                self.upkeep.keep,
                self.upkeep.leave,
            ),
            self.router,
            self.discovery.serve_also,
            clock,
        )
        self.health = Health(
            {"etcd": self._check_store},
            {
                "etcd-readiness": self._check_store,
                "informer-sync": self._check_caches,
                "shutdown": self._check_shutdown,
            },
        )
        self.chain = self._make_chain()
        self.handle: Callable[[Exchange], object] = self.chain.handle
        """Answers one exchange, or begins to, and returns at once. Faults of requests stand in front of it."""
        self.faults = self._make_faults(store)
        self.metrics.model_process(self.host, self._load, clock.wall())
        self.metrics.describe_build(VERSION, options.feature_gates)
        self._starting: Task[None] | None = None

    # ---- life ------------------------------------------------------------------------------------------------------
    def start(self) -> Promise[None]:
        """Settles once the member is ready to serve; tries until the store answers. Fails with StoreError where that is
        gone before."""
        self.host.suspend()
        self.flow.start()
        self.storage.start()
        for source in self._sources.values():
            if source.resource.stored:
                source.start()
        self.upkeep.start()
        self._starting = spawn(self._start())
        return self._starting.outcome

    async def _start(self) -> None:
        while not all(source.ready for source in self._sources.values() if isinstance(source, Cacher)):
            if self.storage.error is not None:
                raise self.storage.error
            await sleep(self.clock, 0.01)
        self.node_authorizer.follow(self._cachers())
        classes = self._cacher("priorityclasses.scheduling.k8s.io")
        classes.subscribe(lambda kind, obj, previous: self._priorities.on_class(kind, obj.body))
        self._custom.follow()
        self._rbac_informer.follow({kind: self._cacher(kind) for kind in RBAC_RESOURCES})
        while True:
            try:
                await create_system_objects(
                    self._registries,
                    self.storage.get,
                    self.clock,
                    self.options.service_cluster_ip,
                    self.options.service_cidr,
                )
                if self.options.client_ca:
                    await publish_client_ca(self._registries, self.options.client_ca.decode())
                if self.options.default_storage_class:
                    await create_storage_class(self._registries)
                await create_policy(self._registries, self.clock, self._has_policy)
                await self._flow_objects.start()
                break
            except StoreError:
                if self.storage.error is not None:
                    raise
                await sleep(self.clock, RETRY_S)
        while not (self._rbac_informer.synced and self._flow_objects.synced):
            await sleep(self.clock, SYNC_POLL_S)
        self._count_objects()
        self._charge_watches()
        self.host.resume()
        self.ready = True

    def _has_policy(self, item: BootstrapObject) -> bool:
        return self._body(f"{item.resource}.{RBAC_GROUP}", item.namespace, item.name) is not None

    def stop(self) -> None:
        """End all watches and give up the store."""
        self._stopped = True
        self.ready = False
        if self._starting is not None:
            self._starting.cancel()
        self.flow.stop()
        self._flow_objects.stop()
        self.node_authorizer.stop()
        self.upkeep.stop()
        self._rbac_informer.stop()
        self._custom.stop()
        for source in self._sources.values():
            source.stop()
        self.storage.stop()

    # ---- requests --------------------------------------------------------------------------------------------------
    def serve_from(self, connections: Callable[[], tuple[int, int]]) -> None:
        """Say where requests come from: `connections()` are those open, and the TLS handshakes that failed so far."""
        self._connections = connections

    def metrics_text(self) -> bytes:
        """The body of /metrics."""
        return self.metrics.render()

    async def _verify(self) -> PageAnswer:
        """POST /swarmlet/verify: every cache is compared with the store, now; a list of `cache.consistency.Verdict`."""
        return 200, JSON, msgspec.json.encode(await self.upkeep.verify()) + b"\n"

    def _page(self, info: RequestInfo, exchange: Exchange) -> PageAnswer | Awaitable[PageAnswer]:
        """What is no resource: health, metrics, discovery, faults, checks of the caches."""
        path = info.path
        health = self.health.answer(path, info.query)
        if health is not None:
            return health[0], TEXT, health[1]
        if path == "/metrics":
            return 200, _METRICS_TYPE, self.metrics_text()
        if path == "/swarmlet/verify":
            return (405, TEXT, b"use POST\n") if exchange.method != "POST" else self._verify()
        if path == "/swarmlet/faults":
            return serve_faults(self.faults, exchange)
        if path.startswith(dump.PREFIX) and isinstance(self.flow, FlowController):
            text = dump.page(self.flow, self.clock, path, info.query)
            return None if text is None else (200, dump.CONTENT_TYPE, text)
        accept = exchange.headers.get("accept", "")
        document = self.discovery.document(path, accept, exchange.headers, info.query)
        if document is None:
            return None
        return document.status, document.content_type, document.body, document.headers

    # ---- composition -----------------------------------------------------------------------------------------------
    def _random(self, purpose: str) -> Random:
        """A random source of its own, so that what one part draws does not shift another's."""
        return Random(f"{self.options.seed}/{self.options.name}/{purpose}")

    def _flow_control(self) -> FlowController | MaxInFlight:
        seats = self.options.server_concurrency
        if self.options.priority_and_fairness:
            return FlowController(self.clock, self.metrics, seats)
        return MaxInFlight(self.clock, self.metrics, max(1, seats - seats // 3), max(1, seats // 3))

    def _source(self, resource: Resource) -> Cacher | Uncached:
        rng = self._random(f"cache of {resource.group_resource}")
        if not resource.cached:
            return Uncached(resource, self.clock, self.host, self.storage, self.metrics, rng)
        snapshots = self.options.feature_gates.list_from_cache_snapshot
        return Cacher(resource, self.clock, self.host, self.storage, self.metrics, rng, snapshots=snapshots)

    def _cachers(self) -> dict[str, Cacher]:
        return {name: source for name, source in self._sources.items() if isinstance(source, Cacher)}

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
            AudienceCheck(self._body, self._may),
        )
        return Admission(lifecycle, accounts, restrict, self._priorities, self._plugins())

    def _may(self, user: UserInfo, info: RequestInfo) -> bool:
        """The authorizer, asked by admission."""
        return self.authorizer.decide(user, info).allowed

    def _plugins(self) -> Plugins:
        classes = self._cacher("storageclasses.storage.k8s.io")
        volumes = VolumeAdmission(lambda: [obj.body for obj in classes.list().items])
        certificates = CertificateAdmission(self._may)
        escalation = EscalationCheck(self._rbac, self._may)
        rbac = {(RBAC_GROUP, kind): (escalation,) for kind in RBAC_KINDS}
        requests = certificates_group.GROUP, certificates_group.RESOURCE
        return {
            Operation.CREATE: {
                ("", "persistentvolumeclaims"): (volumes.default_class, volumes.protect_claim),
                ("", "persistentvolumes"): (volumes.protect_volume,),
                requests: (certificates.create,),
                **rbac,
            },
            Operation.UPDATE: {
                ("", "persistentvolumeclaims"): (volumes.check_resize,),
                requests: (certificates.update,),
                **rbac,
            },
        }

    def _controllers(self, registries: Mapping[str, Registry]) -> dict[tuple[str, str], After]:
        """What is done behind a write where no controller manager does it."""
        if self.options.signing_ca is None:
            return {}
        signer = Signer(*self.options.signing_ca, self.clock.wall, self.options.signing_duration_s)
        group, resource = certificates_group.GROUP, certificates_group.RESOURCE
        requests = CertificateController(registries[f"{resource}.{group}"], signer, self._may)
        return {(group, resource): requests.written}

    def _endpoint(self, resource: Resource) -> Endpoint:
        source = self._sources[(resource.hub or resource).group_resource]
        cache = source if isinstance(source, Cacher) else None
        lister = source if isinstance(source, Uncached) else StoreLister(resource, self.storage, self.metrics)
        allocator = None
        if resource.group_resource == "services":
            allocator = self._service_allocator()
        made_by = ViewRegistry if resource.hub is not None else Registry
        purpose = resource.group_resource + (resource.version if resource.hub is not None else "")
        registry = made_by(
            resource,
            strategy_for(resource),
            self.storage,
            cache,
            self._admission,
            self.clock,
            self._random(f"registry of {purpose}"),
            allocator,
            ttl_s=self.options.event_ttl_s if (resource.hub or resource).group_resource == "events" else 0.0,
        )
        return Endpoint(resource, registry, Reader(resource, lister, cache), source)

    def _custom_source(self, resource: Resource) -> Cacher:
        self.storage.serve_also(resource)
        source = self._source(resource)
        assert isinstance(source, Cacher)
        return source

    def _custom_endpoint(
        self, resource: Resource, strategy: Strategy, source: Cacher, made_by: type[Registry]
    ) -> Endpoint:
        purpose = f"registry of {resource.group_resource} {resource.version}"
        registry = made_by(
            resource, strategy, self.storage, source, self._admission, self.clock, self._random(purpose)
        )
        lister = StoreLister(resource, self.storage, self.metrics)
        return Endpoint(resource, registry, Reader(resource, lister, source), source)

    def _service_allocator(self) -> ServiceAllocator:
        cacher = self._cacher("ipaddresses.networking.k8s.io")
        return ServiceAllocator(
            self.options.service_cidr,
            self._endpoint(cacher.resource).registry,
            lambda address: cacher.get(cacher.resource.key(None, address)) is not None,
            self.storage,
            self.host,
            loopback_user(),
            self._random("allocator"),
        )

    def _make_chain(self) -> Chain:
        return Chain(
            self.clock,
            self.host,
            self.authenticator,
            Impersonation(self.metrics, self.authorizer),
            self.flow,
            self.authorizer,
            self.router,
            self._page,
            RequestMetrics(self.metrics),
            self._random("audit ids"),
            self.options.request_timeout_s,
            self.options.protobuf_answers,
        )

    def _make_faults(self, store: Store) -> Faults:
        faults = Faults(self.clock, f"{self.options.seed}/{self.options.name}", self.metrics)

        def install(handler: Callable[[Exchange], object]) -> None:
            self.handle = handler

        RequestFaults(faults, self.clock, self.chain.handle, install)
        disturb_store(faults, store)
        disturb_informer(faults, self.node_authorizer)
        disturb_caches(faults, self._corruptible)
        return faults

    def _corruptible(self, group_resource: str) -> Cacher | None:
        source = self._sources.get(group_resource)
        return source if isinstance(source, Cacher) else None

    # ---- state -----------------------------------------------------------------------------------------------------
    def _check_store(self) -> str | None:
        return None if self.storage.outage is None else str(self.storage.outage)

    def _check_shutdown(self) -> str | None:
        return "process is shutting down" if self.shutting_down else None

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
            elif isinstance(source, Uncached):  # how large they are nobody estimates
                self.flow.counts.set(source.resource.group, source.resource.resource, source.objects, 0)
        self.clock.call_at(self.clock.now() + COUNT_PERIOD_S, self._count_objects)

    def _charge_watches(self) -> None:
        """What open watches cost at rest, each second."""
        if not self._stopped:
            self.host.charge(self.host.costs.watch_idle_us * self.chain.open_watches, WATCH)
            self.clock.call_at(self.clock.now() + 1.0, self._charge_watches)

    def _load(self) -> Load:
        cachers = [source for source in self._sources.values() if isinstance(source, Cacher)]
        cached = sum(cacher.size_bytes for cacher in cachers)
        snapshots = sum(cacher.snapshot_bytes for cacher in cachers)
        connections, handshake_errors = self._connections()
        self.metrics.apiserver_tls_handshake_errors_total.labels().value = handshake_errors
        return Load(self.chain.open_watches, cached, connections, snapshots)
