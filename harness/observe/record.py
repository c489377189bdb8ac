"""A run record: the folder that one run writes and everything afterwards reads.

::

    manifest.json    what ran: versions, arguments, scenario, seed, host, pool; status and marks
    events.jsonl     {"t": seconds since 1970, "kind": ..., ...}: phases, barriers, faults, warnings, as they happen
    series/*.parquet t, member, series, value: /metrics of every member and the cost of every process
    requests/*.parquet  t, user, verb, name, code, member, bucket, count: latencies seen by the clients
    samples/*.parquet   t, user, name, labels, bucket, count: what the machines measured themselves, in milliseconds
    logs/            what the processes of the run said

Every file is whole at any moment: the manifest is replaced, events are appended by line, Parquet parts are renamed into
place. So a record can be read while its run goes on, and one whose writer was killed says so: its status is still
"running" while the process that wrote it is gone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace

SCHEMA_VERSION = 1

REPORTED_EVERY_S = 1.0
"""Real seconds. What clients measure is of the time at which their worker reported it. A worker that is killed takes
along what it counted since: Locust's own 3 s would be more than one part in a thousand of some runs."""

_TEXT = pa.dictionary(pa.int32(), pa.string())
SERIES = pa.schema([("t", pa.float64()), ("member", _TEXT), ("series", _TEXT), ("value", pa.float64())])
REQUESTS = pa.schema(
    [
        ("t", pa.float64()),
        ("user", _TEXT),
        ("verb", _TEXT),
        ("name", _TEXT),
        ("code", pa.int16()),
        ("member", _TEXT),
        ("bucket", pa.int16()),
        ("count", pa.int64()),
    ]
)

SAMPLES = pa.schema(
    [
        ("t", pa.float64()),
        ("user", _TEXT),
        ("name", _TEXT),
        ("labels", _TEXT),
        ("bucket", pa.int16()),
        ("count", pa.int64()),
    ]
)
TABLES = {"series": SERIES, "requests": REQUESTS, "samples": SAMPLES}


class Status(Enum):
    RUNNING = "running"
    COMPLETED = "completed"  # the scenario ran to its end
    CAPPED = "capped"  # ended by -t before the scenario did
    INTERRUPTED = "interrupted"  # by a signal
    FAILED = "failed"  # a step, a process or a worker failed
    KILLED = "killed"  # its writer is gone without a word; only ever read, never written


class Mark(msgspec.Struct, frozen=True):
    """Something that a reader of the figures must know. `invalid` marks make the run unfit for comparison."""

    text: str
    invalid: bool = False


class Manifest(msgspec.Struct, kw_only=True, omit_defaults=False):
    """What ran. Times are seconds since 1970, of the model's time of day where `pace` slows it down; `ended` is None
    while the run goes on. `prometheus` says which one answered the scenario's queries (url, version), empty where there
    was none."""

    name: str
    started: float
    ended: float | None = None
    status: str = Status.RUNNING.value
    schema_version: int = SCHEMA_VERSION
    pid: int = 0
    pid_started: float = 0.0
    arm: str = ""
    sample: int = 0
    seed: int = 0
    nodes: int = 0
    pace: Pace = REAL
    arguments: dict[str, Any] = {}
    versions: dict[str, str] = {}
    host: dict[str, Any] = {}
    target: dict[str, Any] = {}
    scenario: dict[str, Any] = {}
    prometheus: dict[str, Any] = {}
    results: dict[str, Any] = {}
    marks: list[Mark] = []

    @property
    def invalid(self) -> list[str]:
        """Why the figures must not be compared; empty where they may be."""
        reasons = [mark.text for mark in self.marks if mark.invalid]
        if (
            self.status in (Status.KILLED.value, Status.FAILED.value, Status.INTERRUPTED.value)
            and not reasons
        ):
            reasons.append(f"the run was {self.status}")
        return reasons


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)


class Parts:
    """Rows of one table, written as numbered Parquet parts. `flush` is cheap when there is nothing new."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder = folder
        self._schema = schema
        self._columns: list[list[Any]] = [[] for _ in schema]
        folder.mkdir(parents=True, exist_ok=True)
        self._number = len(list(folder.glob("part-*.parquet")))

    def add(self, row: Sequence[Any]) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)

    def flush(self) -> None:
        if not self._columns[0]:
            return
        arrays = [
            pa.array(column, field.type) for column, field in zip(self._columns, self._schema, strict=True)
        ]
        path = self._folder / f"part-{self._number:05d}.parquet"
        partial = path.with_suffix(".partial")
        pq.write_table(pa.Table.from_arrays(arrays, schema=self._schema), partial, compression="zstd")
        partial.replace(path)
        self._number += 1
        for column in self._columns:
            column.clear()


class RunRecord:
    """The writer. One process (Locust's master) owns the manifest, the events and the requests; the scraper's process
    owns the series. `wall` is the clock of all stamps, at the manifest's pace."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "manifest.json").exists():
            raise ConfigError(f"record folder {folder} already holds a run; give another with --record")
        (folder / "logs").mkdir(exist_ok=True)
        self.folder = folder
        self.manifest = manifest
        self.wall = manifest.pace.stamps(time.time)
        manifest.pid = os.getpid()
        manifest.pid_started = psutil.Process().create_time()
        self._events = (folder / "events.jsonl").open("ab", buffering=0)
        self._requests = Parts(folder / "requests", REQUESTS)
        self._samples = Parts(folder / "samples", SAMPLES)
        self.save()

    def save(self) -> None:
        _replace(self.folder / "manifest.json", msgspec.json.format(msgspec.json.encode(self.manifest)))

    def event(self, kind: str, fields: dict[str, Any] | None = None, *, t: float | None = None) -> None:
        line = {"t": self.wall() if t is None else t, "kind": kind, **(fields or {})}
        self._events.write(msgspec.json.encode(line) + b"\n")

    def mark(self, text: str, *, invalid: bool = False) -> None:
        """Say something that a reader of the figures must know; each text once."""
        if all(mark.text != text for mark in self.manifest.marks):
            self.manifest.marks.append(Mark(text, invalid))
            self.event("mark", {"text": text, "invalid": invalid})
            self.save()

    def requests(self, rows: Iterable[Sequence[Any]]) -> None:
        """Rows as `REQUESTS`; kept until `flush`."""
        for row in rows:
            self._requests.add(row)

    def samples(self, rows: Iterable[Sequence[Any]]) -> None:
        """Rows as `SAMPLES`; kept until `flush`."""
        for row in rows:
            self._samples.add(row)

    def flush(self) -> None:
        self._requests.flush()
        self._samples.flush()

    def finish(self, status: Status, *, t: float | None = None) -> None:
        """`t` is when, in seconds since 1970; now where it is None."""
        self.flush()
        self.manifest.status = status.value
        self.manifest.ended = self.wall() if t is None else t
        self.event("run-ended", {"status": status.value}, t=self.manifest.ended)
        self.save()
        self._events.close()


def read_manifest(folder: Path) -> Manifest:
    """The manifest, with status "killed" where the run's process is gone. Raises ConfigError for what is no record."""
    path = folder / "manifest.json"
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise ConfigError(f"{folder} is no run record: it has no manifest.json") from None
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path}: not a manifest: {error}") from None
    if manifest.status == Status.RUNNING.value and not _alive(manifest):
        manifest.status = Status.KILLED.value
        manifest.marks.append(Mark("the run was killed before it could end its record", invalid=True))
    return manifest


def _alive(manifest: Manifest) -> bool:
    try:
        return abs(psutil.Process(manifest.pid).create_time() - manifest.pid_started) < 1
    except psutil.Error:
        return False


def read_events(folder: Path) -> list[dict[str, Any]]:
    """Events in the order written; a last line that was cut off by a kill is left out."""
    events = []
    try:
        lines = (folder / "events.jsonl").read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    for line in lines:
        if line:
            try:
                events.append(msgspec.json.decode(line))
            except msgspec.DecodeError:
                continue
    return events


def read_table(folder: Path, name: str) -> pa.Table:
    """One of `TABLES` of a record, all parts; empty where none was written."""
    schema = TABLES[name]
    parts = sorted((folder / name).glob("part-*.parquet"))
    if not parts:
        return schema.empty_table()
    return pa.concat_tables([pq.read_table(part, schema=schema) for part in parts]).unify_dictionaries()
