"""The arms of the snapshot question."""

from __future__ import annotations

from pathlib import Path

from harness.experiment.document import find_experiment, read_experiment
from harness.experiment.plan import sample_arguments


def test_each_arm_differs_in_what_its_name_says() -> None:
    plan = read_experiment(find_experiment("snapshots"))
    plan.validate()
    assert plan.locustfiles == ("informers",)
    arms = {arm.name: sample_arguments(plan, arm, 1, Path("r")) for arm in plan.arms}
    assert list(arms) == [
        "watch-list, snapshots",
        "watch-list, no snapshots",
        "list, snapshots",
        "list, no snapshots",
    ]
    for name, arguments in arms.items():
        mode = name.partition(",")[0]
        assert f"--informers=count=50,mode={mode}" in arguments
        off = any("ListFromCacheSnapshot=false" in argument for argument in arguments)
        assert off == name.endswith("no snapshots")
        assert {"--run-time=30s", "--members=1", "--writer=objects=2000,rate=20"} <= set(arguments)
        assert not any(argument.startswith("--scenario") for argument in arguments)
        mix = next(argument for argument in arguments if argument.startswith("--lists="))
        assert Path(mix.removeprefix("--lists=")).exists()
