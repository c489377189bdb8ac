"""A test as it is run: what its files, overrides and environment came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.clusterloader.schema import ConfigFile, NamespaceConfig, ObjectSpec, Phase, Step, TuningSet
from harness.clusterloader.template import Document, TemplateProvider


class Placed(NamedTuple):
    """A step and where it stands: the document, and the key in it (``steps[2]``)."""

    step: Step
    document: Document
    key: str


@dataclass(frozen=True, slots=True)
class Config:
    """A test, ready to run. `placed` holds the steps, modules replaced by theirs; `mapping` is what every template
    sees; `skipped` is what the config asks for and no test here does; `ignored` are keys that mean nothing."""

    path: Path
    name: str
    nodes: int
    namespace: NamespaceConfig
    placed: tuple[Placed, ...]
    tuning_sets: Mapping[str, TuningSet]
    skipped: tuple[str, ...]
    ignored: tuple[str, ...]
    mapping: Mapping[str, object]
    templates: TemplateProvider
    read: ConfigFile
    document: Document

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(item.step for item in self.placed)

    def object_mapping(self, item: ObjectSpec, namespace: str, index: int) -> dict[str, object]:
        """What a placeholder of an object template means, for one replica (simple_test_executor.go: ExecuteObject)."""
        return {
            **self.mapping,
            **item.template_fill_map,
            "BaseName": item.basename,
            "Index": index,
            "Name": f"{item.basename}-{index}",
            "Namespace": namespace,
        }


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
    failure = config.read.chaos_monkey.node_failure
    if failure is not None:
        lines.append(f"  nodes fail all the time: {failure.describe(config.nodes)}")
    lines.extend(f"  skipped: {item} (not simulated here)" for item in config.skipped)
    lines.extend(f"  ignored: {item} (no such key)" for item in config.ignored)
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
