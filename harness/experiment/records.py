"""Records that a user names: found, and read as far as figures need, with one clear message for each that cannot be."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from harness.compare.run import Run
from harness.observe.record import SCHEMA_VERSION, TABLES, Manifest, Status, read_manifest
from harness.wire.errors import ConfigError


def records_in(folder: Path) -> list[Path]:
    """The samples of an experiment's folder; a record itself, which has a table of that name."""
    samples = folder / "samples"
    if (folder / "manifest.json").exists() or not samples.is_dir():
        return [folder]
    return sorted(path for path in samples.iterdir() if path.is_dir())


def load_runs(folders: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Each record that can be compared, and of each other one why not."""
    runs, problems = [], []
    for folder in folders:
        try:
            runs.append(load_run(folder))
        except ConfigError as error:
            problems.append(str(error))
    return runs, problems


def load_run(folder: Path) -> Run:
    """A record all of which can be read. Raises ConfigError."""
    _check_version(folder / "manifest.json")
    run = Run(folder)
    manifest = run.manifest
    if manifest.status == Status.RUNNING.value:
        raise ConfigError(f"{folder}: its run has not ended (process {manifest.pid})")
    if manifest.status not in {status.value for status in Status}:
        raise ConfigError(f"{folder / 'manifest.json'}: status: {manifest.status!r:.40} is none of a run")
    if not all(isinstance(member, dict) for member in manifest.target.get("members", ())):
        raise ConfigError(f"{folder / 'manifest.json'}: target.members: not a list of members")
    for number, event in enumerate(run.events, 1):
        if not (isinstance(event, dict) and isinstance(event.get("t"), int | float) and "kind" in event):
            raise ConfigError(f"{folder / 'events.jsonl'}: event {number} has no time and kind")
    for table in TABLES:
        _check_table(folder, table)
    return run


class _Version(msgspec.Struct):
    schema_version: int


def _check_version(path: Path) -> None:
    """Before it is read as ours: what another version wrote may have another shape."""
    with contextlib.suppress(OSError):
        try:
            version = msgspec.json.decode(path.read_bytes(), type=_Version).schema_version
        except msgspec.DecodeError as error:
            raise ConfigError(f"{path}: no manifest of a run: {error}") from None
        if version > SCHEMA_VERSION:
            raise ConfigError(
                f"{path}: of a newer version of swarmlet (record schema {version}; this one reads {SCHEMA_VERSION})"
            )


def _check_table(folder: Path, table: str) -> None:
    """Raises ConfigError for a part that is cut off, or holds something else."""
    for part in sorted((folder / table).glob("part-*.parquet")):
        try:
            columns = pq.read_schema(part).names
            if lacking := [name for name in TABLES[table].names if name not in columns]:
                raise ConfigError(f"{part}: no table of {table}: it has no column {lacking[0]}")
            pq.read_table(part, schema=TABLES[table])
        except (pa.ArrowException, OSError, ValueError) as error:
            problem = " ".join(str(error).split())
            raise ConfigError(f"{part}: broken or cut off: {problem:.200}") from None


def newest_manifest(samples: Path) -> Manifest | None:
    """Of the run that began last; None where there is none."""
    found = []
    for path in samples.glob("*/manifest.json"):
        with contextlib.suppress(ConfigError):
            found.append(read_manifest(path.parent))
    return max(found, key=lambda manifest: manifest.started, default=None)
