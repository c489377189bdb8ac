"""Ports for programs that are told where to listen."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from harness.pool import ports
from harness.pool.ports import HOST, ephemeral_ports, free_ports


@pytest.fixture
def kernel_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "ip_local_port_range"
    monkeypatch.setattr(ports, "EPHEMERAL", path)
    return path


def test_they_are_free_differ_and_are_given_to_nobody_else(kernel_says: Path) -> None:
    kernel_says.write_text("32768\t60999\n")
    found = free_ports(20)
    assert len(set(found)) == 20
    assert all(10_000 <= port < 32768 for port in found)
    for port in found:
        socket.create_server((HOST, port)).close()


def test_one_that_is_taken_is_not_given(kernel_says: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        kernel_says.write_text(f"{port + 1} 65535")
        assert port not in free_ports(5)


@pytest.mark.parametrize("said", ["1024 65535", "", "no numbers"])
def test_where_none_are_below_any_will_do(kernel_says: Path, said: str) -> None:
    kernel_says.write_text(said)
    (port,) = free_ports(1)
    assert 0 < port < 65536


def test_a_kernel_that_does_not_say(kernel_says: Path) -> None:
    assert ephemeral_ports() is None
    kernel_says.write_text("32768 60999")
    assert ephemeral_ports() == range(32768, 61000)
