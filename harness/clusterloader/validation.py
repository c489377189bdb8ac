"""What a test must hold before it may run; the first rule that it breaks is a ConfigError of one line.

The rules are clusterloader2/api/validation.go's, and three that upstream finds out in the middle of a run: every
object template renders to objects, every measurement has the parameters that it needs, and no two tuning sets have
one name. A measurement method that nobody here does is no mistake, the run skips it and says so; one that is a slip
for a method is.
"""

from __future__ import annotations

import difflib
import re

import msgspec

from harness.clusterloader.config import Config, Placed, namespaces_of
from harness.clusterloader.measurements import METHODS
from harness.clusterloader.measurements.base import MeasurementError, Params
from harness.clusterloader.measurements.nodefailure import broken_rule
from harness.clusterloader.measurements.skipped import SKIPPED
from harness.clusterloader.resourceusage import CONSTRAINTS, read_constraints
from harness.clusterloader.schema import MeasurementInstance, MeasurementSpec, ObjectSpec, Phase, TuningSet
from harness.clusterloader.template import Document
from harness.wire.errors import ConfigError

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_NEAR = 0.85  # how alike an unknown method and a known one are for the one to be a slip for the other
_LIMITED = ("ResourceUsageSummary", "TestMetrics")  # methods with a file of limits
_SHOWN = 80  # characters of a value in a message


def validate(config: Config) -> None:
    """Raise ConfigError at the first rule that `config` breaks."""
    top = _Rules(config.document)
    number = config.read.automanaged_namespaces
    top.expect(number >= 0, "automanagedNamespaces", number, "must be non-negative")
    number = config.namespace.number
    top.expect(number > 0, "namespace.number", number, "must be positive")
    for index, dependency in enumerate(config.read.dependencies):
        for field in ("name", "method"):
            value = getattr(dependency, field)
            top.expect(bool(value), f"dependencies[{index}].{field}", value, f"{field} is required")
    names: set[str] = set()
    for index, tuning_set in enumerate(config.read.tuning_sets):
        key = f"tuningSets[{index}]"
        top.tuning_set(tuning_set, key)
        top.expect(tuning_set.name not in names, f"{key}.name", tuning_set.name, "is declared twice")
        names.add(tuning_set.name)
    failure = config.read.chaos_monkey.node_failure
    if failure is not None and (broken := broken_rule(failure)):
        top.expect(False, f"chaosMonkey.nodeFailure.{broken.key}", broken.value, f"must be {broken.allowed}")
    top.expect(bool(config.placed), "steps", 0, "cannot be empty")
    for placed in config.placed:
        _StepRules(config, placed).check()


class _Rules:
    """Rules for what stands in one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def expect(self, holds: bool, key: str, value: object, rule: str) -> None:
        if not holds:
            raise ConfigError(f"{self._document.where(key)}: {key}: {value!r:.{_SHOWN}}: {rule}")

    def tuning_set(self, tuning_set: TuningSet, key: str) -> None:
        loads = tuning_set.loads()
        self.expect(
            len(loads) == 1, key, tuning_set.name, f"needs exactly 1 load, has {len(loads)}: {list(loads)}"
        )
        for name, load in loads.items():
            for field in msgspec.structs.fields(load):
                value = getattr(load, field.name)
                self.expect(value > 0, f"{key}.{name}.{field.encode_name}", value, "must have positive value")


class _StepRules(_Rules):
    """Rules for one step."""

    def __init__(self, config: Config, placed: Placed) -> None:
        super().__init__(placed.document)
        self._config = config
        self._step = placed.step
        self._key = placed.key

    def check(self) -> None:
        step, key = self._step, self._key
        given = [name for name in ("phases", "measurements") if getattr(step, name)]
        self.expect(len(given) == 1, key, step.name, f"needs either phases or measurements, has {given}")
        for index, phase in enumerate(step.phases):
            self._phase(phase, f"{key}.phases[{index}]")
        for index, measurement in enumerate(step.measurements):
            self._measurement(measurement, f"{key}.measurements[{index}]")

    # ---- phases ----------------------------------------------------------------------------------------------------
    def _phase(self, phase: Phase, key: str) -> None:
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
            self._object(phase, item, f"{key}.objectBundle[{index}]")

    def _object(self, phase: Phase, item: ObjectSpec, key: str) -> None:
        rule = "must be a DNS-1123 subdomain: lower case letters, digits, '-' and '.'"
        valid = len(item.basename) <= 253 and _SUBDOMAIN.match(item.basename) is not None
        self.expect(valid, f"{key}.basename", item.basename, rule)
        path, templates = item.object_template_path, self._config.templates
        rule = f"file must exist: {templates.file(path)}"
        self.expect(bool(path) and templates.exists(path), f"{key}.objectTemplatePath", path, rule)
        rule = "has no object with apiVersion and kind"
        self.expect(bool(templates.raw_objects(path)), f"{key}.objectTemplatePath", path, rule)
        namespaces = namespaces_of(phase, self._config.namespace.prefix or "test")
        if not phase.replicas_per_namespace or not namespaces:
            return  # only deleted, which takes the template as it is
        bodies = templates.objects(
            path, self._config.object_mapping(item, namespaces[0], 0), f"{item.basename}-0"
        )
        kinds = [body.kind for body in bodies]
        twice = next((kind.kind for kind in kinds if kinds.count(kind) > 1), "")
        rule = f"duplicate kind {twice} in {templates.file(path)}, a template of several documents"
        self.expect(not twice, f"{key}.objectTemplatePath", path, rule)

    # ---- measurements ----------------------------------------------------------------------------------------------
    def _measurement(self, spec: MeasurementSpec, key: str) -> None:
        self.expect(bool(spec.method), f"{key}.method", spec.method, "method is required")
        given = [name for name in ("identifier", "instances") if getattr(spec, name)]
        self.expect(len(given) == 1, f"{key}.identifier", given, "needs either identifier or instances")
        if spec.method not in METHODS:
            known = [*METHODS, *SKIPPED]
            near = [] if spec.method in known else difflib.get_close_matches(spec.method, known, 1, _NEAR)
            rule = f"no such method; did you mean {near[0] if near else ''}?"
            self.expect(not near, f"{key}.method", spec.method, rule)
            return
        for index, call in enumerate(spec.calls()):
            place = key if spec.identifier else f"{key}.instances[{index}]"
            self._call(spec.method, call, place)

    def _call(self, method: str, call: MeasurementInstance, key: str) -> None:
        """The parameters of a call by the table of what its method reads."""
        self.expect(bool(call.identifier), f"{key}.identifier", call.identifier, "must not be empty")
        params = Params(call.params)
        try:
            METHODS[method].check(params)
        except MeasurementError as error:
            name = str(error).partition(":")[0]
            raise ConfigError(
                f"{self._document.where(f'{key}.{name}')}: {key} ({method}): {error}"
            ) from error
        path = call.params.get(CONSTRAINTS)
        if method in _LIMITED and isinstance(path, str) and path:
            templates = self._config.templates
            rule = f"file must exist: {templates.file(path)}"
            self.expect(templates.exists(path), f"{key}.params.{CONSTRAINTS}", path, rule)
            read_constraints(templates, path, self._config.nodes)
