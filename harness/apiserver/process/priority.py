"""Which of a machine's processes has to wait where they do not all fit: the members, not the fleets.

What comes late in a worker makes every latency that it measures wrong at once. A member has slack: it has done its work
long before the model says that it answers.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

NICENESS = 5
"""A third of the weight of a process at 0. As members have sessions of their own, Linux shares a core out by session
(sched(7), "The autogroup feature"), and a fleet's master and two workers are in one: they are level with it then."""

_AUTOGROUP = Path("/proc/self/autogroup")


def yield_to_fleets() -> None:
    """Lower this process's priority, and that of a session of its own, where Linux counts that instead. Call it
    once."""
    os.nice(NICENESS)
    if os.getsid(0) == os.getpid():  # else it is somebody's terminal
        with contextlib.suppress(OSError):  # no such Linux, or not for us to say
            _AUTOGROUP.write_text(str(NICENESS))
