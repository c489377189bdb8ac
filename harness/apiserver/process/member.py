"""One member's process: ``python -m harness.apiserver.process.member``, told what to do as `child` says.

Composition root of an emulated kube-apiserver: an asyncio loop as clock, the store's socket, the core, the listener.
On SIGTERM it goes at once, watches and all: a run that is over wants its ports back.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from functools import partial

from harness.apiserver.clock import Promise
from harness.apiserver.member import Member
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import Costs
from harness.apiserver.options import MemberOptions
from harness.apiserver.process import child
from harness.apiserver.process.config import MemberConfig
from harness.apiserver.process.loopclock import SLACK_S, LoopClock
from harness.apiserver.process.server import Server, serve, server_context
from harness.apiserver.store.core import StoreError
from harness.apiserver.store.socketclient import connect
from harness.wire.errors import SwarmletError

GC_THRESHOLD = 50_000
"""Allocations between collections of the young generation. Objects here live by reference counts; the default of 700
had the collector walk thousands of watches several times a second."""


async def run_member(config: MemberConfig, stop: asyncio.Event) -> None:
    """Serve until `stop` is set. Raises ConfigError where the address cannot be bound, SwarmletError where the store
    is gone before the member was ready."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    clock = LoopClock(asyncio.get_running_loop())
    host = Host(clock, config.cores, Costs.parse(config.costs), slack_s=SLACK_S)
    store = await connect(config.store_socket, config.name)
    member: Member | None = None
    server = await serve(
        lambda exchange: member.handle(exchange) if member else exchange.abort(),
        config.host,
        config.port,
        server_context(config.cert, config.key),
        clock,
        on_connection=lambda go_on: host.run(host.costs.connect_us, go_on),
    )
    member = Member(_options(config, server.port), clock, store, host)
    member.serve_from(partial(_connections, server))
    try:
        if await _started(member, stop):
            gc.collect()
            gc.freeze()  # what is there now stays; it need not be walked again
            child.say({"ready": True, "port": server.port, "pid": os.getpid()})
            await stop.wait()
    finally:
        server.close()
        await server.wait_closed()
        member.stop()
        store.close()


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
        service_cluster_ip=config.service_cluster_ip,
    )


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
