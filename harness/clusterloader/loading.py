"""Loading a ClusterLoader2 test: files, overrides and environment become one checked `Config`.

Mirrors clusterloader2/pkg/test/test.go: CompileTestConfig (render, read, flatten modules, defaults, validate).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.clusterloader.config import Config, Placed
from harness.clusterloader.overrides import IMAGE_REGISTRY, build_mapping
from harness.clusterloader.schema import ConfigFile, Module, Step, decode
from harness.clusterloader.template import Document, TemplateProvider
from harness.clusterloader.validation import validate
from harness.documents.files import Files
from harness.wire.errors import ConfigError

_MODULE_DEPTH = 20  # what is deeper than that would go on for ever


def load_config(
    path: Path | str,
    nodes: int,
    overrides: Sequence[Path | str] = (),
    environ: Mapping[str, str] | None = None,
    *,
    seed: int = 0,
    image_registry: str = IMAGE_REGISTRY,
    files: Files | None = None,
    check: bool = True,
) -> Config:
    """Read the test at `path` for a cluster of `nodes` nodes.

    `overrides` are ClusterLoader2's --testoverrides, a later one wins; of `environ` the CL2_ variables count. `seed`
    feeds the random template functions. Reads files through `files`, which remembers all that the test is made of;
    raises ConfigError with one line. Without `check` only what cannot be read is refused, not what cannot be run.
    """
    path = Path(path)
    files = files or Files()
    if path not in files:
        raise ConfigError(f"{path}: no such scenario; give the path of a ClusterLoader2 config file")
    if nodes < 1:
        raise ConfigError(f"nodes: {nodes} is not allowed; a test needs at least 1 node")
    mapping = build_mapping(nodes, [Path(item) for item in overrides], environ or {}, image_registry, files)
    rng = random.Random(seed)
    templates = TemplateProvider(path.parent, rng, files)
    document = templates.config(path.name, mapping)
    ignored: list[str] = []
    read = decode(document.value, ConfigFile, document.where, ignored)
    placed = tuple(_flatten(read.steps, document, mapping, ignored, ()))
    namespace = read.namespace
    if namespace.number in (0, 1):  # default.go: SetDefaults, the deprecated automanagedNamespaces included
        namespace = msgspec.structs.replace(namespace, number=max(1, read.automanaged_namespaces))
    config = Config(
        path=path,
        name=read.name,
        nodes=nodes,
        namespace=namespace,
        placed=placed,
        tuning_sets={item.name: item for item in read.tuning_sets},
        skipped=(*_skipped(read), *_programs(placed, templates)),
        ignored=tuple(ignored),
        mapping=mapping,
        templates=templates,
        read=read,
        document=document,
    )
    if check:
        drawn = rng.getstate()
        validate(config)
        rng.setstate(drawn)  # what is drawn in the run does not depend on what was tried before it
    return config


def _skipped(read: ConfigFile) -> Iterator[str]:
    """What no test here does, and whose absence does not stop one."""
    for item in read.dependencies:
        yield f"dependency {item.name} ({item.method})"


_PROGRAM = re.compile(r"/(request-benchmark|access-tokens)[:\s\"]")
"""Images of perf-tests that are clients of the apiserver (util-images); here they are pods that run and ask nothing."""


def _programs(placed: Sequence[Placed], templates: TemplateProvider) -> Iterator[str]:
    """Load that comes from inside pods, of which no test here has any."""
    paths = {
        item.object_template_path
        for each in placed
        for phase in each.step.phases
        for item in phase.object_bundle
    }
    for path in sorted(paths):
        found = _PROGRAM.search(templates.text(path)) if templates.exists(path) else None
        if found:
            yield f"requests of {found[1]}, which {path} runs in pods"


class _Included(NamedTuple):
    """A module on the way from the config to where we are."""

    file: str
    params: Mapping[str, object]


def _flatten(
    steps: Sequence[Step],
    document: Document,
    mapping: Mapping[str, object],
    ignored: list[str],
    way: tuple[_Included, ...],
) -> Iterator[Placed]:
    """Steps with modules replaced by the steps of their files (pkg/test/modules.go)."""
    templates = document.templates
    for index, step in enumerate(steps):
        key = f"steps[{index}]"
        path = step.module.path
        if not path:
            yield Placed(step, document, key)
            continue
        here = _Included(str(templates.file(path)), step.module.params)
        where = f"{document.where(f'{key}.module.path')}: {key}.module.path: {path!r}"
        if not templates.exists(path):
            raise ConfigError(f"{where}: file must exist: {here.file}")
        if here in way or len(way) == _MODULE_DEPTH:
            circle = " -> ".join(Path(item.file).name for item in (*way, here))
            raise ConfigError(f"{where}: modules include each other without end: {circle:.200}")
        inner = templates.config(path, {**mapping, **step.module.params})
        module = decode(inner.value, Module, inner.where, ignored)
        yield from _flatten(module.steps, inner, mapping, ignored, (*way, here))
