"""One phase: the objects that it creates, updates or deletes, paced by its tuning set.

Mirrors clusterloader2/pkg/test/simple_test_executor.go: ExecutePhase, ExecuteObject.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from harness.client.limiter import TokenBucket
from harness.clusterloader.config import Config, namespaces_of
from harness.clusterloader.kinds import Kind, kind_of_object
from harness.clusterloader.objects import Reply, items_of
from harness.clusterloader.runtime import FailureLog, Progress, Runtime
from harness.clusterloader.schema import GlobalQPSLoad, ObjectSpec, ParallelismLimitedLoad, Phase
from harness.clusterloader.state import Instances, ObjectState
from harness.clusterloader.tasks import Future, Task
from harness.clusterloader.tuning import schedule
from harness.wire.errors import ConfigError


class Operation(Enum):
    """The value is the word of upstream's error messages."""

    CREATE = "creation"
    PATCH = "updating"
    DELETE = "deletion"


class Bundle(NamedTuple):
    """One operation of a phase: all objects of one replica of a bundle, in the order given."""

    operation: Operation
    namespace: str
    replica: int
    objects: tuple[ObjectSpec, ...]


class PhaseError(Exception):
    """A phase that cannot start."""


class PhaseRunner:
    """Runs one phase. `buckets` are the limiters of globalQPSLoad tuning sets, shared by all phases of a test."""

    def __init__(
        self,
        runtime: Runtime,
        config: Config,
        state: ObjectState,
        buckets: dict[str, TokenBucket],
        prefix: str,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._state = state
        self._buckets = buckets
        self._prefix = prefix
        self._failures = FailureLog()

    async def run(self, phase: Phase, step: str) -> FailureLog:
        """Every object operation of the phase; its failures, none of which stops the others."""
        try:
            bundles, counts = await self._plan(phase)
        except (PhaseError, ConfigError) as error:
            self._failures.add(str(error))
            return self._failures
        what = " + ".join(item.basename for item in phase.object_bundle)
        progress = Progress(self._runtime, step, what)
        start = self._runtime.now
        self._runtime.note("phase-started", step=step, objects=what, operations=len(bundles))
        await self._pace(phase.tuning_set, bundles, progress)
        seconds = self._runtime.now - start
        self._runtime.note(
            "phase-finished",
            step=step,
            objects=what,
            operations=len(bundles),
            seconds=seconds,
            failures=len(self._failures),
        )
        for instances, count in counts.items():
            self._state.set(instances, count)
        return self._failures

    async def _plan(self, phase: Phase) -> tuple[list[Bundle], dict[Instances, int]]:
        """What to do, and the replica counts that hold afterwards (also where an operation fails, as upstream)."""
        wanted = phase.replicas_per_namespace
        objects = tuple(phase.object_bundle)
        bundles: list[Bundle] = []
        counts: dict[Instances, int] = {}
        for namespace in namespaces_of(phase, self._prefix):
            current = await self._replicas(namespace, objects)
            if current is not None:
                bundles += _operations(namespace, current, wanted, objects)
            counts.update((self._instances(namespace, item), wanted) for item in objects)
        return bundles, counts

    async def _replicas(self, namespace: str, objects: tuple[ObjectSpec, ...]) -> int | None:
        """How many replicas the bundle has; None for an empty bundle. Raises PhaseError where its objects differ."""
        found: list[tuple[str, int]] = []
        for item in objects:
            count = self._state.get(self._instances(namespace, item))
            found.append((item.basename, await self._listed(namespace, item) if count is None else count))
        for (name, count), (previous, other) in zip(found[1:], found, strict=False):
            if count != other:
                raise PhaseError(f"bundle error: {name} has {count} replicas while {previous} has {other}")
        return found[0][1] if found else None

    async def _listed(self, namespace: str, item: ObjectSpec) -> int:
        """How many objects there are that no phase created (getReplicaCountOfNewObject)."""
        if item.list_unknown_object_options is None:
            return 0
        selector = item.list_unknown_object_options.label_selector.text
        reply = await self._runtime.api.list(self._kind(item).ref, namespace, labels=selector)
        return len(items_of(reply))

    def _kind(self, item: ObjectSpec) -> Kind:
        raw = self._config.templates.raw_objects(item.object_template_path)
        if not raw:
            raise PhaseError(f"no objects found in {item.object_template_path}")
        return kind_of_object(raw[0])

    def _instances(self, namespace: str, item: ObjectSpec) -> Instances:
        kind = self._kind(item)
        return Instances(namespace, item.basename, kind.kind, kind.ref.group)

    # ---- pace ------------------------------------------------------------------------------------------------------
    async def _pace(self, tuning_set: str, bundles: list[Bundle], progress: Progress) -> None:
        load = self._config.tuning_sets[tuning_set].load
        total, ended = len(bundles), 0

        async def run_one(bundle: Bundle) -> None:
            nonlocal ended
            await self._bundle(bundle)
            ended += 1
            progress.report(ended, total)

        if isinstance(load, ParallelismLimitedLoad):
            jobs: Iterator[Coroutine[Future[Any], None, None]] = map(run_one, bundles)
            workers = min(load.parallelism_limit, total)
            await self._join([self._runtime.tasks.spawn(_work(jobs)) for _ in range(workers)])
            return
        started: list[Task[None]] = []
        async for bundle in self._due(tuning_set, bundles):
            started.append(self._runtime.tasks.spawn(run_one(bundle)))
        await self._join(started)

    async def _due(self, tuning_set: str, bundles: list[Bundle]) -> AsyncIterator[Bundle]:
        """The bundles, each at its time; how late each comes is a sample."""
        load = self._config.tuning_sets[tuning_set].load
        tasks = self._runtime.tasks
        start = tasks.now
        if isinstance(load, GlobalQPSLoad):
            bucket = self._buckets.setdefault(tuning_set, TokenBucket(load.qps, load.burst))
            for bundle in bundles:
                at = tasks.now + bucket.reserve(tasks.now)
                await tasks.until(at)
                self._late(tuning_set, at)
                yield bundle
            return
        plan = schedule(load, len(bundles), self._runtime.rng)
        assert plan is not None
        for due_s, index in sorted(zip(plan.due_s, range(len(bundles)), strict=True)):
            await tasks.until(start + due_s)
            self._late(tuning_set, start + due_s)
            yield bundles[index]
        await tasks.until(start + plan.length_s)

    def _late(self, tuning_set: str, due: float) -> None:
        late_ms = max(0.0, self._runtime.now - due) * 1000
        self._runtime.sample("operation_late_ms", late_ms, ("tuning_set", tuning_set))

    @staticmethod
    async def _join(tasks: list[Task[None]]) -> None:
        for task in tasks:
            await task

    # ---- objects ---------------------------------------------------------------------------------------------------
    async def _bundle(self, bundle: Bundle) -> None:
        for item in bundle.objects:
            failed = await self._object(bundle, item)
            if failed and bundle.operation is not Operation.DELETE:
                return  # the rest of a bundle rests on what failed

    async def _object(self, bundle: Bundle, item: ObjectSpec) -> bool:
        """One template for one replica, all its documents; True where something failed."""
        name = f"{item.basename}-{bundle.replica}"
        try:
            objects = self._objects(bundle, item, name)
        except (ConfigError, PhaseError) as error:
            self._failures.add(str(error), "template")
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
                self._failed(bundle, kind, name, reply)
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

    def _failed(self, bundle: Bundle, kind: Kind, name: str, reply: Reply) -> None:
        word = bundle.operation.value
        self._failures.add(
            f"namespace {bundle.namespace} {kind.kind} {name} {word} error: {reply.failure}",
            f"{kind.kind} {word} error {reply.reason}",
        )


async def _work(jobs: Iterator[Coroutine[Future[Any], None, None]]) -> None:
    for job in jobs:
        await job


def _operations(
    namespace: str, current: int, wanted: int, objects: tuple[ObjectSpec, ...]
) -> Iterator[Bundle]:
    """Tail deleted with each bundle reversed; equal: every replica patched; more wanted: the missing ones created."""
    for index in range(wanted, current):
        yield Bundle(Operation.DELETE, namespace, index, objects[::-1])
    if current == wanted:
        for index in range(wanted):
            yield Bundle(Operation.PATCH, namespace, index, objects)
    for index in range(current, wanted):
        yield Bundle(Operation.CREATE, namespace, index, objects)
