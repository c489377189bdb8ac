"""A calibration with round figures, and a machine to plan for."""

from __future__ import annotations

from harness.sizing.calibration import Calibration, Point
from harness.sizing.fleet import Machine

ROUND = Calibration(
    date="2026-11-29",
    machine={"cores": 2, "architecture": "x86_64", "system": "Linux", "python": "3.11.7"},
    origin="made up",
    baseline_bytes=100_000_000,
    event_cpu_us=50.0,
    points=(
        Point(watches=5, kubelets=1000, kubelet_bytes=20_000, rest_cpu_ms=0.02, opening_cpu_s=0.02),
        Point(watches=35, kubelets=1000, kubelet_bytes=80_000, rest_cpu_ms=0.05, opening_cpu_s=0.05),
    ),
)
LARGE = Machine(cores=64, memory_bytes=256_000_000_000, files=1_000_000, ports=28_232)
SMALL = Machine(cores=2, memory_bytes=24_000_000_000, files=20_000, ports=28_232)
