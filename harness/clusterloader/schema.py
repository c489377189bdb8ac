"""The shape of a ClusterLoader2 config, and reading one from parsed YAML.

Fields and defaults follow clusterloader2/api/types.go and default.go. As Go's JSON decoder does, a key matches its
field without regard to case, an unknown key is passed over (unless it looks like a slip), and null leaves the
default.
"""

from __future__ import annotations

from math import ceil
from typing import Any, Literal, TypeVar

import msgspec

from harness.clusterloader.durations import Seconds, parse_duration
from harness.documents.decoding import Where, decode_struct
from harness.wire.gotext import duration

T = TypeVar("T", bound=msgspec.Struct)


class QPSLoad(msgspec.Struct, frozen=True):
    qps: float = 0.0


class RandomizedLoad(msgspec.Struct, frozen=True, rename="camel"):
    average_qps: float = 0.0


class SteppedLoad(msgspec.Struct, frozen=True, rename="camel"):
    burst_size: int = 0
    step_delay: Seconds = Seconds(0)


class TimeLimitedLoad(msgspec.Struct, frozen=True, rename="camel"):
    time_limit: Seconds = Seconds(0)


class RandomizedTimeLimitedLoad(msgspec.Struct, frozen=True, rename="camel"):
    time_limit: Seconds = Seconds(0)


class ParallelismLimitedLoad(msgspec.Struct, frozen=True, rename="camel"):
    parallelism_limit: int = 0


class GlobalQPSLoad(msgspec.Struct, frozen=True):
    qps: float = 0.0
    burst: int = 0


class PoissonLoad(msgspec.Struct, frozen=True, rename="camel"):
    expected_actions_per_second: float = 0.0


Load = (
    QPSLoad
    | RandomizedLoad
    | SteppedLoad
    | TimeLimitedLoad
    | RandomizedTimeLimitedLoad
    | ParallelismLimitedLoad
    | GlobalQPSLoad
    | PoissonLoad
)


class TuningSet(msgspec.Struct, frozen=True):
    """A name and exactly one load (`load`); which one is checked by `config.validate`."""

    name: str = ""
    initial_delay: Seconds = msgspec.field(
        default=Seconds(0), name="initialDelay"
    )  # nothing reads it upstream either
    qps_load: QPSLoad | None = msgspec.field(default=None, name="qpsLoad")
    randomized_load: RandomizedLoad | None = msgspec.field(default=None, name="randomizedLoad")
    stepped_load: SteppedLoad | None = msgspec.field(default=None, name="steppedLoad")
    time_limited_load: TimeLimitedLoad | None = msgspec.field(default=None, name="timeLimitedLoad")
    randomized_time_limited_load: RandomizedTimeLimitedLoad | None = msgspec.field(
        default=None, name="randomizedTimeLimitedLoad"
    )
    parallelism_limited_load: ParallelismLimitedLoad | None = msgspec.field(
        default=None, name="parallelismLimitedLoad"
    )
    global_qps_load: GlobalQPSLoad | None = msgspec.field(default=None, name="globalQPSLoad")
    poisson_load: PoissonLoad | None = msgspec.field(default=None, name="poissonLoad")

    def loads(self) -> dict[str, Load]:
        """The loads given, by their key in the config."""
        given = {field.encode_name: getattr(self, field.name) for field in msgspec.structs.fields(self)}
        return {key: load for key, load in given.items() if isinstance(load, msgspec.Struct)}  # type: ignore[misc]

    @property
    def load(self) -> Load:
        return next(iter(self.loads().values()))


class LabelRequirement(msgspec.Struct, frozen=True):
    key: str = ""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = "In"
    values: list[str] = []

    @property
    def text(self) -> str:
        if self.operator == "Exists":
            return self.key
        if self.operator == "DoesNotExist":
            return f"!{self.key}"
        return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


class LabelSelector(msgspec.Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] = {}  # msgspec copies an empty dict for each instance
    match_expressions: list[LabelRequirement] = []

    @property
    def text(self) -> str:
        """As a query has it."""
        equal = (f"{key}={value}" for key, value in sorted(self.match_labels.items()))
        return ",".join((*equal, *(item.text for item in self.match_expressions)))


class ListUnknownObjectOptions(msgspec.Struct, frozen=True, rename="camel"):
    label_selector: LabelSelector = LabelSelector()


class ObjectSpec(msgspec.Struct, frozen=True, rename="camel"):
    """One object of a bundle: a template and the values that fill it."""

    basename: str = ""
    object_template_path: str = ""
    template_fill_map: dict[str, Any] = {}
    list_unknown_object_options: ListUnknownObjectOptions | None = None


class NamespaceRange(msgspec.Struct, frozen=True):
    min: int = 0
    max: int = 0
    basename: str | None = None


class Phase(msgspec.Struct, frozen=True, rename="camel"):
    """Brings each bundle of each namespace to `replicas_per_namespace`; neither range nor list: cluster scope."""

    namespace_range: NamespaceRange | None = None
    namespace_list: list[str] | None = None
    replicas_per_namespace: int = 0
    tuning_set: str = ""
    object_bundle: list[ObjectSpec] = []


class MeasurementInstance(msgspec.Struct, frozen=True):
    identifier: str = ""
    params: dict[str, Any] = {}


class MeasurementSpec(msgspec.Struct, frozen=True):
    method: str = ""
    params: dict[str, Any] = {}
    identifier: str = ""
    instances: list[MeasurementInstance] = []

    def calls(self) -> list[MeasurementInstance]:
        """One for each instance, its params over the common ones; without instances the one by `identifier`."""
        if self.identifier:
            return [MeasurementInstance(self.identifier, self.params)]
        return [MeasurementInstance(i.identifier, {**self.params, **i.params}) for i in self.instances]


class ModuleRef(msgspec.Struct, frozen=True):
    path: str = ""
    params: dict[str, Any] = {}


class Step(msgspec.Struct, frozen=True):
    """Phases or measurements, run in parallel; a module stands for the steps of its file."""

    name: str = ""
    phases: list[Phase] = []
    measurements: list[MeasurementSpec] = []
    module: ModuleRef = ModuleRef()


class Module(msgspec.Struct, frozen=True):
    steps: list[Step] = []


class NamespaceConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Automanaged namespaces ``<prefix>-1`` to ``<prefix>-<number>``; an empty prefix becomes ``test-<random>``."""

    number: int = 1
    prefix: str = ""
    delete_stale_namespaces: bool = False
    delete_automanaged_namespaces: bool = True
    enable_existing_namespaces: bool = False
    delete_namespace_timeout: Seconds = Seconds(600)


class Dependency(msgspec.Struct, frozen=True):
    name: str = ""
    method: str = ""
    timeout: Seconds = Seconds(0)
    params: dict[str, Any] = {}


class NodeFailure(msgspec.Struct, frozen=True, rename="camel"):
    """Each `interval`, longer by up to `jitter_factor` of it, a share of the nodes fails. (`failureRate` is that share,
    though upstream's comment calls it a percentage.)"""

    failure_rate: float = 0.0
    interval: Seconds = Seconds(0)
    jitter_factor: float = 0.0
    simulated_downtime: Seconds = Seconds(0)

    def describe(self, nodes: int) -> str:
        """What becomes of so many nodes, for a plan."""
        first = ceil(self.failure_rate * nodes)
        least, most = duration(self.interval), duration(self.interval * (1.0 + self.jitter_factor))
        pause = least if least == most else f"{least} to {most}"
        return (
            f"{self.failure_rate:.3g} of the nodes that have not failed yet (at first {first} of {nodes}) are down for "
            f"{duration(self.simulated_downtime)}, again {pause} later"
        )


class ChaosMonkey(msgspec.Struct, frozen=True, rename="camel"):
    """`excluded_nodes` never fail; Go's set of names is a mapping, and a list is taken as well."""

    node_failure: NodeFailure | None = None
    excluded_nodes: list[str] | dict[str, Any] = []


class ConfigFile(msgspec.Struct, frozen=True, rename="camel"):
    """A config file as written, before its modules are read."""

    name: str = ""
    dependencies: list[Dependency] = []
    automanaged_namespaces: int = 0
    namespace: NamespaceConfig = NamespaceConfig()
    steps: list[Step] = []
    tuning_sets: list[TuningSet] = []
    chaos_monkey: ChaosMonkey = ChaosMonkey()


class SuiteEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One test of a suite file."""

    identifier: str = ""
    config_path: str = ""
    override_paths: list[str] = []


def decode(document: object, kind: type[T], where: Where, ignored: list[str] | None = None) -> T:
    """Read `kind` from parsed YAML as `harness.documents.decoding` does, durations included. Raises ConfigError."""
    return decode_struct(document, kind, where, ignored, dec_hook=_duration)


def _duration(kind: type, value: object) -> Seconds:
    if kind is not Seconds or not isinstance(value, str):
        raise ValueError(f"expected a duration such as 5m, got {value!r}")
    return parse_duration(value)
