"""What a test will do, before it does anything: operations, requests, and how long they take at the least.

The counts are those of a run in which every operation succeeds: the state is played through step by step, as the
executor keeps it. Times are the tuning sets' and the clients' limits'; how long pods take to start, nobody knows
before, so a step that waits for them is given as "until" and counted as nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from harness.clusterloader.config import Config, namespaces_of
from harness.clusterloader.durations import parse_duration
from harness.clusterloader.kinds import kind_of_object
from harness.clusterloader.measurements import METHODS, PROMETHEUS
from harness.clusterloader.measurements.base import Params
from harness.clusterloader.measurements.chaosmonkey import METHOD as CHAOS_MONKEY
from harness.clusterloader.measurements.chaosmonkey import failure_of
from harness.clusterloader.measurements.skipped import reason
from harness.clusterloader.measurements.testmetrics import PARTS
from harness.clusterloader.objects import CLIENT_QPS, clients_for
from harness.clusterloader.schema import (
    GlobalQPSLoad,
    Load,
    MeasurementInstance,
    ObjectSpec,
    ParallelismLimitedLoad,
    Phase,
    PoissonLoad,
    QPSLoad,
    RandomizedLoad,
    RandomizedTimeLimitedLoad,
    Step,
    SteppedLoad,
    TimeLimitedLoad,
)
from harness.clusterloader.state import Instances, ObjectState

_REQUESTS = {"create": 1, "patch": 2, "delete": 1}  # a patch reads first
_WAITS = ("WaitFor", "JobLifecycleLatency", "Exec", "RestartApiserver")


class PhasePlan(NamedTuple):
    """One phase: `operations` by create, patch and delete of objects; `bundles` are what its tuning set paces."""

    objects: str
    tuning_set: str
    bundles: int
    operations: Counter[str]
    seconds: float

    @property
    def requests(self) -> int:
        return sum(_REQUESTS[kind] * count for kind, count in self.operations.items())


class CallPlan(NamedTuple):
    """One call of a measurement; `skipped` is why it is not done, "" where it is; `waits` where it ends when the
    cluster is as wanted."""

    method: str
    identifier: str
    action: str
    skipped: str
    waits: bool
    seconds: float


class StepPlan(NamedTuple):
    number: int
    name: str
    phases: tuple[PhasePlan, ...]
    calls: tuple[CallPlan, ...]
    seconds: float


class ScenarioPlan(NamedTuple):
    """`skipped` is what no run measures; `promql` are methods that a run measures where it has a Prometheus; `failing`
    says when how many nodes fail."""

    steps: tuple[StepPlan, ...]
    namespaces: int
    skipped: tuple[str, ...]
    ignored: tuple[str, ...]
    promql: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()

    @property
    def operations(self) -> Counter[str]:
        """Of objects; those of namespaces are not among them."""
        return sum((phase.operations for step in self.steps for phase in step.phases), Counter())

    @property
    def requests(self) -> int:
        return sum(phase.requests for step in self.steps for phase in step.phases)

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def waits(self) -> int:
        return sum(call.waits for step in self.steps for call in step.calls)


def plan(config: Config) -> ScenarioPlan:
    """Play a test through."""
    player = _Player(config)
    steps = tuple(player.step(number, step) for number, step in enumerate(config.steps, 1))
    skipped = dict.fromkeys(f"{item}: not simulated here" for item in config.skipped)
    for step in steps:
        for call in step.calls:
            if call.skipped:
                skipped[f"{call.method}: {call.skipped}"] = None
            elif call.method == "TestMetrics":
                skipped.update((f"TestMetrics {part}: {reason(part)}", None) for part in PARTS)
    promql = dict.fromkeys(call.method for step in steps for call in step.calls if call.method in PROMETHEUS)
    namespaces, failing = config.namespace.number, tuple(_failing(config))
    return ScenarioPlan(steps, namespaces, tuple(skipped), config.ignored, tuple(promql), failing)


def _failing(config: Config) -> Iterator[str]:
    failure = config.read.chaos_monkey.node_failure
    if failure is not None:
        yield f"from the first step to the last: {failure.describe(config.nodes)}"
    for number, step in enumerate(config.steps, 1):
        for spec in step.measurements:
            for call in spec.calls() if spec.method == CHAOS_MONKEY else ():
                if call.params.get("action") == "start":
                    failure = failure_of(Params(call.params))
                    yield f"from step {number} on, {call.identifier}: {failure.describe(config.nodes)}"


class _Player:
    def __init__(self, config: Config) -> None:
        self._config = config
        self._state = ObjectState()
        self._qps = CLIENT_QPS * clients_for(config.nodes)

    def step(self, number: int, step: Step) -> StepPlan:
        phases = tuple(self._phase(phase) for phase in step.phases)
        calls = tuple(_call(spec.method, call) for spec in step.measurements for call in spec.calls())
        limit_s = sum(phase.requests for phase in phases) / self._qps
        seconds = max([limit_s, *(phase.seconds for phase in phases), *(call.seconds for call in calls)])
        return StepPlan(number, step.name or "(unnamed)", phases, calls, seconds)

    def _phase(self, phase: Phase) -> PhasePlan:
        operations: Counter[str] = Counter()
        bundles = 0
        wanted = phase.replicas_per_namespace
        for namespace in namespaces_of(phase, self._config.namespace.prefix or "test"):
            kinds = [(self._instances(namespace, item), item) for item in phase.object_bundle]
            current = next((self._state.get(instances) or 0 for instances, _ in kinds), None)
            if current is not None:
                kind = "patch" if current == wanted else "create" if current < wanted else "delete"
                count = wanted if kind == "patch" else abs(wanted - current)
                bundles += count
                operations[kind] += count * sum(self._documents(item) for _, item in kinds)
            for instances, _ in kinds:
                self._state.set(instances, wanted)
        load = self._config.tuning_sets[phase.tuning_set].load
        names = " + ".join(item.basename for item in phase.object_bundle)
        return PhasePlan(names, phase.tuning_set, bundles, +operations, _length_s(load, bundles))

    def _documents(self, item: ObjectSpec) -> int:
        return len(self._config.templates.raw_objects(item.object_template_path))

    def _instances(self, namespace: str, item: ObjectSpec) -> Instances:
        kind = kind_of_object(self._config.templates.raw_objects(item.object_template_path)[0])
        return Instances(namespace, item.basename, kind.kind, kind.ref.group)


def _length_s(load: Load, count: int) -> float:
    """How long a phase of so many operations takes at its tuning set's pace, on average where that is random."""
    if not count or isinstance(load, ParallelismLimitedLoad):
        return 0.0
    if isinstance(load, QPSLoad):
        return count / load.qps
    if isinstance(load, GlobalQPSLoad):
        return max(0, count - load.burst) / load.qps
    if isinstance(load, RandomizedLoad):
        return count / load.average_qps
    if isinstance(load, PoissonLoad):
        return (count - 1) / load.expected_actions_per_second
    if isinstance(load, SteppedLoad):
        return count // load.burst_size * float(load.step_delay)
    if isinstance(load, RandomizedTimeLimitedLoad):
        return float(load.time_limit) * count / (count + 1)  # the last of so many random times
    assert isinstance(load, TimeLimitedLoad)
    return float(load.time_limit)


def _call(method: str, call: MeasurementInstance) -> CallPlan:
    action = str(call.params.get("action", ""))
    skipped = "" if method in METHODS else reason(method)
    waits = not skipped and method.startswith(_WAITS) and action in ("", "gather")
    waits = waits or (method == "ServiceCreationLatency" and action.startswith("waitFor"))
    seconds = float(parse_duration(str(call.params["duration"]))) if method == "Sleep" else 0.0
    return CallPlan(method, call.identifier, action, skipped, waits, seconds)


def plan_lines(config: Config) -> Iterator[str]:
    """The plan for a person."""
    found = plan(config)
    yield (
        f"{config.name}: {len(found.steps)} steps, {config.nodes} nodes, {found.namespaces} namespaces ({config.path})"
    )
    for step in found.steps:
        waits = ", until the cluster is as wanted" if any(call.waits for call in step.calls) else ""
        yield f"{step.number:3} {step.name}  [{_time(step.seconds)}{waits}]"
        for phase in step.phases:
            counts = (
                ", ".join(f"{count} {kind}" for kind, count in phase.operations.items()) or "nothing to do"
            )
            yield f"      {phase.objects}: {counts} by {phase.tuning_set}  [{_time(phase.seconds)}]"
        for call in step.calls:
            what = " ".join(part for part in (call.method, call.identifier, call.action) if part)
            yield f"      {what}{_how(call)}"
    counts = ", ".join(f"{count} {kind}" for kind, count in found.operations.items()) or "none"
    yield f"operations on objects: {counts}; at least {found.requests} requests"
    yield from (f"nodes fail {text}" for text in found.failing)
    yield f"expected time: {_time(found.seconds)} by tuning sets, sleeps and client limits, and {found.waits} waits"
    if found.promql:
        yield f"by a Prometheus, skipped without one (--prometheus-url): {', '.join(found.promql)}"
    yield from (f"skipped: {item}" for item in found.skipped)
    yield from (f"ignored: {item}: no such key" for item in found.ignored)


def _how(call: CallPlan) -> str:
    return "  [skipped]" if call.skipped else "  [PromQL]" if call.method in PROMETHEUS else ""


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
