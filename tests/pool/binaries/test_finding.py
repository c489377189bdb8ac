"""Where the programs of a pool of binaries are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.pool.binaries.finding import Programs, find_program, find_programs, program
from harness.wire.errors import ConfigError
from tests.pool.binaries.standin import install

ALL = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return str(path)


def test_a_variable_of_its_own_goes_before_the_folder_of_all_and_that_before_path(tmp_path: Path) -> None:
    asset = executable(tmp_path / "asset")
    assets = executable(tmp_path / "assets" / "kube-apiserver")
    on_path = executable(tmp_path / "bin" / "kube-apiserver")
    environ = {
        "TEST_ASSET_KUBE_APISERVER": asset,
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
        "PATH": str(tmp_path / "bin"),
    }
    assert find_programs(environ=environ) == Programs(asset)
    del environ["TEST_ASSET_KUBE_APISERVER"]
    assert find_programs(environ=environ) == Programs(assets)
    environ["KUBEBUILDER_ASSETS"] = str(tmp_path)
    assert find_programs(environ=environ) == Programs(on_path)


def test_a_folder_that_is_named_is_the_only_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ALL:
        executable(tmp_path / "all" / name)
        executable(tmp_path / "elsewhere" / name)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "elsewhere"))
    found = find_programs(str(tmp_path / "all"))
    assert found == Programs(*(str(tmp_path / "all" / name) for name in ALL))
    (tmp_path / "all" / "kube-scheduler").unlink()
    assert find_programs(str(tmp_path / "all")).scheduler == ""
    (tmp_path / "all" / "kube-apiserver").unlink()
    with pytest.raises(ConfigError, match=r"--binaries-dir .*/all has none; `setup-envtest use`"):
        find_programs(str(tmp_path / "all"))


def test_what_is_nowhere_is_told_how_to_get_where_it_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^kube-apiserver: there is no binary; `setup-envtest use -p env`"):
        find_programs(environ={"PATH": str(tmp_path)})
    assert find_program("kube-scheduler", environ={"PATH": str(tmp_path)}) == ""


def test_what_is_named_and_cannot_be_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kube-scheduler").touch(mode=0o644)
    for path in (tmp_path / "none", tmp_path / "kube-scheduler", tmp_path):
        with pytest.raises(ConfigError, match=r"of TEST_ASSET_KUBE_SCHEDULER, is no executable file$"):
            find_program("kube-scheduler", environ={"TEST_ASSET_KUBE_SCHEDULER": str(path)})


def test_a_program_says_its_version(tmp_path: Path) -> None:
    path = install(tmp_path, "kube-apiserver") / "kube-apiserver"
    assert program(str(path)).version == "v1.36.2"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("etcd Version: 3.5.21\nGit SHA: a17edfd\nGo Version: go1.23.7", "v3.5.21"),
        ("Kubernetes v1.36.0-alpha.1.12+abc", "v1.36.0-alpha.1.12+abc"),
        ("something else", "something else"),
    ],
)
def test_a_version_is_the_first_number_that_looks_like_one(tmp_path: Path, text: str, version: str) -> None:
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\ncat <<END\n{text}\nEND\n")
    path.chmod(0o755)
    assert program(str(path)).version == version


def test_a_program_of_another_machine_is_refused_with_what_it_says(tmp_path: Path) -> None:
    path = install(tmp_path, "kube-apiserver", kube_apiserver="unwell") / "kube-apiserver"
    with pytest.raises(ConfigError, match="--version: ended with exit code 126: exec format error"):
        program(str(path))
    path.write_bytes(b"\x7fELF of another kind")
    with pytest.raises(ConfigError, match=r"kube-apiserver: cannot be run: Exec format error"):
        program(str(path))
