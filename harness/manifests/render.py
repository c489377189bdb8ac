"""The manifests themselves: templates filled in, one after another."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import jinja2

from harness.load.cluster.permissions import Rule, needed, policy_rules, subject_of
from harness.load.labels import RUN_LABEL
from harness.manifests import flow, yamltext
from harness.manifests.files import OVERRIDES, SCENARIO, RunFiles
from harness.manifests.options import Asked
from harness.sizing import figures
from harness.sizing.limits import SizingPlan
from harness.sizing.machine import USUAL_PORTS

MASTER_PORT, WEB_PORT = 5557, 8089
LOCUSTFILES = "/etc/swarmlet/locustfile"
OPERATOR_FOLDER = "/home/locust"
"""Where Locust's operator mounts its one ConfigMap: locust_operator/objects.py, LOCUST_BASE_PATH."""
WORKERS_JOIN_WITHIN_S = 600
"""Images are pulled meanwhile."""
_CPU_STEP_M, _MEMORY_STEP_MI = 50, 16

_OF_THE_PODS = ("namespace", "account", "permissions", "flowcontrol", "configmaps", "storage", "network")
_OF_THE_TARGET = ("permissions", "flowcontrol")


def render(asked: Asked, files: RunFiles, plan: SizingPlan, version: str, rights: Sequence[Rule]) -> str:
    """All documents, in the order in which they can be applied. `rights` are the run's."""
    if asked.subject:
        chosen: tuple[str, ...] = _OF_THE_TARGET
    elif asked.operator:
        chosen = ("namespace", "permissions", "flowcontrol", "operatorfiles", "locusttest")
    else:
        chosen = (*_OF_THE_PODS, "master", "workers")
    if asked.secret is not None and not asked.subject:
        chosen = tuple(name for name in chosen if name not in _OF_THE_TARGET)
    environment = _environment()
    values = _values(asked, files, plan, version, rights)
    texts = [
        environment.get_template(f"{name}.yaml.j2").render(values).strip() for name in ("about", *chosen)
    ]
    return "\n---\n".join(text for text in texts if text) + "\n"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(  # noqa: S701 - YAML, where every value goes through a filter of ours
        loader=jinja2.PackageLoader("harness.manifests"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        q=yamltext.quoted,
        arg=yamltext.argument,
        flow=yamltext.flow,
        block=yamltext.block,
        lines=lambda text: text.rstrip("\n"),
    )
    return environment


def _values(
    asked: Asked, files: RunFiles, plan: SizingPlan, version: str, rights: Sequence[Rule]
) -> dict[str, Any]:
    return {
        "a": asked,
        "files": files,
        "plan": plan,
        "version": version,
        "labels": {"app.kubernetes.io/name": "swarmlet", "app.kubernetes.io/instance": asked.name},
        "run_label": RUN_LABEL,
        "rules": policy_rules(rights),
        "flow_rules": flow.flow_rules(needed(asked.identity)),
        "flow": flow,
        "subject": subject_of(asked.subject or f"{asked.namespace}:{asked.account}"),
        "master_args": master_args(asked, files),
        "worker_args": [
            *("-f", f"{LOCUSTFILES}/{files.locustfile.path}", "--worker"),
            *("--master-host", f"{asked.name}-master", "--master-port", str(MASTER_PORT)),
        ],
        "operator_args": shlex.join(master_args(asked, files)),
        "paths": {"scenario": SCENARIO, "overrides": OVERRIDES, "locustfile": LOCUSTFILES},
        "ports": {"master": MASTER_PORT, "web": WEB_PORT},
        "resources": {
            "master": resources(plan.master.cores, plan.master.memory_bytes),
            "worker": resources(plan.workers.cores, plan.workers.memory_bytes, figures.LEADER_BYTES),
        },
        "many_ports": plan.workers.kubelets * plan.fleet.connections_each > USUAL_PORTS,
    }


def master_args(asked: Asked, files: RunFiles) -> list[str]:
    """Of ``locust``. Of Locust's operator both master and workers get them, after the --master or --worker that it
    adds; a worker passes over those that are not for it."""
    args = ["-f", f"{OPERATOR_FOLDER if asked.operator else LOCUSTFILES}/{files.locustfile.path}"]
    if asked.web:
        args += ["--master", "--web-host", "0.0.0.0"]  # noqa: S104 - a pod's; who may come there is the cluster's
    else:
        args += [*([] if asked.operator else ["--master"]), "--headless", "--only-summary"]
        args += ["--expect-workers", str(asked.workers)]
        args += ["--expect-workers-max-wait", str(WORKERS_JOIN_WITHIN_S), "-t", asked.timeout]
    args += ["-u", str(asked.nodes), "-r", f"{asked.rate:g}", "--scenario", _placed(asked, files.scenario)]
    for path in files.overrides:
        args += ["--overrides", _placed(asked, path)]
    args += ["--kubeconfig", asked.kubeconfig]
    for flag, value in (("--context", asked.context), ("--i-know", asked.i_know)):
        args += [flag, value] if value else []
    return [*args, "--identity", asked.identity, *asked.extra]


def _placed(asked: Asked, path: str) -> str:
    """Where a mounted file is; a name of ours, which has no folder, stays."""
    return f"{OPERATOR_FOLDER}/{PurePosixPath(path).name}" if asked.operator and "/" in path else path


def resources(cores: float, memory_bytes: int, at_most_bytes: int = 0) -> dict[str, dict[str, str]]:
    """Requests are what is needed at rest. A process of Locust's never uses more than one core, so that limit does
    not throttle it; memory has room for a start over, and for `at_most_bytes` that only one of them may need."""
    millis = min(1000, max(100, math.ceil(cores * 1000 / _CPU_STEP_M) * _CPU_STEP_M))
    return {
        "requests": {"cpu": f"{millis}m", "memory": _mebi(memory_bytes)},
        "limits": {"cpu": "1", "memory": _mebi(memory_bytes * figures.MEMORY_HEADROOM + at_most_bytes)},
    }


def _mebi(value: float) -> str:
    return f"{math.ceil(value / (_MEMORY_STEP_MI << 20)) * _MEMORY_STEP_MI}Mi"
