"""A file of tokens, one for each node: kube-apiserver's own CSV (--token-auth-file), or JSON."""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.wire.errors import ConfigError

NODE_USER = "system:node:"


def read_tokens(path: Path) -> dict[str, str]:
    """Tokens by user or node name. CSV has ``token,user,uid[,"group,..."]`` a line, JSON one object of names and
    tokens. Raises ConfigError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise ConfigError(f"--tokens {path}: cannot be read: {reason}") from error
    found = _from_json(path, text) if text.lstrip().startswith("{") else _from_csv(path, text)
    if not found:
        raise ConfigError(f"--tokens {path}: has no tokens")
    return found


def _from_json(path: Path, text: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise ConfigError(f"--tokens {path}: no JSON object of names and tokens: {error}") from error


def _from_csv(path: Path, text: str) -> dict[str, str]:
    found = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not row:
            continue
        if len(row) < 3 or not row[0] or not row[1]:
            raise ConfigError(
                f"--tokens {path}: line {number}: expected token,user,uid or token,user,uid,groups"
            )
        found[row[1]] = row[0]
    return found


def token_of(tokens: dict[str, str], user: str) -> str | None:
    """By the user's name, or a node's by its own."""
    return tokens.get(user) or tokens.get(user.removeprefix(NODE_USER))


def made_up(nodes: int, workers: int, group: str) -> str:
    """A CSV for a fleet of `nodes`: names as workers give them, as many for each worker as there are nodes, since
    Locust decides which worker gets how many."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in _rows(range(workers), nodes, group):
        writer.writerow(row)
    return out.getvalue()


def _rows(workers: Sequence[int], nodes: int, group: str) -> list[tuple[str, str, str, str]]:
    return [
        (secrets.token_urlsafe(16), f"{NODE_USER}{name}", name, group)
        for worker in workers
        for name in (node_name(worker, index) for index in range(nodes))
    ]


def node_name(worker: int, index: int) -> str:
    """Of the `index`-th node of a worker. No two workers make the same, whatever joins or leaves."""
    return f"swarmlet-{worker}-{index}"
