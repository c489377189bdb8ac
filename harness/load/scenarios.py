"""Finding a scenario, and the machine that runs it."""

from __future__ import annotations

from pathlib import Path

from harness.client.rest import Rest
from harness.clusterloader import ClusterLoader, ClusterLoaderOptions, Files, load_config
from harness.load.context import WorkerContext
from harness.load.labels import labels_of
from harness.observe.environment import share
from harness.wire.errors import ConfigError

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


def scenario_machine(context: WorkerContext) -> Rest:
    """The run's scenario; it begins when every kubelet of the fleet is Ready. Raises ConfigError."""
    plan = context.plan
    config = load_config(
        plan.scenario, plan.kubelets, plan.overrides, plan.environ, seed=plan.seed, files=Files(plan.files)
    )
    labels = tuple(labels_of(plan.run).items())
    options = ClusterLoaderOptions(await_nodes=plan.kubelets, labels=labels)
    loader = ClusterLoader(config, options, context.rng("clusterloader"), context.epoch_s)
    return Rest(loader, loader.limiters())
