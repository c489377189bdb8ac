"""Finding a scenario, and the machines that run it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from harness.client.rest import Rest
from harness.clusterloader import ClusterLoader, ClusterLoaderOptions, Config, Files, load_config
from harness.clusterloader.follower import Follower
from harness.clusterloader.objects import clients_for
from harness.documents.yamltext import YamlError, first_document
from harness.kperf import is_profile
from harness.load.labels import labels_of
from harness.load.plan import Plan
from harness.observe.environment import share
from harness.wire.errors import ConfigError

if TYPE_CHECKING:
    from harness.load.context import WorkerContext

NONE = "none"


def find_scenario(name: str) -> str:
    """Path of a scenario given as a file or by the name of one of ours; "" for none. Raises ConfigError."""
    if name == NONE:
        return ""
    ours = share("clusterloader_configs")
    for path in (Path(name), ours / f"{name}.yaml"):
        if path.is_file():
            return str(path.resolve())
    known = ", ".join(sorted(path.stem for path in ours.glob("*.yaml")))
    raise ConfigError(f"scenario {name!r}: no such file, nor one of ours ({known}); {NONE!r} runs without")


def locustfile_of(path: str) -> str:
    """Which locustfile runs a scenario that was found. Raises ConfigError for a file that is plainly of no kind."""
    if path and is_profile(path):
        return "kperf"
    try:
        document = first_document(Path(path).read_text("utf-8")) if path else None
    except (OSError, UnicodeDecodeError, YamlError):
        document = None  # a template, most likely; reading it as a config says what is wrong with it
    if document is not None and "steps" not in _keys(document):
        raise ConfigError(
            f"{path}: neither a ClusterLoader2 config (steps) nor a suite (a list of tests), "
            "nor a kperf profile (specs) or runner group (loadProfile)"
        )
    return "kubelets"


def _keys(document: object) -> set[str]:
    return {str(key).lower() for key in document} if isinstance(document, dict) else set()


def scenario_machine(context: WorkerContext) -> Rest:
    """The run's scenario; it begins when every kubelet of the fleet is Ready. Raises ConfigError."""
    plan = context.plan
    config = _config(plan)
    labels = tuple(labels_of(plan.run).items())
    options = ClusterLoaderOptions(
        await_nodes=plan.kubelets, labels=labels, executors=plan.executors, prometheus=plan.prometheus
    )
    rng = random.Random(f"{plan.seed}/0/clusterloader")  # whichever worker leads
    loader = ClusterLoader(config, options, rng, context.epoch_s)
    return Rest(loader, loader.limiters())


def follower_machine(context: WorkerContext) -> Rest:
    """What does shares of the scenario's phases on a worker that does not lead it. Raises ConfigError."""
    plan = context.plan
    labels = tuple(labels_of(plan.run).items())
    clients = clients_for(plan.kubelets)
    follower = Follower(_config(plan), clients, labels, context.rng("clusterloader"), context.epoch_s)
    return Rest(follower, follower.limiters())


def _config(plan: Plan) -> Config:
    return load_config(
        plan.scenario, plan.kubelets, plan.overrides, plan.environ, seed=plan.seed, files=Files(plan.files)
    )
