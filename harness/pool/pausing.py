"""A process of a pool that stands still: ``python -m harness.pool.pausing``, told a pid (`Paused`) on standard input.

It stops that process (SIGSTOP), says that it is ready, and lets it go on (SIGCONT) when its standard input ends.
Whoever ordered the pause holds the other end: when that is gone, killed too, the process goes on and finds its own
input ended. Nothing but the standard library and msgspec is imported: a pause should begin soon.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

import msgspec


class Paused(msgspec.Struct, frozen=True):
    pid: int


def main() -> None:
    pid = msgspec.json.decode(sys.stdin.buffer.readline(), type=Paused).pid
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end of the input comes with it
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        try:
            print('{"ready": true}', flush=True)
            sys.stdin.buffer.read()
        finally:
            os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    main()
