"""What a kubelet costs between and beyond what was measured, and whose figures are used."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.sizing.calibration import (
    Calibration,
    find_calibration,
    read_calibration,
    state_file,
    write_calibration,
)
from harness.wire.errors import ConfigError
from tests.sizing.figures import ROUND


@pytest.mark.parametrize(("watches", "expected"), [(5, 20_000), (20, 50_000), (35, 80_000), (65, 140_000)])
def test_memory_is_on_the_line_through_what_was_measured(watches: int, expected: float) -> None:
    assert ROUND.kubelet_bytes(watches) == pytest.approx(expected)


def test_cpu_is_on_a_line_too() -> None:
    assert ROUND.rest_cpu_ms(20) == pytest.approx(0.035)
    assert ROUND.opening_cpu_s(20) == pytest.approx(0.035)
    assert ROUND.most_kubelets == 1000


def test_one_point_stands_for_any_number_of_watches() -> None:
    one = msgspec.structs.replace(ROUND, points=ROUND.points[1:])
    assert one.kubelet_bytes(5) == one.kubelet_bytes(100) == 80_000


def test_noise_never_makes_more_watches_cheaper() -> None:
    """Memory of two small fleets may differ the wrong way around."""
    few, many = ROUND.points
    odd = msgspec.structs.replace(ROUND, points=(msgspec.structs.replace(few, kubelet_bytes=90_000), many))
    assert odd.kubelet_bytes(5) == odd.kubelet_bytes(1000) == 80_000


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calibration.json"
    write_calibration(path, ROUND)
    assert read_calibration(path) == ROUND
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_the_state_folder_is_the_users(tmp_path: Path) -> None:
    assert state_file({"HOME": "/home/a"}) == Path("/home/a/.local/state/swarmlet/calibration.json")
    assert state_file({"HOME": "/home/a", "XDG_STATE_HOME": "/s"}) == Path("/s/swarmlet/calibration.json")
    assert state_file({"HOME": "/home/a", "XDG_STATE_HOME": "no/path"}).is_relative_to("/home/a")


def test_a_file_that_is_given_goes_first_then_the_users_then_what_comes_with_swarmlet(tmp_path: Path) -> None:
    given, environ = tmp_path / "given.json", {"XDG_STATE_HOME": str(tmp_path)}
    found = find_calibration("", environ)
    assert (found.of_here, found.path.parent.name) == (False, "fleet")
    write_calibration(state_file(environ), ROUND)
    assert find_calibration("", environ).of_here
    other = msgspec.structs.replace(ROUND, origin="another")
    write_calibration(given, other)
    assert find_calibration(str(given), environ).calibration == other


def test_what_comes_with_swarmlet_is_of_few_and_of_many_watches() -> None:
    shipped = find_calibration("", {"HOME": "/nonexistent"}).calibration
    assert [point.watches for point in shipped.points] == [7, 35]
    assert 30_000 < shipped.kubelet_bytes(35) < 120_000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema_version": 2}, "schema_version 2, this swarmlet reads 1"),
        ({"points": ()}, "points: at least one is needed"),
        ({"points": ROUND.points[::-1]}, "points: need different numbers of watches, fewest first"),
        ({"baseline_bytes": 0}, "every figure must be above 0"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    path = tmp_path / "c.json"
    write_calibration(path, msgspec.structs.replace(ROUND, **change))
    with pytest.raises(ConfigError) as refused:
        read_calibration(path, "--calibration ")
    assert str(refused.value) == f"--calibration {path}: {words}"


@pytest.mark.parametrize("text", ["", "{}", "[1", '{"schema_version": 1, "unknown": 2}', "\xff"])
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match="no calibration of swarmlet's"):
        read_calibration(path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        find_calibration(str(tmp_path / "none"), {})


def test_the_committed_file_is_in_the_form_that_is_written() -> None:
    found = find_calibration("", {"HOME": "/nonexistent"})
    text = msgspec.json.format(msgspec.json.encode(found.calibration), indent=2) + b"\n"
    assert found.path.read_bytes() == text
    assert msgspec.json.decode(text, type=Calibration) == found.calibration
