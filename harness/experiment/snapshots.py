"""The snapshot question: what do snapshots of the watch cache cost, and what do they buy, with watch-lists and without?

Four arms, each with a crowd that begins at once, a writer beside it, and clients that page through lists and ask for
past states, which is what snapshots serve (KEP-4988); without them such lists go to etcd.
"""

from __future__ import annotations

from pathlib import Path

from harness.experiment.plan import ArmPlan, ExperimentPlan
from harness.observe.environment import share

OFF = ("--feature-gates", "ListFromCacheSnapshot=false")


def snapshot_plan(
    name: str,
    *,
    informers: int,
    objects: int,
    rate: float,
    samples: int,
    run_time_s: int,
    seed: int,
    members: int,
) -> ExperimentPlan:
    """`rate` is of writes a second."""
    arms = []
    for mode in ("watch-list", "list"):
        crowd = ("--informers", f"count={informers},mode={mode}")
        arms.append(ArmPlan(f"{mode}, snapshots", crowd))
        arms.append(ArmPlan(f"{mode}, no snapshots", (*crowd, *OFF)))
    return ExperimentPlan(
        name=name,
        title=f"Watch cache snapshots: {informers} informers of {objects} configmaps, {rate:g} writes/s",
        arms=tuple(arms),
        samples=samples,
        seed=seed,
        locustfiles=("informers",),
        arguments=(
            *("-r", "50", "-t", f"{run_time_s}s", "--members", str(members)),
            *("--writer", f"objects={objects},rate={rate:g}", "--lists", str(mix_file())),
        ),
    )


def mix_file() -> Path:
    """Our own mix of lists."""
    return share("locustfiles") / "lists.yaml"
