"""Work in a process of its own: memory is measured from a fresh heap, and gevent stays out of the suite's process.

``python -m benchmarks.child module:function`` reads the function's arguments as a JSON object on stdin and writes what
it returns as JSON on stdout.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parent.parent


class ChildFailed(Exception):
    """The process ended with an error; its last words are the message."""


def environment() -> dict[str, str]:
    """Of a child that finds the packages of this repository wherever it is started."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, "PYTHONPATH": path}


def in_child(function: Callable[..., Any], **arguments: Any) -> Any:
    """What a module's `function` returns when another process calls it; all of it must fit JSON."""
    command = [sys.executable, "-m", "benchmarks.child", f"{function.__module__}:{function.__qualname__}"]
    done = subprocess.run(
        command, input=msgspec.json.encode(arguments), capture_output=True, check=False, env=environment()
    )
    if done.returncode:
        raise ChildFailed(f"{command[-1]}:\n{done.stderr.decode(errors='replace')[-2000:]}")
    return msgspec.json.decode(done.stdout)


def _main() -> None:
    module, _, name = sys.argv[1].partition(":")
    function = getattr(importlib.import_module(module), name)
    result = function(**msgspec.json.decode(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    _main()
