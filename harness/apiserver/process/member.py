"""One member's process: ``python -m harness.apiserver.process.member``, told what to do as `child` says.

Composition root of an emulated kube-apiserver: an asyncio loop as clock, the store's socket, the core, the listener.
On SIGTERM it shuts down as a kube-apiserver does (`_shut_down`). When its standard input ends it goes at once, watches
and all: a run that is over wants its ports back.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
from functools import partial
from pathlib import Path

from harness.apiserver.auth.nodeauthorizer import NodeAuthorizerOptions
from harness.apiserver.clock import Promise
from harness.apiserver.faults.connections import ConnectionFaults
from harness.apiserver.faults.parts import SkewedClock, disturb_clock
from harness.apiserver.faults.spec import parse_spec
from harness.apiserver.featuregates import FeatureGates
from harness.apiserver.member import Member
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import Costs
from harness.apiserver.options import MemberOptions
from harness.apiserver.process import child
from harness.apiserver.process.config import MemberConfig
from harness.apiserver.process.loopclock import LoopClock
from harness.apiserver.process.priority import yield_to_fleets
from harness.apiserver.process.server import Server, serve, server_context
from harness.apiserver.store.client import Store
from harness.apiserver.store.core import StoreError
from harness.apiserver.store.etcd3.store import connect as connect_etcd
from harness.apiserver.store.socketclient import connect
from harness.wire.errors import ConfigError, SwarmletError

GC_THRESHOLD = 50_000
"""Allocations between collections of the young generation. Objects here live by reference counts; the default of 700
had the collector walk thousands of watches several times a second."""


async def run_member(config: MemberConfig, stop: asyncio.Event) -> None:
    """Serve until `stop` is set. Raises ConfigError where the address cannot be bound, SwarmletError where the store
    is gone before the member was ready."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    yield_to_fleets()
    real = LoopClock(asyncio.get_running_loop(), config.pace)
    clock = SkewedClock(real)
    host = Host(clock, config.cores, Costs.parse(config.costs), slack_s=real.slack_s)
    store: Store
    if config.etcd is None:
        store = await connect(config.store_socket, config.name)
    else:
        store = await connect_etcd(config.etcd, config.index)
    member: Member | None = None
    server = await serve(
        lambda exchange: member.handle(exchange) if member else exchange.abort(),
        config.host,
        config.port,
        server_context(config.cert, config.key, config.client_ca or None),
        clock,
        on_connection=lambda go_on: host.run(host.costs.connect_us, go_on),
    )
    member = Member(_options(config, server.port), clock, store, host)
    member.serve_from(partial(_connections, server))
    _prepare_faults(config, member, clock, server)
    try:
        if await _started(member, stop):
            gc.collect()
            gc.freeze()  # what is there now stays; it need not be walked again
            child.say({"ready": True, "port": server.port, "pid": os.getpid()})
            for spec in map(parse_spec, config.faults):
                member.faults.begin(spec.fault, spec.for_s)
            await _until_told(config, member, server, stop)
    finally:
        server.close()
        await server.wait_closed()
        member.stop()
        store.close()


async def _until_told(config: MemberConfig, member: Member, server: Server, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, or until a SIGTERM has led to the end."""
    loop = asyncio.get_running_loop()
    terminated = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, terminated.set)
    serving = asyncio.ensure_future(_serve_and_shut_down(config, member, server, terminated))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        serving.cancel()
        stopping.cancel()


async def _serve_and_shut_down(
    config: MemberConfig, member: Member, server: Server, terminated: asyncio.Event
) -> None:
    """As a kube-apiserver on SIGTERM (as/server/genericapiserver.go, RunWithContext): /readyz fails at once; requests
    and connections are taken for `shutdown_delay_s` more; then connections are refused and GOAWAY is sent, requests
    under way are served, and the process ends when all connections have, or a minute later. Watches are not ended
    before that: their clients hear nothing until the process is gone."""
    await terminated.wait()
    member.shutting_down = True
    await asyncio.sleep(config.pace.real_s(config.shutdown_delay_s))
    server.shutdown()
    await server.wait_closed()


def _prepare_faults(config: MemberConfig, member: Member, clock: SkewedClock, server: Server) -> None:
    """Faults of what only the process has; each start and end is a line for whoever started us."""
    member.faults.tell = child.say
    disturb_clock(member.faults, clock)
    ConnectionFaults(member.faults, clock, server)
    for text in config.faults:
        parse_spec(text)  # what is wrong is said before anything is served


async def _started(member: Member, stop: asyncio.Event) -> bool:
    """Whether the member has become ready before it was told to stop. Raises SwarmletError where it cannot: a store
    that has gone does not come back. (Once ready, a member outlives its store, as a kube-apiserver does its etcd.)"""
    starting = asyncio.ensure_future(_settled(member.start()))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        return not stop.is_set()
    except StoreError as error:
        raise SwarmletError(f"{member.options.name}: the store has gone: {error}") from None
    finally:
        starting.cancel()
        stopping.cancel()


def _connections(server: Server) -> tuple[int, int]:
    statistics = server.statistics()
    return statistics.connections, statistics.handshake_errors


def _options(config: MemberConfig, port: int) -> MemberOptions:
    return MemberOptions(
        name=config.name,
        admin_token=config.admin_token,
        token_key=config.token_key.encode(),
        cores=config.cores,
        seed=config.seed,
        server_address=f"{config.host}:{port}",
        server_concurrency=config.server_concurrency,
        priority_and_fairness=config.priority_and_fairness,
        node_authorizer=NodeAuthorizerOptions.parse(config.node_authorizer, config.name),
        service_cluster_ip=config.service_cluster_ip,
        default_storage_class=True,  # a pool stands for a cluster, in which a StatefulSet's claims get volumes
        signing_ca=_signing_ca(config),
        client_ca=_read(config.client_ca, "the clients' authority") if config.client_ca else b"",
        signing_duration_s=config.signing_duration_s,
        event_ttl_s=config.event_ttl_s,
        feature_gates=FeatureGates.parse(config.feature_gates),
        protobuf_answers=config.protobuf_answers,
    )


def _signing_ca(config: MemberConfig) -> tuple[bytes, bytes] | None:
    """Raises ConfigError where the files cannot be read."""
    if not config.signing_key:
        return None
    what = "the signing authority"
    return _read(config.client_ca, what), _read(config.signing_key, what)


def _read(path: str, what: str) -> bytes:
    """Raises ConfigError where it cannot be."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{what}: {error}") from None


async def _settled(promise: Promise[None]) -> None:
    """Await a promise of the core from asyncio."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(source: Promise[None]) -> None:
        if future.done():  # nobody waits any more
            return
        try:
            source.result()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(None)

    promise.then(settle)
    await future


if __name__ == "__main__":
    child.main(MemberConfig, run_member)
