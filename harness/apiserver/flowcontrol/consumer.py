"""Follows the configuration's objects and has flow control go on with them.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/apf_controller.go:280-350 (informers), 505-640 (one worker: everything is
digested anew after any change; conditions of flow schemas are written where they are not true any more).
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from random import Random
from typing import Any

import msgspec

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.clock import Clock, spawn
from harness.apiserver.flowcontrol.config import (
    BrokenLevel,
    Condition,
    FlowSchema,
    PriorityLevel,
    SchemaObject,
    read_level,
    read_schema,
)
from harness.apiserver.flowcontrol.controller import FlowController
from harness.apiserver.informer import Followed, Following
from harness.apiserver.registry import Caller, Registry
from harness.apiserver.store.core import StoreError
from harness.wire.rfc3339 import seconds
from harness.wire.status import StatusError
from harness.wire.watching import DELETED

Object = dict[str, Any]
MANAGER = "api-priority-and-fairness-config-consumer-v1"
WRITES_A_MINUTE = 6  # to one schema's status: members that disagree must not fight faster
RETRY_S = 0.2  # and doubled with each failure (NewTypedItemExponentialFailureRateLimiter)
MAX_RETRY_S = 60.0


class Consumer:
    """Both kinds as the member's informers have them. `synced` once the first configuration has been digested."""

    def __init__(
        self,
        clock: Clock,
        flow: FlowController,
        levels: Followed,
        schemas: Followed,
        registry: Registry,
        user: UserInfo,
        rng: Random,
    ) -> None:
        self.synced = False
        self._clock = clock
        self._flow = flow
        self._registry = registry
        self._user = user
        self._rng = rng
        self._levels: dict[str, PriorityLevel] = {}
        self._schemas: dict[str, SchemaObject] = {}
        self._following = (
            Following(clock, levels, self._on_level, partial(self._listed, levels, self._levels)),
            Following(clock, schemas, self._on_schema, partial(self._listed, schemas, self._schemas)),
        )
        self._due: float | None = None
        self._writes: deque[tuple[float, str]] = deque()
        self._failures = 0
        self._telling = False  # one worker: what changes meanwhile waits
        self._stopped = False

    def start(self) -> None:
        for following in self._following:
            following.start()

    def stop(self) -> None:
        self._stopped = True
        for following in self._following:
            following.stop()

    # ---- informers -----------------------------------------------------------------------------------------------
    def _on_level(self, kind: str, obj: CachedObject) -> None:
        self._levels.pop(obj.name, None)
        if kind != DELETED:
            try:
                self._levels[obj.name] = read_level(obj.body)
            except BrokenLevel as error:
                print(f"ignoring PriorityLevelConfiguration {obj.name}: {error}", file=sys.stderr, flush=True)
        self._changed()

    def _on_schema(self, kind: str, obj: CachedObject) -> None:
        if kind == DELETED:
            self._schemas.pop(obj.name, None)
        else:
            self._schemas[obj.name] = read_schema(obj.body)
        self._changed()

    def _listed(self, followed: Followed, known: dict[str, Any], keys: set[str]) -> None:
        for name in [name for name in known if followed.resource.key(None, name) not in keys]:
            del known[name]
        self._changed()

    def _changed(self, after_s: float = 0.0) -> None:
        """Digest soon: once for all that comes at the same time."""
        if not all(following.synced for following in self._following):
            return
        if self._telling:
            self._due = self._clock.now()
            return
        due = self._clock.now() + after_s
        if self._due is None or due < self._due:
            self._due = due
            self._clock.call_at(due, self._digest, due)

    # ---- the worker ----------------------------------------------------------------------------------------------
    def _digest(self, due: float) -> None:
        if self._stopped or due != self._due:  # superseded by an earlier one
            return
        self._due = None
        self._telling = True
        schemas = [found.schema for found in self._schemas.values()]
        dangling = self._flow.configure(self._levels.values(), schemas)
        self.synced = True
        spawn(self._work(dangling))

    async def _work(self, dangling: frozenset[str]) -> None:
        again_s = await self._tell(dangling)
        self._telling = False
        if self._due is not None:  # something has changed meanwhile
            self._due = None
            again_s = 0.0
        elif not again_s:
            return
        if not self._stopped:
            self._changed(again_s)

    async def _tell(self, dangling: frozenset[str]) -> float:
        """Write the conditions that are not as they should be; after how many seconds to try again, 0 for not."""
        again_s = 0.0
        for found in list(self._schemas.values()):
            schema = found.schema
            condition = dangling_condition(schema, schema.name in dangling, seconds(self._clock.wall()))
            if _same(found.dangling, condition):
                continue
            if self._too_often(schema.name):
                again_s = again_s or self._rng.uniform(30.0, 75.0)
                continue
            self._writes.append((self._clock.now(), schema.name))
            try:
                await self._write(schema, condition)
                self._failures = 0
            except (StatusError, StoreError) as error:
                if isinstance(error, StatusError) and error.status.code == 404:
                    continue  # deleted meanwhile, which we shall hear of
                again_s = min(MAX_RETRY_S, RETRY_S * 2**self._failures)
                self._failures += 1
        return again_s

    async def _write(self, schema: FlowSchema, condition: Condition) -> None:
        caller = Caller(self._user, name=schema.name, subresource="status", manager=MANAGER)
        await self._registry.update(caller, lambda old, _: _with_condition(old, condition))

    def _too_often(self, name: str) -> bool:
        while self._writes and self._writes[0][0] < self._clock.now() - 60.0:
            self._writes.popleft()
        return sum(written == name for _, written in self._writes) >= WRITES_A_MINUTE


def dangling_condition(schema: FlowSchema, dangling: bool, now: str) -> Condition:
    """What a flow schema's status says of its level."""
    what = f'This FlowSchema references the PriorityLevelConfiguration object named "{schema.level}"'
    if dangling:
        return Condition("Dangling", "True", now, "NotFound", f"{what} but there is no such object")
    return Condition("Dangling", "False", now, "Found", f"{what} and it exists")


def _same(said: Condition | None, condition: Condition) -> bool:
    return said is not None and (said.status, said.reason, said.message) == (
        condition.status,
        condition.reason,
        condition.message,
    )


def _with_condition(old: Object, condition: Condition) -> Object:
    status = old.get("status") or {}
    others = [each for each in status.get("conditions") or () if each.get("type") != condition.type]
    return {**old, "status": {**status, "conditions": [*others, msgspec.to_builtins(condition)]}}
