"""The `swarmlet` command: one line and its exit code for what cannot be done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import doctor
from harness.observe.record import read_manifest
from tests.records import make_record

Done = subprocess.CompletedProcess[str]


def swarmlet(*arguments: str, cwd: Path) -> Done:
    command = [sys.executable, "-c", "from harness.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "nosuch"), ["swarmlet: scenario 'nosuch'", "density", "none"]),
        (
            ("run", "none", "--membrs", "3"),
            ["run --membrs: there is no such option; did you mean --members?"],
        ),
        (("run", "none", "--members", "x"), ["run: argument --members: invalid int value: 'x'"]),
        (("run", "none", "-u", "0"), ["-u 0: a fleet has at least 1 kubelet"]),
        (("run", "none", "--ca-key", "k"), ["--ca-cert and --ca-key need each other"]),
        (("report", "nosuch"), ["swarmlet: ", "nosuch", "manifest.json"]),
        (("demo", "--kubelets", "0"), ["swarmlet: -u 0: a fleet has at least 1 kubelet"]),
        (("pool", "up", "--members", "0"), ["swarmlet: members: 0 is not within 1 to 9"]),
        (("pool", "up", "--cores", "x"), ["swarmlet: cores: 'x'", '"auto"', '"host"']),
        (("pool", "up", "--port", "80"), ["swarmlet: port: 80 is not within 1024"]),
        (("pool", "up", "--kubeconfig", "nosuch/x"), ["swarmlet: kubeconfig", "nosuch/x", "not there"]),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    done = swarmlet(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_option_gets_typers_answer(tmp_path: Path) -> None:
    done = swarmlet("demo", "--kubelet", "5", cwd=tmp_path)
    assert done.returncode == 2
    assert "--kubelets" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_kubeconfig_of_someone_elses_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("users: [{name: me, user: {token: secret}}]")
    done = swarmlet("pool", "up", "--kubeconfig", str(path), cwd=tmp_path)
    assert done.returncode == 2
    assert "a file that no pool wrote is there; it is not overwritten" in done.stderr
    assert "secret" in path.read_text()


@pytest.mark.slow
def test_a_run_takes_what_locust_takes(tmp_path: Path) -> None:
    """Before and after the scenario, as one word or two; the record says what was understood."""
    given = (
        "run",
        "--members",
        "2",
        "none",
        "-u",
        "3",
        "--cores=host",
        "-t",
        "2s",
        "--fleet",
        "qps=10,burst=20",
    )
    more = ("--json-file", "stats", "--loglevel", "WARNING", "--record", "rec", "--http", "http/1.1")
    done = swarmlet(*given, *more, cwd=tmp_path)
    assert done.returncode in (0, 4), done.stderr
    options = read_manifest(tmp_path / "rec").arguments["options"]
    assert (options["kubelets"], options["pool"]["members"], options["pool"]["cores"]) == (3, 2, "host")
    assert (options["fleet"], options["http"]) == ({"qps": 10.0, "burst": 20}, "http/1.1")
    assert (tmp_path / "stats.json").exists()


@pytest.mark.slow
def test_a_report_is_made_of_records_that_are_there(tmp_path: Path) -> None:
    make_record(tmp_path / "a", arm="one")
    make_record(tmp_path / "b", arm="three", members=3)
    done = swarmlet("report", "a", "b", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"report.html", "report.md", "report.json"}


def test_help_names_every_command(tmp_path: Path) -> None:
    done = swarmlet("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("demo", "run", "report", "pool", "doctor"))


def test_the_options_of_our_locustfiles_are_listed_with_their_variables(tmp_path: Path) -> None:
    done = swarmlet("options", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("--scenario", "--members", "--cores", "--record", "--fault", "SWARMLET_POOL_PORT"):
        assert word in done.stdout


# ---- doctor --------------------------------------------------------------------------------------------------------
def test_the_doctor_finds_this_machine_fit(tmp_path: Path) -> None:
    done = swarmlet("doctor", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "127.0.0.1" in done.stdout


def finding(what: str) -> doctor.Finding:
    return next(found for found in doctor.examine() if found.what == what)


def test_required_findings_come_first() -> None:
    required = [found.required for found in doctor.examine()]
    assert required == sorted(required, reverse=True)


@pytest.mark.parametrize(
    ("prefix", "arguments", "ok", "here"),
    [
        ("/usr/local", "'--enable-shared' '--enable-optimizations'", True, "optimized"),
        ("/usr/local", "'--enable-shared'", False, "not optimized: choose another by make PYTHON=..."),
        ("/usr", "'--enable-shared'", True, "optimized"),
        ("/usr/local", None, True, "unknown"),
    ],
)
def test_a_python_that_was_built_to_be_slow_is_noticed(
    monkeypatch: pytest.MonkeyPatch, prefix: str, arguments: str | None, ok: bool, here: str
) -> None:
    monkeypatch.setattr(doctor.sys, "base_prefix", prefix)
    monkeypatch.setattr(doctor.sysconfig, "get_config_var", lambda _: arguments)
    found = finding("Python's build")
    assert (found.ok, found.required, found.here) == (ok, False, here)


@pytest.mark.parametrize(
    ("hard", "ok", "words"),
    [(1024, False, "about 341"), (4096, True, "about 1,365"), (-1, True, "any number of")],
)
def test_open_files_are_said_in_kubelets(
    monkeypatch: pytest.MonkeyPatch, hard: int, ok: bool, words: str
) -> None:
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (256, hard))
    found = finding("open files")
    assert found.ok is ok
    assert words in found.meaning


def test_a_tool_that_is_missing_is_named_and_not_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda *_, **__: None)
    found = finding("kubectl")
    assert (found.ok, found.required, found.here) == (False, False, "not on PATH")


def test_a_real_apiserver_is_looked_for_as_a_pool_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_ASSET_KUBE_APISERVER", raising=False)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = finding("kube-apiserver")
    assert (found.ok, found.required, found.here) == (False, False, "not found")
    (tmp_path / "kube-apiserver").touch(mode=0o755)
    assert finding("kube-apiserver").here == str(tmp_path / "kube-apiserver")


def test_no_loopback_is_required_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("not permitted")

    monkeypatch.setattr(doctor.socket, "create_server", refuse)
    found = finding("127.0.0.1")
    assert (found.ok, found.required, found.here) == (False, True, "not permitted")
