"""Reading a profile: a file, or the texts that travelled with a run, become one checked `LoadProfile`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.documents.decoding import decode_struct
from harness.documents.files import Files
from harness.documents.places import line_of
from harness.documents.yamltext import YamlError, first_document
from harness.kperf.profile import LoadProfile, ProfileFile, RunnerGroupFile, Spec
from harness.kperf.validation import Rules
from harness.wire.errors import ConfigError

DEFAULT_TOTAL = 1000
"""kperf runner run's --total, where a profile has neither total nor duration (runner.go:75, 196)."""

_TOP_LEVEL = re.compile(r"^(specs|loadProfile)[ \t]*:", re.MULTILINE)
_NOT_SIMULATED = ("nodeAffinity", "serviceAccount", "ownerReference")


def is_profile(path: Path | str, files: Files | None = None) -> bool:
    """Whether a file is a kperf profile or runner group, by its keys; one that is broken may be, too."""
    try:
        text = (files or Files()).read(Path(path))
    except (OSError, UnicodeDecodeError):
        return False
    try:
        document = first_document(text)
    except YamlError:
        return _TOP_LEVEL.search(text) is not None
    if not isinstance(document, dict):
        return False
    once = {"spec", "version"} <= document.keys()  # as kperf up to v0.3.4 had it; a manifest has no version
    return once or not document.keys().isdisjoint(("specs", "loadProfile"))


def load_profile(path: Path | str, files: Files | None = None) -> LoadProfile:
    """Read and check the profile at `path` through `files`. Raises ConfigError: one line with file, line and value."""
    path = Path(path)
    text = _text(path, files or Files())
    try:
        document = first_document(text)
    except YamlError as error:
        raise ConfigError(f"{path}:{error.line}: not YAML: {error.problem}") from error

    def where(key: str) -> str:
        line = line_of(text, key) if key else 0
        return f"{path}:{line}" if line else str(path)

    if not isinstance(document, dict):
        raise ConfigError(f"{path}: a kperf profile is a mapping with specs, this is {document!r:.60}")
    ignored: list[str] = []
    if "loadProfile" in document:
        profile = _group(document, where, ignored)
    else:
        read = decode_struct(document, ProfileFile, where, ignored, any_case=False)
        profile = _profile(read, "", where, ignored)
    return msgspec.structs.replace(profile, ignored=tuple(ignored))


def _text(path: Path, files: Files) -> str:
    try:
        return files.read(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read: not UTF-8 text") from error


def _group(document: dict[str, object], where: Callable[[str], str], ignored: list[str]) -> LoadProfile:
    group = decode_struct(document, RunnerGroupFile, where, ignored, any_case=False)
    rules = Rules(where)
    rules.expect(group.count > 0, "count", group.count, "requires > 0 runners")
    rules.expect(group.load_profile is not None, "loadProfile", None, "must be provided")
    assert group.load_profile is not None
    asked = [key for key in _NOT_SIMULATED if document.get(key) is not None]
    ignored += [f"{where(key)}: {key}: all runners are processes of this run" for key in asked]
    profile = _profile(group.load_profile, "loadProfile.", where, ignored)
    return msgspec.structs.replace(profile, runners=group.count)


def _profile(read: ProfileFile, prefix: str, where: Callable[[str], str], ignored: list[str]) -> LoadProfile:
    rules = Rules(where)
    rules.expect(read.version == 1, f"{prefix}version", read.version, "should be 1")
    both = read.spec is not None and bool(read.specs)
    rules.expect(not both, f"{prefix}spec", "both", "needs either specs or, as kperf once had it, spec")
    keys = [f"{prefix}spec"] if read.spec is not None else _keys(prefix, len(read.specs))
    specs = [read.spec] if read.spec is not None else list(read.specs)
    rules.expect(bool(specs), f"{prefix}specs", 0, "must be provided")
    specs[0] = _with_defaults(specs[0], keys[0], where, ignored)
    for spec, key in zip(specs, keys, strict=True):
        rules.spec(spec, key)
    ignored.extend(_of_the_first(specs, keys, where))
    return LoadProfile(tuple(specs), read.description)


def _keys(prefix: str, count: int) -> list[str]:
    return [f"{prefix}specs[{index}]" for index in range(count)]


def _with_defaults(spec: Spec, key: str, where: Callable[[str], str], ignored: list[str]) -> Spec:
    """The first spec, and no other, with the defaults of `kperf runner run` (runner.go:loadConfig)."""
    total, duration = spec.total, spec.duration
    if total > 0 and duration > 0:
        ignored.append(f"{where(f'{key}.duration')}: {key}.duration: total is set, and counts")
        duration = 0
    if total == 0 and duration == 0:
        total = DEFAULT_TOTAL
    return msgspec.structs.replace(
        spec,
        total=total,
        duration=duration,
        conns=spec.conns or 1,
        client=spec.client or 1,
        content_type=spec.content_type or "json",
    )


def _of_the_first(specs: list[Spec], keys: list[str], where: Callable[[str], str]) -> Iterator[str]:
    for spec, key in zip(specs[1:], keys[1:], strict=True):
        if spec.disable_http2 != specs[0].disable_http2:
            place = f"{key}.disableHTTP2"
            yield f"{where(place)}: {place}: the first spec's holds for the connections of all, as in kperf"
