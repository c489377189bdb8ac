"""A config with each of many mistakes: one message, which names file, line and value, before anything runs."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from harness.wire.errors import ConfigError
from tests.clusterloader.conftest import Write

BASE = """\
{{$replicas := DefaultParam .CL2_REPLICAS 3}}
name: small
namespace:
  number: 2
tuningSets:
- name: steady
  qpsLoad:
    qps: 10
steps:
- name: make
  phases:
  - namespaceRange:
      min: 1
      max: 2
    {{if $replicas}}
    replicasPerNamespace: {{$replicas}}
    {{end}}
    tuningSet: steady
    objectBundle:
    - basename: map
      objectTemplatePath: object.yaml
      templateFillMap:
        Color: red
- name: wait
  measurements:
  - Identifier: wait
    Method: Sleep
    Params:
      duration: 1s
- module:
    path: module.yaml
"""
OBJECT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{.Name}}
data:
  color: {{.Color}}
"""
MODULE = """\
{{$action := DefaultParam .action "start"}}

steps:
- name: measure
  measurements:
  - Identifier: pods
    Method: PodStartupLatency
    Params:
      action: {{$action}}
      threshold: 5s
"""


class Mistake(NamedTuple):
    """In `file`, `old` becomes `new`; the message ends with `message` behind the file and line that stand in it."""

    file: str
    old: str
    new: str
    message: str


CONFIG = "config.yaml"
MISTAKES = {
    "an unknown key": Mistake(
        CONFIG,
        "    objectBundle:",
        "    objectBundles:",
        "config.yaml:19: steps[0].phases[0].objectBundles: no such key; did you mean objectBundle?",
    ),
    "a bad duration": Mistake(
        CONFIG,
        "  number: 2",
        "  deleteNamespaceTimeout: 5 minutes",
        "config.yaml:4: namespace.deleteNamespaceTimeout: invalid duration '5 minutes': allowed are numbers with a "
        "unit, as in 1h30m, 5m, 2.5s, 300ms",
    ),
    "a duration without unit": Mistake(
        CONFIG,
        "duration: 1s",
        "duration: 1",
        "config.yaml:29: steps[1].measurements[0] (Sleep): params.duration: 1 is not allowed; expected text",
    ),
    "a template file that is missing": Mistake(
        CONFIG,
        "object.yaml",
        "objekt.yaml",
        "config.yaml:21: steps[0].phases[0].objectBundle[0].objectTemplatePath: 'objekt.yaml': file must exist: "
        "{folder}/objekt.yaml",
    ),
    "a module that is missing": Mistake(
        CONFIG,
        "module.yaml",
        "modul.yaml",
        "config.yaml:31: steps[2].module.path: 'modul.yaml': file must exist: {folder}/modul.yaml",
    ),
    "a tuning set that is not declared": Mistake(
        CONFIG,
        "tuningSet: steady",
        "tuningSet: stedy",
        "config.yaml:18: steps[0].phases[0].tuningSet: 'stedy': no such tuning set; declared are: steady",
    ),
    "a tuning set that is declared twice": Mistake(
        CONFIG,
        "steps:\n",
        "- name: steady\n  poissonLoad: {expectedActionsPerSecond: 1}\nsteps:\n",
        "config.yaml:9: tuningSets[1].name: 'steady': is declared twice",
    ),
    "a tuning set of two kinds": Mistake(
        CONFIG,
        "  qpsLoad:\n",
        "  timeLimitedLoad: {timeLimit: 1s}\n  qpsLoad:\n",
        "config.yaml:6: tuningSets[0]: 'steady': needs exactly 1 load, has 2: ['qpsLoad', 'timeLimitedLoad']",
    ),
    "a rate of nothing": Mistake(
        CONFIG,
        "qps: 10",
        "qps: 0",
        "config.yaml:8: tuningSets[0].qpsLoad.qps: 0.0: must have positive value",
    ),
    "negative replicas": Mistake(
        CONFIG,
        "CL2_REPLICAS 3",
        "CL2_REPLICAS -3",
        "config.yaml:16: steps[0].phases[0].replicasPerNamespace: -3: must be non-negative",
    ),
    "a text for a number": Mistake(
        CONFIG,
        "CL2_REPLICAS 3",
        'CL2_REPLICAS "three"',
        "config.yaml:16: steps[0].phases[0].replicasPerNamespace: expected `int`, got `str` ('three')",
    ),
    "a mapping for a list": Mistake(
        CONFIG,
        "    - basename: map\n",
        "      basename: map\n",
        "config.yaml:19: steps[0].phases[0].objectBundle: expected `array`, got `object` "
        "({{'basename': 'map', 'objectTemplatePath': 'object.yaml', 'te)",
    ),
    "a range upside down": Mistake(
        CONFIG,
        "max: 2",
        "max: 0",
        "config.yaml:14: steps[0].phases[0].namespaceRange.max: 0: min is 1",
    ),
    "a basename that is no name": Mistake(
        CONFIG,
        "basename: map",
        "basename: Map_1",
        "config.yaml:20: steps[0].phases[0].objectBundle[0].basename: 'Map_1': must be a DNS-1123 subdomain: lower "
        "case letters, digits, '-' and '.'",
    ),
    "a step of both kinds": Mistake(
        CONFIG,
        "- name: wait\n",
        "- name: wait\n  phases: [{tuningSet: steady}]\n",
        "config.yaml:24: steps[1]: 'wait': needs either phases or measurements, has ['phases', 'measurements']",
    ),
    "a method that is a slip for one": Mistake(
        "module.yaml",
        "PodStartupLatency",
        "PodStartupLatencies",
        "module.yaml:7: steps[0].measurements[0].method: 'PodStartupLatencies': no such method; did you mean "
        "PodStartupLatency?",
    ),
    "an action that there is not": Mistake(
        "module.yaml",
        '"start"',
        '"begin"',
        "module.yaml:9: steps[0].measurements[0] (PodStartupLatency): params.action: 'begin' is not allowed; "
        "expected one of start, gather",
    ),
    "a parameter that is missing": Mistake(
        CONFIG,
        "      duration: 1s",
        "      length: 1s",
        "config.yaml:28: steps[1].measurements[0] (Sleep): params.duration: missing; it is required",
    ),
    "a parameter of another type": Mistake(
        "module.yaml",
        "threshold: 5s",
        "threshold: [5]",
        "module.yaml:10: steps[0].measurements[0] (PodStartupLatency): params.threshold: [5] is not allowed; "
        "expected text",
    ),
    "a measurement without a name": Mistake(
        CONFIG,
        "  - Identifier: wait\n    Method",
        "  - Method",
        "config.yaml:26: steps[1].measurements[0].identifier: []: needs either identifier or instances",
    ),
    "a failure rate in percent": Mistake(
        CONFIG,
        "steps:\n- name: make",
        "chaosMonkey:\n  nodeFailure:\n    failureRate: 5\n    interval: 1m\nsteps:\n- name: make",
        "config.yaml:11: chaosMonkey.nodeFailure.failureRate: 5.0: must be a share of the nodes, from 0 to 1",
    ),
    "nodes that fail without end": Mistake(
        CONFIG,
        "steps:\n- name: make",
        "chaosMonkey:\n  nodeFailure:\n    failureRate: 0.5\nsteps:\n- name: make",
        "config.yaml:10: chaosMonkey.nodeFailure.interval: 0.0: must be a duration above 0",
    ),
    "a bad duration of a chaos monkey": Mistake(
        CONFIG,
        "steps:\n- name: make",
        "chaosMonkey:\n  nodeFailure:\n    interval: often\nsteps:\n- name: make",
        "config.yaml:11: chaosMonkey.nodeFailure.interval: invalid duration 'often': allowed are numbers with a unit, "
        "as in 1h30m, 5m, 2.5s, 300ms",
    ),
    "a chaos monkey that goes backwards": Mistake(
        "module.yaml",
        "    Method: PodStartupLatency\n    Params:\n",
        "    Method: ChaosMonkey\n    Params:\n      interval: 1s\n      jitterFactor: -1\n",
        "module.yaml:10: steps[0].measurements[0] (ChaosMonkey): params.jitterFactor: -1 is not allowed; expected a "
        "number from 0",
    ),
    "modules in a circle": Mistake(
        "module.yaml",
        "steps:\n",
        "steps:\n- module: {path: module.yaml}\n",
        "module.yaml:4: steps[0].module.path: 'module.yaml': modules include each other without end: module.yaml -> "
        "module.yaml",
    ),
    "template syntax": Mistake(
        CONFIG,
        "{{end}}",
        "{{ende}}",
        "config.yaml:15: template: no {{end}} for this: {{if $replicas}}",
    ),
    "an action that is not closed": Mistake(
        CONFIG,
        "    {{end}}\n",
        "",
        "config.yaml:15: template: no {{end}} for this: {{if $replicas}}",
    ),
    "an unknown function": Mistake(
        "object.yaml",
        "{{.Color}}",
        "{{Uppercase .Color}}",
        "object.yaml:6: template: function 'Uppercase' not defined: color: {{Uppercase .Color}}",
    ),
    "a function's argument": Mistake(
        "object.yaml",
        "{{.Color}}",
        "{{AddInt 1 .Color}}",
        "object.yaml:6: template: function 'AddInt' failed: cannot cast 'red' to float64: color: {{AddInt 1 .Color}}",
    ),
    "no YAML once rendered": Mistake(
        CONFIG,
        "  - namespaceRange:",
        "  - namespaceRange: 5:",
        "config.yaml:12: not YAML once rendered: mapping values are not allowed in this context (rendered line 12: "
        "- namespaceRange: 5:)",
    ),
    "an object without kind": Mistake(
        "object.yaml",
        "kind: ConfigMap\n",
        "",
        "object.yaml: an object needs apiVersion and kind",
    ),
    "a kind twice in one template": Mistake(
        "object.yaml",
        "  color: {{.Color}}\n",
        "---\napiVersion: v1\nkind: ConfigMap\n",
        "config.yaml:21: steps[0].phases[0].objectBundle[0].objectTemplatePath: 'object.yaml': duplicate kind "
        "ConfigMap in {folder}/object.yaml, a template of several documents",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_message_with_file_line_and_value(write: Write, name: str) -> None:
    mistake = MISTAKES[name]
    files = {CONFIG: BASE, "object.yaml": OBJECT, "module.yaml": MODULE}
    assert files[mistake.file].count(mistake.old) >= 1
    files[mistake.file] = files[mistake.file].replace(mistake.old, mistake.new)
    text = files.pop(CONFIG)
    with pytest.raises(ConfigError) as caught:
        write(text, files=files)
    folder = str(caught.value).partition(mistake.message.partition(":")[0])[0].rstrip("/")
    wanted = mistake.message.replace("{folder}", folder).replace("{{'", "{'")
    assert str(caught.value) == f"{folder}/{wanted}"
    assert caught.value.exit_code == 2


def test_without_a_mistake_it_loads(write: Write) -> None:
    config = write(BASE, files={"object.yaml": OBJECT, "module.yaml": MODULE})
    assert [step.name for step in config.steps] == ["make", "wait", "measure"]
    assert config.ignored == ()


def test_a_key_that_is_like_none_is_passed_over_and_named(write: Write) -> None:
    files = {"object.yaml": OBJECT, "module.yaml": MODULE + "  comment: of ours\n"}
    config = write(BASE + "owner: me\n", files=files)
    assert [item.rpartition("/")[2] for item in config.ignored] == [
        "config.yaml:32: owner",
        "module.yaml:11: steps[0].comment",
    ]


def test_a_method_that_is_like_none_is_left_to_the_run(write: Write) -> None:
    files = {"object.yaml": OBJECT, "module.yaml": MODULE.replace("PodStartupLatency", "OurOwnMethod")}
    assert write(BASE, files=files).steps[-1].measurements[0].method == "OurOwnMethod"
