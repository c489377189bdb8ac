"""What every test gets: a check that it left nothing running or open."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

DATA = Path(__file__).parent / "data"
HANG_S = 60.0
"""A wait that only ends what hangs: the machine may be slow, and stand still for some seconds."""
GONE_WITHIN_S = 10.0

# The same examples on every run, so that what fails was broken by the change at hand. To look for new ones:
# `--hypothesis-profile search`.
# No example has to be quick: the machine may stand still for a moment.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", max_examples=1000, deadline=None)
settings.load_profile("suite")


def _open_files() -> set[str]:
    """Open descriptors as "number target"; those that libraries open once for a whole process are left out."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith(("socket:", "pipe:")) or (
            target.startswith("/") and not target.startswith("/dev/")
        ):
            found.add(f"{number} {target}")
    return found


USE_GEVENT = {"transport", "load"}  # folders whose tests run greenlets in this process


def _greenlets() -> int:
    """Greenlets that still run, the hub aside; 0 where gevent was never imported. Walks the heap: 30 ms and more."""
    gevent = sys.modules.get("gevent")
    if gevent is None:
        return 0
    return sum(isinstance(thing, gevent.Greenlet) and not thing.dead for thing in gc.get_objects())


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE}


@pytest.fixture(autouse=True)
def _leaves_nothing(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a file descriptor, a greenlet or a process behind."""
    uses_gevent = bool(USE_GEVENT.intersection(request.path.parts))
    greenlets = _greenlets() if uses_gevent else 0
    files, children = _open_files(), _children()
    yield
    until = time.monotonic() + GONE_WITHIN_S
    while True:
        leaked, left = _open_files() - files, _children() - children
        runs_on = uses_gevent and _greenlets() > greenlets
        if not (leaked or left or runs_on) or time.monotonic() >= until:
            break
        gc.collect()
        # What ended, and what was closed, may take a turn of gevent's loop to be gone, or of a thread that closes it.
        gevent = sys.modules.get("gevent")
        (gevent or time).sleep(0.01)
    assert not leaked, f"left open: {sorted(leaked)}"
    assert not left, f"left running: {left}"
    assert not runs_on, "left greenlets running"


@pytest.fixture(autouse=True)
def no_locust_in_a_worker_of_xdist() -> Iterator[None]:
    """Locust patches the threads of the process that imports it; those that xdist talks over then hang. Such tests go
    into folders that run without it (Makefile: WITH_LOCUST), or into processes of their own."""
    yield
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert "locust" not in sys.modules


def pytest_configure() -> None:
    """A shell has its background jobs ignore SIGINT, and what they start would too: tests that send one, to themselves
    or to a run, would wait in vain."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
