"""The benchmarks, a module for each part of swarmlet. Importing a module registers its benchmarks."""

from __future__ import annotations

import importlib

SUITES = (
    "machine",
    "operations",
    "codec",
    "wire",
    "client",
    "cacher",
    "control",
    "member",
    "serving",
    "transport",
    "fleet",
    "informers",
    "executor",
    "report",
)
"""In the order of the table."""


def register_all() -> None:
    for name in SUITES:
        importlib.import_module(f"{__name__}.{name}")
