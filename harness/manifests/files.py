"""The files of a run that its pods cannot read from the image: they go into ConfigMaps, and are mounted as they lay.

A ConfigMap's keys have no folders, so a file's key is its path with `/` written as `__`, and the volume's items put it
back where it was.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec

from harness.clusterloader import Config, Files, is_suite, load_config
from harness.kperf import is_profile, load_profile
from harness.load.scenarios import find_scenario, locustfile_of
from harness.observe.environment import share
from harness.wire.errors import ConfigError

MOST_BYTES = 1 << 20
"""Of all data of a ConfigMap: kk/pkg/apis/core/validation, MaxSecretSize."""
_UNFIT = re.compile(r"[^-._a-zA-Z0-9]")
SCENARIO, OVERRIDES = "/etc/swarmlet/scenario", "/etc/swarmlet/overrides"


class File(msgspec.Struct, frozen=True):
    """One entry: `key` of the ConfigMap, `path` below where it is mounted."""

    key: str
    path: str
    text: str


class RunFiles(msgspec.Struct, frozen=True):
    """`scenario` is what --scenario says in the master's pod, `overrides` likewise; the files are what must be mounted
    for that. `config` is the scenario's, None for none and for a kperf profile; `locustfile` is of both master and
    workers."""

    locustfile: File
    scenario: str
    config: Config | None = None
    scenario_files: tuple[File, ...] = ()
    overrides: tuple[str, ...] = ()
    override_files: tuple[File, ...] = ()

    def check_flat(self) -> None:
        """Raises ConfigError where the files do not fit into one folder, which is all that Locust's operator mounts."""
        paths = [file.path for file in (self.locustfile, *self.scenario_files, *self.override_files)]
        deep = next((path for path in paths if "/" in path), "")
        if deep or len(set(paths)) < len(paths):
            raise ConfigError(
                f"--operator: Locust's operator mounts one folder without folders in it, the scenario has "
                f"{deep or 'two files of one name'}; build it into the image, or leave --operator out"
            )
        _fit("--operator", (self.locustfile, *self.scenario_files, *self.override_files))


def collect(
    scenario: str,
    nodes: int,
    overrides: list[str],
    variables: Mapping[str, str],
    locustfile: str = "",
) -> RunFiles:
    """Read and check everything, as the run will. A scenario of ours is in the image and stays there. Raises
    ConfigError."""
    path = find_scenario(scenario)
    override_files = tuple(_override(index, Path(name)) for index, name in enumerate(overrides))
    files, config = Files(), None
    if path and is_suite(path):
        raise ConfigError(f"{path}: a suite is several runs; give the config of one of its tests")
    if path and is_profile(path):
        load_profile(path, files)
    elif path:
        config = load_config(path, nodes, overrides, variables, files=files)
    ours = bool(path) and Path(path).is_relative_to(share("clusterloader_configs").resolve())
    mounted: tuple[File, ...] = ()
    told = Path(path).stem if ours else scenario
    if path and not ours:
        given = {str(Path(name)) for name in overrides}
        mounted, told = _tree(path, {name: text for name, text in files.seen.items() if name not in given})
    _fit("--scenario", mounted)
    _fit("--overrides", override_files)
    return RunFiles(
        locustfile=_locustfile(locustfile, path),
        scenario=told,
        config=config,
        scenario_files=mounted,
        overrides=tuple(f"{OVERRIDES}/{file.path}" for file in override_files),
        override_files=override_files,
    )


def _tree(path: str, seen: Mapping[str, str]) -> tuple[tuple[File, ...], str]:
    """All files that a scenario is made of, as they lie to each other; and where it is in the pod."""
    texts = {os.path.realpath(name): text for name, text in seen.items()}
    root = os.path.commonpath([os.path.dirname(name) for name in texts])
    files = []
    for name, text in sorted(texts.items()):
        below = PurePosixPath(os.path.relpath(name, root))
        files.append(File(_UNFIT.sub("_", str(below).replace("/", "__")), str(below), text))
    if len({file.key for file in files}) < len(files):
        raise ConfigError(
            f"{path}: has files whose names differ only in characters that a ConfigMap cannot have"
        )
    return tuple(files), f"{SCENARIO}/{os.path.relpath(os.path.realpath(path), root)}"


def _override(index: int, path: Path) -> File:
    return _read(path, "--overrides", f"{index}-{_UNFIT.sub('_', path.name)}")


def _locustfile(given: str, scenario: str) -> File:
    path = Path(given) if given else share("locustfiles") / f"{locustfile_of(scenario)}.py"
    if given and path.suffix != ".py":
        raise ConfigError(f"--locustfile {given}: its name must end in .py")
    file = _read(path, "--locustfile", _UNFIT.sub("_", path.name))
    _fit("--locustfile", (file,))
    return file


def _read(path: Path, flag: str, key: str) -> File:
    try:
        return File(key, key, path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{flag} {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{flag} {path}: is not UTF-8") from None


def _fit(flag: str, files: tuple[File, ...]) -> None:
    size = sum(len(file.text.encode()) + len(file.key) for file in files)
    if size > MOST_BYTES:
        raise ConfigError(
            f"{flag}: {size:,} bytes, a ConfigMap holds {MOST_BYTES:,}; build them into the image"
        )
