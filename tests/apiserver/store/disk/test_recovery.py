"""What was acknowledged is there again, whatever the crash; what was not is dropped whole, and said."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.apiserver.store.core import StoreCore, Txn
from harness.apiserver.store.disk.records import MAGIC, DataCorrupt
from harness.wire.errors import ConfigError
from tests.apiserver.store.disk.disks import Disk, opened, random_proposal, state


def filled(path: Path, writes: int, seed: int = 1, snapshot_after_bytes: int = 1 << 30) -> StoreCore:
    """A folder after `writes` random writes, and the store that acknowledged them."""
    random = Random(seed)
    with opened(path, snapshot_after_bytes) as disk:
        for _ in range(writes):
            disk.write(random_proposal(random, disk.core))
        return disk.core


def test_an_empty_folder_is_an_empty_store(tmp_path: Path) -> None:
    for _ in range(2):
        with opened(tmp_path / "data") as disk:
            assert state(disk.core) == state(StoreCore())
            assert disk.recovered.dropped == ""


@pytest.mark.parametrize("seed", range(12))
def test_a_store_comes_back_as_it_was(tmp_path: Path, seed: int) -> None:
    core = filled(tmp_path, 300, seed)
    with opened(tmp_path) as disk:
        assert state(disk.core) == state(core)
        assert len(disk.core.leases) == len(core.leases)


@pytest.mark.parametrize("seed", range(12))
def test_snapshots_and_new_logs_change_nothing_and_bound_the_folder(tmp_path: Path, seed: int) -> None:
    core = filled(tmp_path, 600, seed, snapshot_after_bytes=3000)
    with opened(tmp_path, 3000) as disk:
        assert state(disk.core) == state(core)
        assert len(disk.folder.snapshots()) == 1
        assert len(disk.folder.logs()) == 1
        assert disk.recovered.snapshot_bytes > 0


def test_the_history_since_the_compaction_comes_back_and_so_does_the_compaction(tmp_path: Path) -> None:
    with opened(tmp_path, 1) as disk:  # a snapshot with each write
        for number in range(10):
            disk.write(Txn(f"/r/{number % 3}", b"%d" % number))
        disk.write(6)
        disk.write(Txn("/r/0", None))
        expected = disk.core.events(6)
    with opened(tmp_path) as disk:
        assert disk.recovered.snapshot_bytes
        assert disk.core.compacted == 6
        assert disk.core.events(6) == expected
        assert expected[-1].previous == b"9"


def test_a_time_to_live_begins_anew(tmp_path: Path) -> None:
    with opened(tmp_path, 1) as disk:
        disk.write(Txn("/e/1", b"x", ttl_s=60.0), Txn("/e/2", b"x", ttl_s=30.0), Txn("/e/2", b"y"))
        disk.write(Txn("/e/3", b"x", ttl_s=50.0))
    with opened(tmp_path) as disk:
        assert disk.core.leases.due(49.9, 10) == []
        assert disk.core.leases.due(61.0, 10) == [("/e/3", 5), ("/e/1", 2)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.integers(1, 6), min_size=1, max_size=40),
    seed=st.integers(0, 2**32),
    crashes=st.sets(st.integers(0, 40)),
    snapshot_after=st.sampled_from([1, 500, 1 << 30]),
)
def test_any_batches_any_crashes(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[int],
    seed: int,
    crashes: set[int],
    snapshot_after: int,
) -> None:
    """A crash: whatever the threads had not done is never done; what was acknowledged is in the model."""
    folder = tmp_path_factory.mktemp("data")
    random = Random(seed)
    model = StoreCore()
    with contextlib.ExitStack() as stack:
        _crash_and_compare(stack, folder, random, model, batches, crashes, snapshot_after)
    shutil.rmtree(folder)


def _crash_and_compare(
    stack: contextlib.ExitStack,
    folder: Path,
    random: Random,
    model: StoreCore,
    batches: list[int],
    crashes: set[int],
    snapshot_after: int,
) -> None:
    disk = stack.enter_context(opened(folder, snapshot_after))
    for number, size in enumerate(batches):
        proposals = [random_proposal(random, model) for _ in range(size)]
        if any(isinstance(proposal, int) for proposal in proposals):  # waits for a snapshot to be whole
            disk.snapshots.run_all()
        disk.ask(*proposals)
        disk.log.run_all()
        for proposal in proposals:
            if isinstance(proposal, Txn):
                model.txn(proposal)
            else:
                model.compact(proposal)
        for _ in range(random.randrange(4)):
            disk.snapshots.step()
        if number in crashes:
            stack.pop_all().close()
            disk = stack.enter_context(opened(folder, snapshot_after))
        assert state(disk.core) == state(model)


# ---- torn ------------------------------------------------------------------------------------------------------------
def test_a_log_cut_at_any_byte_of_its_last_record_loses_just_that_and_says_so(tmp_path: Path) -> None:
    before = filled(tmp_path / "data", 20)
    log = tmp_path / "data" / "log-0000000000000000"
    start = log.stat().st_size
    with opened(tmp_path / "data") as disk:
        disk.write(Txn("/r/last", b"x" * 50), Txn("/r/last", b"y" * 50))
        after = state(disk.core)
    whole = log.read_bytes()
    for end in range(start, len(whole)):
        log.write_bytes(whole[:end])
        with opened(tmp_path / "data") as disk:
            assert state(disk.core) == state(before)
            said = disk.recovered.dropped
            if end == start:
                assert said == ""
            else:
                assert f"{end - start} bytes after revision {before.revision}" in said
                assert str(log) in said
            disk.write(Txn("/r/last", b"x" * 50), Txn("/r/last", b"y" * 50))
        with opened(tmp_path / "data") as disk:
            assert state(disk.core) == after


@pytest.mark.parametrize("kept", [0, 1, len(MAGIC) - 1, len(MAGIC)])
def test_a_log_that_was_just_begun_is_begun_again(tmp_path: Path, kept: int) -> None:
    (tmp_path / "data").mkdir()
    with opened(tmp_path / "data"):
        pass
    (tmp_path / "data" / "log-0000000000000000").write_bytes(MAGIC[:kept])
    for revision in (2, 3):
        with opened(tmp_path / "data") as disk:
            disk.write(Txn("/r/a", b"1"))
            assert disk.core.revision == revision


@pytest.mark.parametrize("tail", ["header and all", "a sector within"])
def test_sectors_that_were_never_written_are_torn_too(tmp_path: Path, tail: str) -> None:
    """After a power failure the file may have its length and not its contents."""
    before = filled(tmp_path, 5)
    log = tmp_path / "log-0000000000000000"
    start = log.stat().st_size
    with opened(tmp_path) as disk:
        disk.write(Txn("/r/last", b"x" * 3000))
    data = bytearray(log.read_bytes())
    if tail == "header and all":
        data[start:] = bytes(len(data) - start)
    else:
        sector = (start // 512 + 2) * 512
        data[sector : sector + 512] = bytes(512)
    log.write_bytes(data)
    with opened(tmp_path) as disk:
        assert state(disk.core) == state(before)
        assert f"{len(data) - start} bytes" in disk.recovered.dropped


# ---- corrupt ---------------------------------------------------------------------------------------------------------
def test_a_byte_changed_anywhere_in_a_log_is_a_refusal_that_says_where(tmp_path: Path) -> None:
    with opened(tmp_path) as disk:
        for number in range(4):
            disk.write(Txn(f"/r/{number}", b"0123456789" * 4), Txn("/r/0", b"", 99))
    log = tmp_path / "log-0000000000000000"
    whole = log.read_bytes()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 0x41
        log.write_bytes(changed)
        with pytest.raises(
            DataCorrupt, match=r"log-0000000000000000: .* at offset \d+; the file has changed"
        ):
            Disk(tmp_path)
    log.write_bytes(whole)
    with opened(tmp_path):
        pass


def test_a_byte_changed_anywhere_in_a_snapshot_is_a_refusal(tmp_path: Path) -> None:
    with opened(tmp_path, 1) as disk:
        for number in range(6):
            disk.write(Txn(f"/r/{number % 3}", b"%d" % number))
        (snapshot,) = disk.folder.snapshots()
        path = disk.folder.snapshot(snapshot)
    whole = path.read_bytes()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 0x41
        path.write_bytes(changed)
        with pytest.raises(DataCorrupt, match=path.name):
            Disk(tmp_path)
    for end in range(len(whole)):  # renamed only once it was whole: a short one is none of a crash's doing
        path.write_bytes(whole[:end])
        with pytest.raises(DataCorrupt, match=path.name):
            Disk(tmp_path)


def test_a_missing_file_is_a_refusal(tmp_path: Path) -> None:
    filled(tmp_path, 400, snapshot_after_bytes=3000)
    (log,) = tmp_path.glob("log-*")
    (snapshot,) = tmp_path.glob("snapshot-*")
    data = snapshot.read_bytes()
    snapshot.unlink()
    with pytest.raises(DataCorrupt, match=r"it begins with proposal \d+, not with 0"):
        Disk(tmp_path)
    snapshot.write_bytes(data)
    log.unlink()
    with pytest.raises(DataCorrupt, match="its log is missing"):
        Disk(tmp_path)


def test_a_torn_record_in_a_log_that_another_follows_is_a_refusal(tmp_path: Path) -> None:
    with opened(tmp_path, 200) as disk:
        for number in range(20):  # snapshots are begun and never finished
            disk.ask(Txn(f"/r/{number}", b"x" * 50))
            disk.log.run_all()
        logs = [disk.folder.log(log) for log in disk.folder.logs()]
    assert len(logs) == 2
    logs[0].write_bytes(logs[0].read_bytes()[:-3])
    with pytest.raises(DataCorrupt, match="incomplete"):
        Disk(tmp_path)


# ---- the folder ------------------------------------------------------------------------------------------------------
def test_a_folder_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(ConfigError, match=r"in use by process \d+"):
        Disk(tmp_path)
    with opened(tmp_path):
        pass


def test_a_folder_of_another_format_is_left_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as disk:
        identity = disk.folder.identity
    with opened(tmp_path) as disk:
        assert disk.folder.identity == identity
    (tmp_path / "FORMAT").write_text("swarmlet store, format 9\n")
    with pytest.raises(ConfigError, match="format 9"):
        Disk(tmp_path)
    filled(tmp_path / "other", 1)
    (tmp_path / "other" / "FORMAT").unlink()
    with pytest.raises(ConfigError, match="FORMAT is missing"):
        Disk(tmp_path / "other")


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"data folder .*/file/data: Not a directory"):
        Disk(tmp_path / "file" / "data")
