"""All rows, by group, in the order of a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.compare.rows.cache import cache_rows
from harness.compare.rows.clients import client_rows
from harness.compare.rows.etcd import etcd_rows
from harness.compare.rows.informers import informer_rows
from harness.compare.rows.load import load_rows
from harness.compare.rows.provisioners import provisioner_rows
from harness.compare.rows.requests import request_rows
from harness.compare.rows.row import GROUPS, Row
from harness.compare.rows.throughput import throughput_rows
from harness.compare.rows.watches import watch_rows
from harness.compare.run import Run

_MAKERS: dict[str, Callable[[Sequence[Run]], list[Row]]] = {
    "throughput": throughput_rows,
    "load": load_rows,
    "requests": request_rows,
    "watches": watch_rows,
    "etcd": etcd_rows,
    "cache and authorizer": cache_rows,
    "clients": client_rows,
    "provisioners": provisioner_rows,
    "informers": informer_rows,
}


def every_row(runs: Sequence[Run]) -> list[Row]:
    """The rows for a comparison of these runs: those that every comparison has, and those for what they contain."""
    return [replace(row, group=group) for group in GROUPS for row in _MAKERS[group](runs)]
