"""Who waits for whom on a machine that is too small: each case in a process of its own, as a priority stays lowered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.apiserver.process.priority import NICENESS

AUTOGROUP = Path("/proc/self/autogroup")

PROGRAM = """
import os, pathlib
from harness.apiserver.process.priority import yield_to_fleets
before = os.nice(0)
yield_to_fleets()
print(os.nice(0) - before)
group = pathlib.Path("/proc/self/autogroup")
print(group.read_text() if group.exists() else "")
"""


def yielded(own_session: bool) -> tuple[int, str]:
    """By how much the niceness grew, and what Linux says of the session."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=own_session,
    )
    grown, session = done.stdout.split("\n", 1)
    return int(grown), session.strip()


def test_a_process_with_a_session_of_its_own_lowers_that_too() -> None:
    grown, session = yielded(own_session=True)
    assert grown == NICENESS
    if session:
        assert session.endswith(f"nice {NICENESS}")


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this kernel does not schedule by session")
def test_a_session_of_others_is_left_alone() -> None:
    grown, session = yielded(own_session=False)
    assert (grown, session) == (NICENESS, AUTOGROUP.read_text().strip())
