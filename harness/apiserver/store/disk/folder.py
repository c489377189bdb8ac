"""The data folder: who may use it, which format it has, which files stand in it."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from harness.wire.errors import ConfigError

FORMAT = "swarmlet store, format 1"


class DataFolder:
    """An opened data folder, ours alone until `close()`. `identity` is the same for as long as the folder is."""

    def __init__(self, path: Path) -> None:
        """Make it where there is none. Raises ConfigError where it cannot be used: somebody else does, another format,
        no rights."""
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(path / "LOCK", path)
        except OSError as error:
            raise ConfigError(f"data folder {path}: {error.strerror or error}") from None
        try:
            self.identity = self._check_format()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._lock)

    def log(self, number: int) -> Path:
        return self.path / f"log-{number:016x}"

    def snapshot(self, number: int) -> Path:
        return self.path / f"snapshot-{number:016x}"

    def logs(self) -> list[int]:
        """The numbers of the first proposals of all logs, in order."""
        return self._numbers("log-")

    def snapshots(self) -> list[int]:
        return self._numbers("snapshot-")

    def sync(self) -> None:
        """Make what has been created, renamed and removed durable."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove_before(self, number: int) -> None:
        """What the snapshot of this number makes superfluous; and snapshots that were never finished."""
        for log in self.logs():
            if log < number:
                self.log(log).unlink()
        for snapshot in self.snapshots():
            if snapshot < number:
                self.snapshot(snapshot).unlink()
        for unfinished in self.path.glob("*.new"):
            unfinished.unlink()

    def _numbers(self, prefix: str) -> list[int]:
        names = [path.name.removeprefix(prefix) for path in self.path.glob(f"{prefix}*")]
        return sorted(int(name, 16) for name in names if len(name) == 16)

    def _check_format(self) -> str:
        """The folder's identity; a new one is made in an empty folder."""
        path = self.path / "FORMAT"
        try:
            if not path.exists():
                if self.logs() or self.snapshots():
                    raise ConfigError(f"data folder {self.path}: the file FORMAT is missing")
                new = path.with_suffix(".new")
                new.write_text(f"{FORMAT}\n{secrets.token_hex(8)}\n")
                new.rename(path)
                self.sync()
            format_, _, identity = path.read_text(errors="replace").partition("\n")
        except OSError as error:
            raise ConfigError(f"data folder {self.path}: {error.strerror or error}") from None
        if format_ != FORMAT:
            raise ConfigError(
                f"data folder {self.path}: made as {format_[:60]!r}, and this version reads {FORMAT!r} alone"
            )
        return identity.strip()


def _locked(path: Path, folder: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise ConfigError(f"data folder {folder}: in use by process {holder}") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
