"""One phase: which operations it takes, and every executor's share of them.

Mirrors clusterloader2/pkg/test/simple_test_executor.go: ExecutePhase.
"""

from __future__ import annotations

from harness.clusterloader.bundles import Replicas
from harness.clusterloader.config import Config, namespaces_of
from harness.clusterloader.crew import Crew, Job, MakeOrder
from harness.clusterloader.kinds import Kind, kind_of_object
from harness.clusterloader.messages import Order
from harness.clusterloader.objects import items_of
from harness.clusterloader.runtime import FailureLog, Progress, Runtime
from harness.clusterloader.schema import ObjectSpec, Phase
from harness.clusterloader.shares import Share, digest, parts_of, seed_of
from harness.clusterloader.state import Instances, ObjectState
from harness.clusterloader.tasks import Task
from harness.clusterloader.work import PhaseError, Piece, Work
from harness.wire.errors import ConfigError


class PhaseRunner:
    """Runs phases. `crew` are the executors beside this one, whose share `work` does; `seed` is the test's."""

    def __init__(
        self,
        runtime: Runtime,
        config: Config,
        state: ObjectState,
        work: Work,
        crew: Crew,
        prefix: str,
        seed: int,
    ) -> None:
        self._runtime = runtime
        self._config = config
        self._state = state
        self._work = work
        self._crew = crew
        self._prefix = prefix
        self._seed = seed

    async def run(self, phase: Phase, step: str, place: tuple[int, int]) -> FailureLog:
        """Every object operation of the phase; its failures, none of which stops the others. `place` is the step's and
        the phase's number in the config, from 0."""
        failures = FailureLog()
        try:
            replicas, counts = await self._plan(phase)
        except (PhaseError, ConfigError) as error:
            failures.add(str(error))
            return failures
        what = " + ".join(item.basename for item in phase.object_bundle)
        seed = seed_of(self._seed, *place)
        of = parts_of(self._config.tuning_sets[phase.tuning_set].load, self._crew.of)
        start = self._runtime.now if of == 1 else await self._crew.start_time()
        piece = Piece(phase, replicas, seed, start, Share(0, of))
        self._runtime.note("phase-started", step=step, objects=what, operations=piece.total)
        await self._carry_out(piece, place, Progress(self._runtime, step, what), failures)
        self._runtime.note(
            "phase-finished",
            step=step,
            objects=what,
            operations=piece.total,
            seconds=self._runtime.now - start,
            failures=len(failures),
        )
        for instances, count in counts.items():
            self._state.set(instances, count)
        return failures

    # ---- what to do ------------------------------------------------------------------------------------------------
    async def _plan(self, phase: Phase) -> tuple[tuple[Replicas, ...], dict[Instances, int]]:
        """What there is, and the replica counts that hold afterwards (also where an operation fails, as upstream)."""
        objects = tuple(phase.object_bundle)
        found: list[Replicas] = []
        counts: dict[Instances, int] = {}
        for namespace in namespaces_of(phase, self._prefix):
            current = await self._replicas(namespace, objects)
            if current is not None:
                found.append(Replicas(namespace, current))
            counts.update(
                (self._instances(namespace, item), phase.replicas_per_namespace) for item in objects
            )
        return tuple(found), counts

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

    # ---- who does it -----------------------------------------------------------------------------------------------
    async def _carry_out(
        self, piece: Piece, place: tuple[int, int], progress: Progress, failures: FailureLog
    ) -> None:
        """All shares at once; ends when the last one has."""
        total, done = piece.total, 0
        jobs: list[Job] = []

        def tell() -> None:
            progress.report(done + sum(job.done for job in jobs), total)

        def ended() -> None:
            nonlocal done
            done += 1
            tell()

        if piece.share.of == 1:
            await self._work.run(piece, failures, ended)
            return
        jobs += self._crew.order(self._orders(piece, place), piece.share.of, tell)
        mine: Task[None] = self._runtime.tasks.spawn(self._work.run(piece, failures, ended))
        await self._crew.finish(jobs, failures)
        await mine

    def _orders(self, piece: Piece, place: tuple[int, int]) -> MakeOrder:
        phase_digest = digest(piece.phase)

        def make(number: int, share: int, ahead_s: float) -> Order:
            return Order(
                number=number,
                step=place[0],
                phase=place[1],
                digest=phase_digest,
                replicas=piece.replicas,
                seed=piece.seed,
                start_s=piece.start_s + ahead_s,
                share=share,
                of=piece.share.of,
                executors=self._crew.of,
            )

        return make
