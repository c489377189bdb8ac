"""What a worker's kubelets cost on some machine: the file that ``swarmlet bench --save`` writes.

A kubelet is measured with few watches and with many; what lies between, and beyond, is on the straight line through
these two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.observe.environment import share
from harness.wire.errors import ConfigError

SCHEMA_VERSION = 1
COMMITTED = "benchmarks/results/fleet"
"""Beside the package, or inside where it was installed; names begin with their date."""


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fleet that was measured. `kubelet_bytes`: resident memory of the load process for each kubelet, beyond its
    baseline; `rest_cpu_ms`: of the same process, for each kubelet and second without events; `opening_cpu_s`: of
    the same process, for each kubelet from its start until all its watches are open."""

    watches: int
    kubelets: int
    kubelet_bytes: float
    rest_cpu_ms: float
    opening_cpu_s: float


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`points` are of different numbers of watches, fewest first. `baseline_bytes`: a load process before its first
    kubelet; `event_cpu_us`: of the load process for each watch event. `machine` describes without naming it; `origin`
    says what was run."""

    date: str
    machine: dict[str, str | int]
    origin: str
    baseline_bytes: int
    event_cpu_us: float
    points: tuple[Point, ...]
    schema_version: int = SCHEMA_VERSION

    def kubelet_bytes(self, watches: int) -> float:
        return self._at(watches, lambda point: point.kubelet_bytes)

    def rest_cpu_ms(self, watches: int) -> float:
        return self._at(watches, lambda point: point.rest_cpu_ms)

    def opening_cpu_s(self, watches: int) -> float:
        return self._at(watches, lambda point: point.opening_cpu_s)

    @property
    def most_kubelets(self) -> int:
        """The largest fleet that was measured in one process."""
        return max(point.kubelets for point in self.points)

    def _at(self, watches: int, figure: Callable[[Point], float]) -> float:
        """On the line through the points with the fewest and the most watches; never below the least of the two for
        more watches, nor below 0."""
        few, many = self.points[0], self.points[-1]
        if few.watches == many.watches:
            return figure(many)
        slope = max(0.0, (figure(many) - figure(few)) / (many.watches - few.watches))
        return max(0.0, figure(many) + slope * (watches - many.watches))


class Found(NamedTuple):
    """A calibration and where it came from; `of_here` is False for the figures that come with swarmlet."""

    calibration: Calibration
    path: Path
    of_here: bool


def state_file(environ: Mapping[str, str]) -> Path:
    """Where this user's calibration is kept: XDG_STATE_HOME, else ~/.local/state."""
    base = environ.get("XDG_STATE_HOME", "")
    folder = Path(base) if base.startswith("/") else Path(environ.get("HOME") or Path.home(), ".local/state")
    return folder / "swarmlet" / "calibration.json"


def find_calibration(given: str, environ: Mapping[str, str]) -> Found:
    """The file that was given, else this user's, else what comes with swarmlet. Raises ConfigError."""
    if given:
        return Found(read_calibration(Path(given), "--calibration "), Path(given), True)
    path = state_file(environ)
    if path.is_file():
        return Found(read_calibration(path), path, True)
    committed = max(share(COMMITTED).glob("*.json"), default=None)
    if committed is None:
        raise ConfigError(
            "no calibration: give one by --calibration FILE, or make one: swarmlet bench --save"
        )
    return Found(read_calibration(committed), committed, False)


def read_calibration(path: Path, flag: str = "") -> Calibration:
    """Raises ConfigError, one line; `flag` stands in front of the path."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Calibration)
    except OSError as error:
        raise ConfigError(f"{flag}{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(f"{flag}{path}: no calibration of swarmlet's: {error}") from None
    problem = _problem(found)
    if problem:
        raise ConfigError(f"{flag}{path}: {problem}")
    return found


def _problem(found: Calibration) -> str:
    if found.schema_version != SCHEMA_VERSION:
        return f"schema_version {found.schema_version}, this swarmlet reads {SCHEMA_VERSION}"
    if not found.points:
        return "points: at least one is needed"
    watches = [point.watches for point in found.points]
    if watches != sorted(set(watches)):
        return "points: need different numbers of watches, fewest first"
    figures = [found.baseline_bytes, found.event_cpu_us]
    for point in found.points:
        figures += [point.kubelets, point.kubelet_bytes, point.rest_cpu_ms, point.opening_cpu_s]
    return "" if all(0 < figure < float("inf") for figure in figures) else "every figure must be above 0"


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(calibration), indent=2) + b"\n"
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(text)
    os.replace(unfinished, path)
