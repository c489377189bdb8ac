"""From a key of a rendered config back to its line in the template."""

from __future__ import annotations

import random
import re
from pathlib import Path

import gotpl
import pytest

from harness.clusterloader.functions import template_functions
from harness.clusterloader.positions import marked, origin, unclosed
from harness.documents.places import line_of
from tests.conftest import DATA

TEMPLATE = """\
{{$n := 2}}
# a comment
steps:
{{- range $i := Loop $n}}
- name: step-{{$i}}
  {{/* of several
     lines */}}
  {{if eq $i 1 -}}
  phases: []
  {{- end}}
  text: "}} {{"{{"}}"
{{- end}}
tail: 1
"""


def render(source: str) -> str:
    functions = template_functions(random.Random(1), Path())
    return gotpl.Template(source, name="x", functions=functions).render({})


def test_marks_change_nothing_but_themselves() -> None:
    plain = re.sub("\ue000\\d+\ue001", "", render(marked(TEMPLATE)))
    assert plain == render(TEMPLATE)


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("steps", 3),
        ("steps[0].name", 5),
        ("steps[1]", 5),
        ("steps[1].phases", 9),
        ("steps[1].phases[0].gone", 9),
        ("STEPS[0].Text", 11),
        ("tail", 13),
        ("gone", 0),
    ],
)
def test_a_keys_line_is_the_templates(key: str, line: int) -> None:
    text = render(TEMPLATE)
    at = line_of(text, key)
    assert (origin(render(marked(TEMPLATE)), at) if at else 0) == line


def test_what_is_no_yaml_has_no_lines() -> None:
    assert line_of("a: b: c", "a") == 0


@pytest.mark.parametrize("path", sorted((DATA / "clusterloader2").rglob("config.yaml")), ids=str)
def test_upstreams_templates_render_to_as_many_lines_with_marks(path: Path) -> None:
    source = path.read_text()
    functions = template_functions(random.Random(1), path.parent)
    values = {"Nodes": 100, "ImageRegistry": "r", "action": "start"}
    try:
        plain = gotpl.Template(source, name="x", functions=functions).render(values)
    except gotpl.TemplateError:  # a module, which its config gives what it needs
        return
    functions = template_functions(random.Random(1), path.parent)
    with_marks = gotpl.Template(marked(source), name="x", functions=functions).render(values)
    assert re.sub("\ue000\\d+\ue001", "", with_marks) == plain


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("a\n{{if .X}}\nb\n", 2),
        ("{{range .X}}\n{{if .Y}}\n{{end}}\n", 1),
        ("{{range .X}}\n{{- if .Y}}\n", 2),
        ("{{if .X}}{{else if .Y}}{{end}}", 0),
        ("{{end}}", 0),
    ],
)
def test_the_block_that_is_not_closed_is_found(source: str, line: int) -> None:
    assert unclosed(source) == line
