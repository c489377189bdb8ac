"""One member's process: ``python -m harness.apiserver.memberprocess``, told what to do as `childprocess` says.

Composition root of an emulated kube-apiserver: an asyncio loop as clock, the store's socket, the core, the listener.
On SIGTERM it goes at once, watches and all: a run that is over wants its ports back.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource

from harness.apiserver import childprocess
from harness.apiserver.capacity import Host
from harness.apiserver.clock import Promise
from harness.apiserver.config import MemberConfig
from harness.apiserver.costs import Costs
from harness.apiserver.loopclock import SLACK_S, LoopClock
from harness.apiserver.member import Member
from harness.apiserver.options import MemberOptions
from harness.apiserver.server import serve, server_context
from harness.apiserver.storesocket import connect

GC_THRESHOLD = 50_000
"""Allocations between collections of the young generation. Objects here live by reference counts; the default of 700
had the collector walk thousands of watches several times a second."""


async def run_member(config: MemberConfig, stop: asyncio.Event) -> None:
    """Serve until `stop` is set. Raises ConfigError where the address cannot be bound."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    clock = LoopClock(asyncio.get_running_loop())
    store = await connect(config.store_socket, config.name)
    member: Member | None = None

    context = server_context(config.cert, config.key)
    server = await serve(
        lambda exchange: member.handle(exchange) if member else exchange.abort(),
        config.host,
        config.port,
        context,
        clock,
    )
    host = Host(clock, config.cores, Costs.parse(config.costs), slack_s=SLACK_S)
    member = Member(_options(config, server.port), clock, store, host)
    await _settled(member.start())
    gc.collect()
    gc.freeze()  # what is there now stays; it need not be walked again
    childprocess.say({"ready": True, "port": server.port, "pid": os.getpid()})
    await stop.wait()
    server.close()
    await server.wait_closed()
    member.stop()
    store.close()


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
        try:
            source.result()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(None)

    promise.then(settle)
    await future


if __name__ == "__main__":
    childprocess.main(MemberConfig, run_member)
