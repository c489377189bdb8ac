"""A store made again of its data folder: the newest snapshot, and every proposal logged since."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.apiserver.store.core import StoreCore, Txn
from harness.apiserver.store.disk import snapshot
from harness.apiserver.store.disk.folder import DataFolder
from harness.apiserver.store.disk.records import (
    Damage,
    DataCorrupt,
    Proposal,
    Record,
    decode_proposals,
    records,
)


class Recovered(NamedTuple):
    """`proposals` have been applied to `core`; `snapshot_bytes` and `log_bytes` were read. `dropped` says what a crash
    had cut short, "" for nothing."""

    core: StoreCore
    proposals: int
    snapshot_bytes: int
    log_bytes: int
    dropped: str


def recover(folder: DataFolder, now: float) -> Recovered:
    """Read the folder; a record that a crash cut short is removed from it. Raises DataCorrupt where a file is not as
    it was written. Times to live begin anew at `now`."""
    core, proposals, snapshot_bytes = _newest_snapshot(folder, now)
    folder.remove_before(proposals)
    logs = folder.logs()
    if snapshot_bytes and not logs:
        raise DataCorrupt(str(folder.snapshot(proposals)), snapshot_bytes, "its log is missing")
    dropped = ""
    log_bytes = 0
    for log in logs:
        path = folder.log(log)
        if log != proposals:
            raise DataCorrupt(str(path), 0, f"it begins with proposal {log}, not with {proposals}")
        data = path.read_bytes()
        log_bytes += len(data)
        end = 0
        try:
            for record in records(data):
                proposals = _replay(core, path, record, proposals, now)
                end = record.end
        except Damage as damage:
            if not damage.torn or log != logs[-1]:
                raise DataCorrupt(str(path), damage.offset, damage.why) from None
            _cut(path, end)
            dropped = (
                f"{path}: the last write was cut short and is dropped, as nobody was told of it: "
                f"{len(data) - end} bytes after revision {core.revision}"
            )
    return Recovered(core, proposals, snapshot_bytes, log_bytes, dropped)


def _newest_snapshot(folder: DataFolder, now: float) -> tuple[StoreCore, int, int]:
    snapshots = folder.snapshots()
    if not snapshots:
        return StoreCore(), 0, 0
    path = folder.snapshot(snapshots[-1])
    data = path.read_bytes()
    try:
        core, proposals = snapshot.restore([record.payload for record in records(data)], now)
    except Damage as damage:
        raise DataCorrupt(str(path), damage.offset, damage.why) from None
    except ValueError as error:
        raise DataCorrupt(str(path), 0, str(error)) from None
    return core, proposals, len(data)


def _replay(core: StoreCore, path: Path, record: Record, proposals: int, now: float) -> int:
    """Apply a record's proposals again; how many have been applied then."""
    if record.number != proposals:
        raise DataCorrupt(str(path), record.offset, f"proposal {record.number} follows {proposals - 1}")
    try:
        found: list[Proposal] = decode_proposals(record.payload)
    except msgspec.MsgspecError as error:
        raise DataCorrupt(str(path), record.offset, f"a record that is none of ours ({error})") from None
    for proposal in found:
        if isinstance(proposal, Txn):
            core.txn(proposal, now)
        else:
            core.compact(proposal)
    return proposals + len(found)


def _cut(path: Path, end: int) -> None:
    """Take off what is after `end`; a file without a whole record goes."""
    if not end:
        path.unlink()
        return
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, end)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
