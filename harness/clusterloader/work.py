"""Doing operations: one executor's share of a phase, each operation at its time, each object by its requests.

Mirrors clusterloader2/pkg/test/simple_test_executor.go: ExecuteObject, and pkg/tuningset. When operations are due is
fixed beforehand and the same for every executor; each does those of its share.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from harness.client.limiter import TokenBucket
from harness.clusterloader.bundles import Bundle, Operation, Replicas, bundles_of
from harness.clusterloader.config import Config
from harness.clusterloader.kinds import Kind, kind_of_object
from harness.clusterloader.objects import Reply
from harness.clusterloader.runtime import FailureLog, Runtime
from harness.clusterloader.schema import GlobalQPSLoad, Load, ObjectSpec, ParallelismLimitedLoad, Phase
from harness.clusterloader.shares import Share, part
from harness.clusterloader.tasks import Future, Task
from harness.clusterloader.tuning import schedule
from harness.wire.errors import ConfigError


class PhaseError(Exception):
    """A phase that cannot start."""


class Piece(NamedTuple):
    """One share of a phase: `replicas` are what there is, `seed` draws the schedule, which begins at `start_s`."""

    phase: Phase
    replicas: tuple[Replicas, ...]
    seed: int
    start_s: float
    share: Share = Share()

    def numbered(self) -> list[tuple[int, Bundle]]:
        """The operations of this share, each with its place among all of the phase."""
        objects = tuple(self.phase.object_bundle)
        every = bundles_of(self.replicas, self.phase.replicas_per_namespace, objects)
        return [(place, bundle) for place, bundle in enumerate(every) if self.share.has(bundle)]

    @property
    def total(self) -> int:
        """Operations of the whole phase."""
        wanted = self.phase.replicas_per_namespace
        return sum(wanted if there == wanted else abs(wanted - there) for _, there in self.replicas)


class Work:
    """What one executor does of a test. `buckets` are its limiters of globalQPSLoad tuning sets, by name, shared by
    all phases."""

    def __init__(self, runtime: Runtime, config: Config, buckets: dict[str, TokenBucket]) -> None:
        self._runtime = runtime
        self._config = config
        self._buckets = buckets

    async def run(self, piece: Piece, failures: FailureLog, ended: Callable[[], None]) -> None:
        """Do a piece; a failure of one operation does not stop the others. `ended` is called after each of them."""
        load = part(self._config.tuning_sets[piece.phase.tuning_set].load, piece.share)
        tasks = self._runtime.tasks

        async def run_one(bundle: Bundle) -> None:
            await self._bundle(bundle, failures)
            ended()

        if isinstance(load, ParallelismLimitedLoad):
            await tasks.until(piece.start_s)
            bundles = [bundle for _, bundle in piece.numbered()]
            jobs: Iterator[Coroutine[Future[Any], None, None]] = map(run_one, bundles)
            workers = min(load.parallelism_limit, len(bundles))
            await _join([tasks.spawn(_work(jobs)) for _ in range(workers)])
            return
        started: list[Task[None]] = []
        async for bundle in self._due(piece, load):
            started.append(tasks.spawn(run_one(bundle)))
        await _join(started)

    # ---- pace ------------------------------------------------------------------------------------------------------
    async def _due(self, piece: Piece, load: Load) -> AsyncIterator[Bundle]:
        """The bundles, each at its time; how late each comes is a sample."""
        tasks, start = self._runtime.tasks, piece.start_s
        if isinstance(load, GlobalQPSLoad):
            await tasks.until(start)
            bucket = self._buckets.setdefault(piece.phase.tuning_set, TokenBucket(load.qps, load.burst))
            for _, bundle in piece.numbered():
                at = tasks.now + bucket.reserve(tasks.now)
                await tasks.until(at)
                self._late(piece, at)
                yield bundle
            return
        plan = schedule(load, piece.total, random.Random(piece.seed))
        assert plan is not None
        numbered = piece.numbered()
        mine = sorted((plan.due_s[place], index) for index, (place, _) in enumerate(numbered))
        for due_s, index in mine:
            await tasks.until(start + due_s)
            self._late(piece, start + due_s)
            yield numbered[index][1]
        await tasks.until(start + plan.length_s)

    def _late(self, piece: Piece, due: float) -> None:
        late_ms = max(0.0, self._runtime.now - due) * 1000
        labels = [("tuning_set", piece.phase.tuning_set)]
        if piece.share.of > 1:
            labels.append(("executor", str(piece.share.number)))
        self._runtime.sample("operation_late_ms", late_ms, *labels)

    # ---- objects ---------------------------------------------------------------------------------------------------
    async def _bundle(self, bundle: Bundle, failures: FailureLog) -> None:
        for item in bundle.objects:
            failed = await self._object(bundle, item, failures)
            if failed and bundle.operation is not Operation.DELETE:
                return  # the rest of a bundle rests on what failed

    async def _object(self, bundle: Bundle, item: ObjectSpec, failures: FailureLog) -> bool:
        """One template for one replica, all its documents; True where something failed."""
        name = f"{item.basename}-{bundle.replica}"
        try:
            objects = self._objects(bundle, item, name)
        except (ConfigError, PhaseError) as error:
            failures.add(str(error), "template")
            return True
        failed = False
        for kind, body in objects:
            start = self._runtime.now
            reply = await self._send(bundle, kind, name, body)
            elapsed_ms = (self._runtime.now - start) * 1000
            labels = (("operation", bundle.operation.name.lower()), ("kind", kind.kind))
            self._runtime.sample("object_operation_ms", elapsed_ms, *labels)
            if not reply.ok:
                failed = True
                word = bundle.operation.value
                failures.add(
                    f"namespace {bundle.namespace} {kind.kind} {name} {word} error: {reply.failure}",
                    f"{kind.kind} {word} error {reply.reason}",
                )
        return failed

    def _objects(self, bundle: Bundle, item: ObjectSpec, name: str) -> Sequence[tuple[Kind, bytes]]:
        """Kind and body of each document of a template; bodies are empty for deletions."""
        templates, path = self._config.templates, item.object_template_path
        objects: Sequence[tuple[Kind, bytes]]
        if bundle.operation is Operation.DELETE:
            objects = [(kind_of_object(obj), b"") for obj in templates.raw_objects(path)]
        else:
            mapping = self._config.object_mapping(item, bundle.namespace, bundle.replica)
            objects = templates.objects(path, mapping, name)
        if len({kind for kind, _ in objects}) < len(objects):
            raise PhaseError(f"{templates.file(path)}: duplicate kind in a template of several documents")
        return objects

    async def _send(self, bundle: Bundle, kind: Kind, name: str, body: bytes) -> Reply:
        api = self._runtime.api
        if bundle.operation is Operation.CREATE:
            return await api.create(kind.ref, bundle.namespace, body)
        if bundle.operation is Operation.PATCH:
            return await api.patch(kind.ref, bundle.namespace, name, msgspec.json.decode(body))
        return await api.delete(kind.ref, bundle.namespace, name)


async def _join(tasks: list[Task[None]]) -> None:
    for task in tasks:
        await task


async def _work(jobs: Iterator[Coroutine[Future[Any], None, None]]) -> None:
    for job in jobs:
        await job
