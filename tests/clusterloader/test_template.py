"""Rendering templates, and what is said about those that cannot be."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from harness.clusterloader.template import TemplateProvider
from harness.wire.errors import ConfigError


def provider(root: Path, **files: str) -> TemplateProvider:
    for name, text in files.items():
        (root / f"{name}.yaml").write_text(text)
    return TemplateProvider(root, random.Random(1))


OBJECT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  generateName: pod-churn-
  labels:
    mine: {{.Name}}
    longer: {{.Name}}7
data:
  index: "{{.Index}}"
{{if eq (Mod .Index 2) 1}}
immutable: true
{{end}}
"""


def bodies(templates: TemplateProvider, index: int, basename: str = "map") -> list[dict[str, object]]:
    name = f"{basename}-{index}"
    found = templates.objects("object.yaml", {"Name": name, "Index": index}, name)
    return [msgspec.json.decode(item.body) for item in found]


def test_an_object_gets_the_name_of_its_replica_and_keeps_the_rest(tmp_path: Path) -> None:
    templates = provider(tmp_path, object=OBJECT)
    assert bodies(templates, 3) == [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "generateName": "pod-churn-",
                "labels": {"mine": "map-3", "longer": "map-37"},
                "name": "map-3",
            },
            "data": {"index": "3"},
            "immutable": True,
        }
    ]


def test_replicas_that_differ_in_their_name_alone_share_one_reading(tmp_path: Path) -> None:
    """What is kept must never show: each replica is as if it had been read by itself."""
    templates = provider(tmp_path, object=OBJECT)
    together = [bodies(templates, index) for index in (*range(30), *range(30))]
    alone = [bodies(provider(tmp_path), index) for index in (*range(30), *range(30))]
    assert together == alone


@pytest.mark.parametrize("basename", ["map", "swarmlet-object-name", "0", "1e", "a.b"])
def test_names_that_look_like_something_else_stay_names(tmp_path: Path, basename: str) -> None:
    templates = provider(
        tmp_path, object="apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {a: '{{.Name}}'}}\n"
    )
    for index in (0, 12, 1):
        found = bodies(templates, index, basename)[0]["metadata"]
        assert found == {"name": f"{basename}-{index}", "labels": {"a": f"{basename}-{index}"}}


def test_a_template_may_hold_several_objects_or_none(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Secret\n---\n{{if .More}}\napiVersion: apps/v1\nkind: Deployment\n{{end}}\n"
    templates = provider(tmp_path, object=text, empty="{{if .More}}x{{end}}\n")
    kinds = [item.kind.kind for item in templates.objects("object.yaml", {"More": True}, "a-0")]
    assert kinds == ["Secret", "Deployment"]
    assert len(templates.objects("object.yaml", {}, "a-0")) == 1
    assert templates.objects("empty.yaml", {}, "a-0") == ()


def test_kinds_are_known_without_rendering(tmp_path: Path) -> None:
    templates = provider(tmp_path, object=OBJECT)
    assert [obj["kind"] for obj in templates.raw_objects("/object.yaml")] == ["ConfigMap"]


def test_a_leading_slash_means_the_configs_directory(tmp_path: Path) -> None:
    templates = provider(tmp_path, a="x: {{.X}}\n")
    assert (
        templates.config("/a.yaml", {"X": 1}).value == templates.config("a.yaml", {"X": 1}).value == {"x": 1}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: {{Nope 1}}\n", ":2: template: function 'Nope' not defined: b: {{Nope 1}}"),
        ("a: 1\n{{if}}\n", ":2: template: missing value for command: {{if}}"),
        (
            "{{AddInt 1 .X}}\n",
            ":1: template: function 'AddInt' failed: cannot cast <nil> to float64: {{AddInt 1 .X}}",
        ),
        (
            "a: b: c\n",
            ":1: not YAML once rendered: mapping values are not allowed in this context (rendered line 1: a: b: c)",
        ),
        ("a: {{end}}\n", ":1: template:"),
    ],
)
def test_a_mistake_is_one_line_with_file_line_and_text(tmp_path: Path, text: str, message: str) -> None:
    templates = provider(tmp_path, bad=text)
    with pytest.raises(ConfigError) as caught:
        templates.config("bad.yaml", {})
    assert f"{tmp_path}/bad.yaml{message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: cannot be read: No such file"):
        provider(tmp_path).config("gone.yaml", {})


def test_an_object_without_kind_is_refused(tmp_path: Path) -> None:
    templates = provider(tmp_path, a="apiVersion: v1\n")
    with pytest.raises(ConfigError, match="needs apiVersion and kind"):
        templates.objects("a.yaml", {}, "a-0")
