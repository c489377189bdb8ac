"""What a pool is asked for, and the files that it writes."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from harness.pool.certificates import make_serving_files, write_private
from harness.pool.emulated import CORES_AT_LEAST, PoolOptions
from harness.pool.kubeconfig import check_kubeconfig_path, write_kubeconfig
from harness.transport.kubeconfig import load_kubeconfig
from harness.transport.tls import client_context
from harness.wire.errors import ConfigError


@pytest.mark.parametrize(
    ("cores", "nodes", "modelled"),
    [
        ("auto", 5000, 8.0),
        ("auto", 100, 0.16),
        ("auto", 1, CORES_AT_LEAST),
        ("host", 100, None),
        ("0.5", 100, 0.5),
        (2, 100, 2.0),
    ],
)
def test_cores_are_given_or_follow_from_the_fleet(cores: Any, nodes: int, modelled: float | None) -> None:
    assert PoolOptions(cores=cores, nodes=nodes).modelled_cores() == modelled


@pytest.mark.parametrize("members", [1, 9])
def test_one_to_nine_members(members: int) -> None:
    PoolOptions(members=members, port=1024).validate()


@pytest.mark.parametrize(
    "changes",
    [
        {"members": 0},
        {"members": 10},
        {"port": 1023},
        {"port": 65535},
        {"cores": "much"},
        {"cores": -1.0},
        {"cores": "nan"},
        {"costs": {"foo": 1.0}},
        {"etcd": {"foo": 1.0}},
        {"max_requests_inflight": 0},
    ],
)
def test_what_cannot_be_started_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        PoolOptions(**changes).validate()


def test_a_pools_certificate_and_kubeconfig_are_what_our_own_client_takes(tmp_path: Path) -> None:
    files = make_serving_files(tmp_path, ["localhost"], ["127.0.0.1"])
    assert stat.S_IMODE(Path(files.key).stat().st_mode) == 0o600
    path = tmp_path / "kubeconfig"
    servers = {"member-0": "https://127.0.0.1:6443", "member-1": "https://127.0.0.1:6444"}
    write_kubeconfig(path, servers, Path(files.ca), "token")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first, second = load_kubeconfig(path), load_kubeconfig(path, "member-1")
    assert (first.port, second.port, first.token) == (6443, 6444, "token")
    assert client_context(first.ca) is not None


def test_a_file_is_private_even_where_one_was_there_that_was_not(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old and longer")
    path.chmod(0o644)
    write_private(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)


@pytest.mark.parametrize("text", ["", "a: b", "[", "users: 5", "users: [{name: me}]", "\x00"])
def test_only_a_pools_own_kubeconfig_is_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    check_kubeconfig_path(path)
    path.write_text(text)
    with pytest.raises(ConfigError, match="no pool wrote"):
        check_kubeconfig_path(path)
    ca = tmp_path / "ca"
    ca.write_text("CA")
    write_kubeconfig(path, {"member-0": "https://127.0.0.1:1"}, ca, "token")
    check_kubeconfig_path(path)
