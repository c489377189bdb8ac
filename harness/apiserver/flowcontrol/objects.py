"""Flow control's configuration as objects, of one member: made, kept, followed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from random import Random

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.cache.cachedobject import Selection
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.clock import Clock, Task, sleep, spawn
from harness.apiserver.flowcontrol.consumer import Consumer
from harness.apiserver.flowcontrol.controller import FlowController
from harness.apiserver.flowcontrol.ensurer import PERIOD_S, Ensurer, Kind, wanted_levels, wanted_schemas
from harness.apiserver.flowcontrol.inflight import MaxInFlight
from harness.apiserver.registry import Registry
from harness.apiserver.store.core import StoreError
from harness.wire.status import StatusError

LEVELS = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
SCHEMAS = "flowschemas.flowcontrol.apiserver.k8s.io"


class FlowObjects:
    """`start()` makes the objects and begins to follow them; `synced` once flow control goes by them. The limits that
    are left without priority and fairness do not go by them, but the API has them all the same."""

    def __init__(
        self,
        clock: Clock,
        flow: FlowController | MaxInFlight,
        cachers: Mapping[str, Cacher],
        registries: Mapping[str, Registry],
        user: UserInfo,
        rng: Random,
    ) -> None:
        self._clock = clock
        levels, schemas = cachers[LEVELS], cachers[SCHEMAS]
        self._ensurer = Ensurer(
            Kind(registries[SCHEMAS], lambda: _bodies(schemas), wanted_schemas()),
            Kind(registries[LEVELS], lambda: _bodies(levels), wanted_levels()),
            user,
        )
        self._consumer: Consumer | None = None
        if isinstance(flow, FlowController):
            self._consumer = Consumer(clock, flow, levels, schemas, registries[SCHEMAS], user, rng)
        self._upkeep: Task[None] | None = None

    @property
    def synced(self) -> bool:
        return self._consumer is None or self._consumer.synced

    async def start(self) -> None:
        """Raises StatusError and StoreError while the objects cannot be made; call it again then."""
        await self._ensurer.ensure()
        if self._consumer is not None:
            self._consumer.start()
        self._upkeep = spawn(self._keep())

    def stop(self) -> None:
        if self._consumer is not None:
            self._consumer.stop()
        if self._upkeep is not None:
            self._upkeep.cancel()

    async def _keep(self) -> None:
        while True:
            await sleep(self._clock, PERIOD_S)
            try:
                await self._ensurer.ensure()
            except (StatusError, StoreError) as error:  # tried again with the next turn
                print(f"flow control's objects: {error}", file=sys.stderr, flush=True)


def _bodies(cacher: Cacher) -> dict[str, bytes]:
    return {obj.name: obj.body for obj in cacher.cache.list(Selection()).items}
