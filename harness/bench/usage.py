"""What one process has used, read from outside."""

from __future__ import annotations

from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Usage:
    """`cpu_s`: user and system time so far, or of a span; `rss_bytes`: resident now, or at its end."""

    cpu_s: float
    rss_bytes: int

    def __sub__(self, before: Usage) -> Usage:
        """Of the span between two moments."""
        return Usage(self.cpu_s - before.cpu_s, self.rss_bytes)


def of_process(pid: int) -> Usage:
    """Raises psutil.NoSuchProcess where it has gone."""
    process = psutil.Process(pid)
    times = process.cpu_times()
    return Usage(times.user + times.system, process.memory_info().rss)
