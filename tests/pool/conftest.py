"""A pool of three for the tests of a module."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.pool.control import Control
from harness.pool.disturbances import Disturbances
from harness.pool.emulated import EmulatedPool, PoolOptions


@pytest.fixture(scope="module")
def pool() -> Iterator[EmulatedPool]:
    """Three members as fast as this machine, with a kubeconfig in a folder that is short and the module's own, and what
    their supervisor would listen to."""
    folder = Path(tempfile.mkdtemp(prefix="swt-"))
    events: list[object] = []
    options = PoolOptions(
        members=3, cores="host", kubeconfig=str(folder / "kubeconfig"), logs=str(folder / "logs")
    )
    started = EmulatedPool(options, events.append)
    started.start()
    disturbances = Disturbances(started, events.append)
    control = Control(started.control, disturbances)
    try:
        yield started
    finally:
        control.close()
        disturbances.close()
        started.stop()
        logs = "".join(path.read_text() for path in sorted((folder / "logs").iterdir()))
        shutil.rmtree(folder)
    assert "Traceback" not in logs, logs[-3000:]
