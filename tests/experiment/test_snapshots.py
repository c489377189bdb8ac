"""The arms of the snapshot question."""

from __future__ import annotations

from pathlib import Path

from harness.experiment.plan import sample_arguments
from harness.experiment.snapshots import mix_file, snapshot_plan


def test_each_arm_differs_in_what_its_name_says() -> None:
    plan = snapshot_plan(
        "s", informers=50, objects=2000, rate=20.0, samples=3, run_time_s=30, seed=1, members=2
    )
    plan.validate()
    assert plan.locustfiles == ("informers",)
    assert mix_file().exists()
    arms = {arm.name: sample_arguments(plan, arm, 1, Path("r")) for arm in plan.arms}
    assert list(arms) == [
        "watch-list, snapshots",
        "watch-list, no snapshots",
        "list, snapshots",
        "list, no snapshots",
    ]
    for name, arguments in arms.items():
        mode = name.partition(",")[0]
        assert f"count=50,mode={mode}" in arguments
        assert ("ListFromCacheSnapshot=false" in arguments) == name.endswith("no snapshots")
        assert arguments[:6] == ["-r", "50", "-t", "30s", "--members", "2"]
        assert "--scenario" not in arguments
        assert "objects=2000,rate=20" in arguments
