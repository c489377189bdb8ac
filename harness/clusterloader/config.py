"""Loading a ClusterLoader2 test: files, overrides and environment become one checked `Config`.

Mirrors clusterloader2/pkg/test/test.go: CompileTestConfig (render, read, flatten modules, defaults, validate), with
api/validation.go's rules, except that a measurement method nobody implements is not an error: the run skips it and
says so.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.clusterloader.files import Files
from harness.clusterloader.overrides import IMAGE_REGISTRY, build_mapping
from harness.clusterloader.schema import (
    ConfigFile,
    MeasurementSpec,
    Module,
    NamespaceConfig,
    ObjectSpec,
    Phase,
    Step,
    TuningSet,
    decode,
)
from harness.clusterloader.template import TemplateProvider
from harness.wire.errors import ConfigError

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_MODULE_DEPTH = 20  # a module that includes itself is a mistake, not a deep test


@dataclass(frozen=True, slots=True)
class Config:
    """A test, ready to run. `steps` holds no modules; `mapping` is what every template sees."""

    path: Path
    name: str
    nodes: int
    namespace: NamespaceConfig
    steps: tuple[Step, ...]
    tuning_sets: Mapping[str, TuningSet]
    skipped: tuple[str, ...]
    mapping: Mapping[str, object]
    templates: TemplateProvider


def load_config(
    path: Path | str,
    nodes: int,
    overrides: Sequence[Path | str] = (),
    environ: Mapping[str, str] | None = None,
    *,
    seed: int = 0,
    image_registry: str = IMAGE_REGISTRY,
    files: Files | None = None,
) -> Config:
    """Read the test at `path` for a cluster of `nodes` nodes.

    `overrides` are ClusterLoader2's --testoverrides, a later one wins; of `environ` the CL2_ variables count. `seed`
    feeds the random template functions. Reads files through `files`, which remembers all that the test is made of;
    raises ConfigError with one line.
    """
    path = Path(path)
    files = files or Files()
    if path not in files:
        raise ConfigError(f"{path}: no such scenario; give the path of a ClusterLoader2 config file")
    if nodes < 1:
        raise ConfigError(f"nodes: {nodes} is not allowed; a test needs at least 1 node")
    mapping = build_mapping(nodes, [Path(item) for item in overrides], environ or {}, image_registry, files)
    templates = TemplateProvider(path.parent, random.Random(seed), files)
    read = decode(templates.config(path.name, mapping), ConfigFile, str(path))
    steps = tuple(_flatten(read.steps, templates, mapping, str(path), 0))
    namespace = read.namespace
    if namespace.number in (0, 1):  # default.go: SetDefaults, the deprecated automanagedNamespaces included
        namespace = msgspec.structs.replace(namespace, number=max(1, read.automanaged_namespaces))
    skipped = [f"dependency {item.name} ({item.method})" for item in read.dependencies]
    if read.chaos_monkey.node_failure is not None:
        skipped.append("chaosMonkey.nodeFailure")
    tuning_sets = {item.name: item for item in read.tuning_sets}
    config = Config(path, read.name, nodes, namespace, steps, tuning_sets, tuple(skipped), mapping, templates)
    validate(config, read.tuning_sets)
    return config


def _flatten(
    steps: Sequence[Step], templates: TemplateProvider, mapping: Mapping[str, object], where: str, depth: int
) -> Iterator[Step]:
    """Steps with modules replaced by the steps of their files (pkg/test/modules.go)."""
    if depth > _MODULE_DEPTH:
        raise ConfigError(
            f"{where}: modules are nested more than {_MODULE_DEPTH} deep; does one include itself?"
        )
    for step in steps:
        path = step.module.path
        if not path:
            yield step
            continue
        inner = {**mapping, **step.module.params}
        file = str(templates.file(path))
        module = decode(templates.config(path, inner), Module, file)
        yield from _flatten(module.steps, templates, mapping, file, depth + 1)


def validate(config: Config, tuning_sets: Sequence[TuningSet]) -> None:
    """Raise ConfigError at the first rule of api/validation.go that `config` breaks."""
    checker = _Checker(config)
    checker.expect(
        config.namespace.number > 0, "namespace.number", config.namespace.number, "must be positive"
    )
    for index, tuning_set in enumerate(tuning_sets):
        checker.tuning_set(tuning_set, f"tuningSets[{index}]")
    checker.expect(bool(config.steps), "steps", 0, "cannot be empty")
    for index, step in enumerate(config.steps):
        checker.step(step, f"steps[{index}]")


class _Checker:
    """The rules; a path counts steps after modules are flattened, so a step's name is added to it."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def expect(self, holds: bool, key: str, value: object, rule: str) -> None:
        if not holds:
            raise ConfigError(f"{self._config.path}: {key}: {value!r:.80}: {rule}")

    def tuning_set(self, tuning_set: TuningSet, key: str) -> None:
        loads = tuning_set.loads()
        self.expect(
            len(loads) == 1, key, tuning_set.name, f"needs exactly 1 load, has {len(loads)}: {list(loads)}"
        )
        for name, load in loads.items():
            for field in msgspec.structs.fields(load):
                value = getattr(load, field.name)
                self.expect(value > 0, f"{key}.{name}.{field.encode_name}", value, "must have positive value")

    def step(self, step: Step, key: str) -> None:
        key = f"{key} ({step.name})" if step.name else key
        given = [name for name in ("phases", "measurements") if getattr(step, name)]
        self.expect(len(given) == 1, key, given, "needs either phases or measurements")
        for index, phase in enumerate(step.phases):
            self.phase(phase, f"{key}.phases[{index}]")
        for index, measurement in enumerate(step.measurements):
            self.measurement(measurement, f"{key}.measurements[{index}]")

    def measurement(self, spec: MeasurementSpec, key: str) -> None:
        self.expect(bool(spec.method), f"{key}.method", spec.method, "method is required")
        given = [name for name in ("identifier", "instances") if getattr(spec, name)]
        self.expect(len(given) == 1, f"{key}.identifier", given, "needs either identifier or instances")

    def phase(self, phase: Phase, key: str) -> None:
        both = phase.namespace_list is not None and phase.namespace_range is not None
        self.expect(not both, key, "both", "must specify at most 1 of namespaceList and namespaceRange")
        spread = phase.namespace_range
        if spread is not None:
            self.expect(spread.min >= 0, f"{key}.namespaceRange.min", spread.min, "must be non-negative")
            self.expect(
                spread.max >= spread.min, f"{key}.namespaceRange.max", spread.max, f"min is {spread.min}"
            )
        replicas = phase.replicas_per_namespace
        self.expect(replicas >= 0, f"{key}.replicasPerNamespace", replicas, "must be non-negative")
        known = self._config.tuning_sets
        allowed = f"no such tuning set; declared are: {', '.join(sorted(known)) or 'none'}"
        self.expect(phase.tuning_set in known, f"{key}.tuningSet", phase.tuning_set, allowed)
        for index, item in enumerate(phase.object_bundle):
            self.object(item, f"{key}.objectBundle[{index}]")

    def object(self, item: ObjectSpec, key: str) -> None:
        rule = "must be a DNS-1123 subdomain: lower case letters, digits, '-' and '.'"
        valid = len(item.basename) <= 253 and _SUBDOMAIN.match(item.basename) is not None
        self.expect(valid, f"{key}.basename", item.basename, rule)
        path = item.object_template_path
        templates = self._config.templates
        rule = f"file must exist: {templates.file(path)}"
        self.expect(templates.exists(path), f"{key}.objectTemplatePath", path, rule)


def describe(config: Config) -> list[str]:
    """The test in a few lines for a person: its steps, and for each how much it does."""
    namespaces = config.namespace.number
    lines = [
        f"{config.name}: {len(config.steps)} steps, {config.nodes} nodes, {namespaces} namespaces ({config.path})"
    ]
    for number, step in enumerate(config.steps, 1):
        lines.append(f"  {number:2} {step.name or '(unnamed)'}")
        for phase in step.phases:
            bundle = " + ".join(item.basename for item in phase.object_bundle)
            count = phase.replicas_per_namespace * len(namespaces_of(phase, "ns"))
            lines.append(f"       {bundle}: {count} by {phase.tuning_set}")
        for measurement in step.measurements:
            for call in measurement.calls():
                action = call.params.get("action", "")
                lines.append(f"       {measurement.method} {call.identifier} {action}".rstrip())
    lines.extend(f"  skipped: {item} (not simulated here)" for item in config.skipped)
    return lines


def namespaces_of(phase: Phase, prefix: str) -> list[str]:
    """The namespaces a phase works in, `[""]` for cluster scope (simple_test_executor.go: createNamespacesList)."""
    if phase.namespace_list is not None:
        return phase.namespace_list
    spread = phase.namespace_range
    if spread is None:
        return [""]
    basename = prefix if spread.basename is None else spread.basename
    return [f"{basename}-{index}" for index in range(spread.min, spread.max + 1)]
