"""What HAProxy says of the members behind it, over its stats socket (management guide, 9.1: CSV format)."""

from __future__ import annotations

import csv
import socket
from pathlib import Path

import msgspec

BACKEND = "members"
_ANSWER_WITHIN_S = 2.0
_OF_NO_SERVER = ("FRONTEND", "BACKEND")


class MemberStats(msgspec.Struct, frozen=True):
    """`status` as HAProxy has it (``UP``, ``DOWN 1/2``); `current` connections, and `total` since its start."""

    status: str
    current: int
    total: int


def parse_stats(text: str) -> dict[str, MemberStats]:
    """The members, by name, of the answer to ``show stat``. Raises ValueError for anything else."""
    lines = text.strip().splitlines()
    if not lines or not lines[0].startswith("# pxname,svname,"):
        raise ValueError(f"no statistics: {text[:80]!r}")
    rows = csv.DictReader([lines[0].removeprefix("# "), *lines[1:]])
    return {
        row["svname"]: MemberStats(row["status"], int(row["scur"]), int(row["stot"]))
        for row in rows
        if row["pxname"] == BACKEND and row["svname"] not in _OF_NO_SERVER
    }


def ask_stats(path: Path) -> dict[str, MemberStats]:
    """By the socket. Raises OSError, and ValueError for an answer that is none."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_WITHIN_S)
        connection.connect(str(path))
        connection.sendall(b"show stat\n")
        with connection.makefile("rb") as stream:
            return parse_stats(stream.read().decode("utf-8", "replace"))
