"""Manifests, rendered and read back."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from harness.load.cluster.permissions import needed
from harness.manifests.files import File, RunFiles, collect
from harness.manifests.options import Asked, Secret
from harness.manifests.render import render
from harness.sizing.fleet import Fleet
from harness.sizing.limits import plan_for
from harness.sizing.machine import in_a_pod
from tests.sizing.figures import ROUND

Object = dict[str, Any]
ASKED = Asked(
    name="lab",
    namespace="load",
    image="registry.example/swarmlet:1",
    nodes=5000,
    watches=35,
    workers=20,
    rate=50,
    timeout="20m",
    i_know="in-cluster",
)
ELSEWHERE = msgspec.structs.replace(ASKED, secret=Secret("other", "config"), i_know="prod", context="prod")
OURS = collect("density", 5000, [], {})
PLAIN = RunFiles(File("kubelets.py", "kubelets.py", "pass\n"), "none")


def text_of(asked: Asked = ASKED, files: RunFiles = OURS) -> str:
    asked.validate()
    plan = plan_for(Fleet(asked.nodes, asked.watches, workers=asked.workers), ROUND, in_a_pod())
    return render(asked, files, plan, "1.2.3", needed(asked.identity, config=files.config))


def objects_of(asked: Asked = ASKED, files: RunFiles = OURS) -> list[Object]:
    return [each for each in yaml.safe_load_all(text_of(asked, files)) if each is not None]


def the(kind: str, objects: list[Object], name: str = "") -> Object:
    """The one object of a kind, or the one with that name."""
    found = [each for each in objects if each["kind"] == kind and name in ("", each["metadata"]["name"])]
    assert len(found) == 1, [each["metadata"]["name"] for each in found]
    return found[0]


def container(workload: Object) -> Object:
    found: Object = workload["spec"]["template"]["spec"]["containers"][0]
    return found


def option(args: list[str], flag: str) -> str:
    """What follows a flag."""
    return args[args.index(flag) + 1]
