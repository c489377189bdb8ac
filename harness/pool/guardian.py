"""A program that is not ours, as a child that cannot outlive its parent: ``python -m harness.pool.guardian``.

It is told what to run as `Guarded` on the first line of standard input, says ``{"ready": true, "pid": n}`` once that
runs, and ends with its exit code. On SIGTERM the program is asked to end, in its own time; when standard input ends it
is told to with a signal of one's choice, and killed when it does not. Where the kernel can, it is killed with us too
(prctl(2), PR_SET_PDEATHSIG). Nothing but the standard library and msgspec is imported: there may be many of these.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

import msgspec

STOP_WITHIN_S = 4.0  # less than `pool.process` gives us
_PR_SET_PDEATHSIG = 1


class Guarded(msgspec.Struct, frozen=True):
    """The program and its arguments, variables beside our own, and the signal that ends it with its parent."""

    argv: list[str]
    environ: dict[str, str] = {}
    stop_signal: int = signal.SIGTERM


def main() -> None:
    guarded = msgspec.json.decode(sys.stdin.buffer.readline(), type=Guarded)
    try:
        program = subprocess.Popen(
            guarded.argv,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            env={**os.environ, **guarded.environ},
            preexec_fn=_die_with_parent,
        )
    except (OSError, subprocess.SubprocessError) as error:
        _say({"error": f"{guarded.argv[0]}: {error}"})
        sys.exit(2)
    _say({"ready": True, "pid": program.pid})
    signal.signal(signal.SIGTERM, lambda number, frame: program.terminate())
    threading.Thread(
        target=_until_our_parent_is_gone, args=(program, guarded.stop_signal), daemon=True
    ).start()
    code = program.wait()
    sys.exit(code if code >= 0 else 128 - code)


def _until_our_parent_is_gone(program: subprocess.Popen[bytes], stop_signal: int) -> None:
    while os.read(sys.stdin.fileno(), 4096):  # not sys.stdin's own lock, which nobody may hold when we exit
        pass
    with contextlib.suppress(ProcessLookupError):
        program.send_signal(stop_signal)
        try:
            program.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            program.kill()


def _die_with_parent() -> None:
    """In the child, before it becomes the program."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(message: dict[str, object]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
