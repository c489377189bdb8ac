"""What the loss of a member did to watches: until every kubelet was whole, and where the watches went."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.rows.recovery import recovery_rows
from harness.compare.run import Run
from harness.load.missing import LEFT, MISSING
from tests.compare.planted import Planted

WATCHES = 'apiserver_longrunning_requests{verb="WATCH",resource="pods"}'
ROWS = [f"kubelet-{name}" for name in ("whole-p50", "whole-p99", "whole-last", "losses", "never-whole")]


def figures(run: Run, *others: Run) -> dict[str, float | None]:
    return {row.key: row.value(run) for row in recovery_rows([run, *others])}


def restarted(folder: Path) -> Planted:
    """m0 is away from 12 to 42: its 100 watches go to m1, and a few come back."""
    planted = Planted(folder).scenario()
    planted.event("member-ended", 12, member="m0").event("member-restarted", 42, member="m0")
    planted.event("step-finished", 48, name="Letting watches settle", seconds=6.0)
    planted.down("m0", 15, 20, 25, 30, 35, 40)
    planted.series("m0", WATCHES, {0: 100, 45: 3, 60: 99}).series("m1", WATCHES, {0: 90, 20: 187, 60: 99})
    return planted


def test_until_the_last_kubelet_is_whole(tmp_path: Path) -> None:
    planted = Planted(tmp_path).scenario()
    planted.sample("kubelet", "reflector_sync_ms", "", 5)
    planted.sample("kubelet", MISSING, "why=lost", 1000, 98)
    planted.sample("kubelet", MISSING, "why=lost", 8000, 2)
    planted.sample("kubelet", MISSING, "why=ended", 90_000, 500)  # a watch's time was up
    planted.sample("informer", MISSING, "why=lost", 90_000, 500)
    planted.sample("kubelet", LEFT, "why=lost", 1, 3)
    found = figures(planted.run())
    assert [found[key] for key in ROWS[:3]] == pytest.approx([1000, 8000, 8000], rel=0.02)
    assert [found[key] for key in ROWS[3:]] == [100, 3]


def test_a_fleet_that_lost_nothing_has_no_times_and_no_losses(tmp_path: Path) -> None:
    planted = Planted(tmp_path).scenario().sample("kubelet", "reflector_sync_ms", "", 5)
    assert figures(planted.run()) == dict(zip(ROWS, [None, None, None, 0, 0], strict=True))


def test_without_kubelets_there_is_nothing_to_lose(tmp_path: Path) -> None:
    assert set(figures(Planted(tmp_path).scenario().run()).values()) == {None}


def test_each_members_watches_before_it_ended_and_after_it_came_back(tmp_path: Path) -> None:
    found = figures(restarted(tmp_path).run())
    assert {key: value for key, value in found.items() if key not in ROWS} == {
        "watches-before-restart-of-m0": 100,
        "watches-before-restart-of-m1": 90,
        "watches-after-restart-of-m0": 3,
        "watches-after-restart-of-m1": 187,
    }


def test_after_is_before_anything_is_deleted(tmp_path: Path) -> None:
    planted = restarted(tmp_path).event("phase-started", 49, step=3).event("step-finished", 59, name="delete")
    planted.series("m1", WATCHES, {52: 4})
    assert figures(planted.run())["watches-after-restart-of-m1"] == 187


def test_a_member_that_was_told_to_end_answers_no_more_and_still_had_its_watches(tmp_path: Path) -> None:
    assert figures(restarted(tmp_path).down("m0", 5, 10).run())["watches-before-restart-of-m0"] == 100


def test_the_other_arm_has_no_figure_where_nothing_ended(tmp_path: Path) -> None:
    quiet = Planted(tmp_path / "a").scenario().series("m0", WATCHES, {0: 5}).run()
    found = figures(quiet, restarted(tmp_path / "b").run())
    assert found["watches-before-restart-of-m0"] is None
    assert found["watches-after-restart-of-m1"] is None


def test_a_member_that_did_not_come_back_moved_nothing(tmp_path: Path) -> None:
    planted = Planted(tmp_path).scenario().event("member-ended", 12, member="m0")
    planted.series("m0", WATCHES, {0: 5}).series("m1", WATCHES, {0: 5})
    assert set(figures(planted.run())) == set(ROWS)


def test_one_that_came_back_after_the_last_step_has_a_before_alone(tmp_path: Path) -> None:
    planted = Planted(tmp_path).scenario().event("member-ended", 12).event("member-restarted", 49)
    planted.series("m0", WATCHES, {0: 5}).series("m1", WATCHES, {0: 7})
    keys = set(figures(planted.run())) - set(ROWS)
    assert keys == {"watches-before-restart-of-m0", "watches-before-restart-of-m1"}
