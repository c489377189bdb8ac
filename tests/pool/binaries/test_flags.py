"""The command lines of a pool of binaries, and what may be said besides."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.apiserver.store.etcd3.endpoints import EtcdServers
from harness.pool.binaries.flags import (
    OF_APISERVER,
    OF_CONTROLLER_MANAGER,
    OF_SCHEDULER,
    Apiserver,
    Component,
    check_given,
    command_line,
    settings,
)
from harness.pool.certificates import ServingFiles
from harness.wire.errors import ConfigError

FILES = ServingFiles("/k/ca.crt", "/k/apiserver.crt", "/k/apiserver.key", "/k/ca.key")
MEMBER = Apiserver(
    host="127.0.0.1",
    port=6443,
    advertise="127.0.0.1",
    cert_dir="/f/member-0",
    files=FILES,
    account_key="/k/sa.key",
    account_public_key="/k/sa.pub",
    etcd=EtcdServers(("http://127.0.0.1:2379", "http://127.0.0.1:2381")),
    reads=400,
    writes=200,
    priority_and_fairness=True,
    event_ttl_s=3600.0,
    feature_gates={},
    goaway_chance=0.0,
    shutdown_delay_s=0.0,
)
COMPONENT = Component(
    "127.0.0.1", 10259, "/f/kubeconfig", FILES, "/k/sa.key", 3600.0, {"WatchListClient": True}
)


def test_a_member_gets_what_a_real_one_needs_to_come_up() -> None:
    assert command_line(OF_APISERVER, MEMBER, ()) == [
        "--etcd-servers=http://127.0.0.1:2379,http://127.0.0.1:2381",
        "--bind-address=127.0.0.1",
        "--secure-port=6443",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        "--cert-dir=/f/member-0",
        "--tls-cert-file=/k/apiserver.crt",
        "--tls-private-key-file=/k/apiserver.key",
        "--client-ca-file=/k/ca.crt",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=/k/sa.pub",
        "--service-account-signing-key-file=/k/sa.key",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--max-requests-inflight=400",
        "--max-mutating-requests-inflight=200",
        "--enable-priority-and-fairness=true",
        "--event-ttl=1h0m0s",
    ]


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"feature_gates": {"B": False, "A": True}}, "--feature-gates=A=true,B=false"),
        ({"goaway_chance": 0.02}, "--goaway-chance=0.02"),
        ({"shutdown_delay_s": 0.5}, "--shutdown-delay-duration=500ms"),
        ({"event_ttl_s": 90.0}, "--event-ttl=1m30s"),
        ({"priority_and_fairness": False}, "--enable-priority-and-fairness=false"),
        ({"etcd": EtcdServers(("https://e:1",), "/ca", "/c", "/k")}, "--etcd-keyfile=/k"),
    ],
)
def test_what_is_chosen_becomes_a_flag(changes: dict[str, Any], flag: str) -> None:
    assert flag in command_line(OF_APISERVER, msgspec.structs.replace(MEMBER, **changes), ())


def test_what_is_given_replaces_adds_and_leaves_out_and_the_last_word_counts() -> None:
    given = ("authorization-mode=RBAC", "audit-log-path=-", "v=2", "v=4", "event-ttl=")
    line = command_line(OF_APISERVER, MEMBER, given)
    assert [word for word in line if "authorization-mode" in word] == ["--authorization-mode=RBAC"]
    assert line[-2:] == ["--audit-log-path=-", "--v=4"]
    assert not any("event-ttl" in word for word in line)


def test_a_record_keeps_what_says_something_of_more_than_this_machine() -> None:
    kept = settings(OF_APISERVER, MEMBER, ("v=4", "event-ttl="))
    assert kept["authorization-mode"] == "Node,RBAC"
    assert kept["v"] == "4"
    assert "event-ttl" not in kept
    assert not any("/k/" in value or "127.0.0.1" in value for value in kept.values())


@pytest.mark.parametrize("table", [OF_SCHEDULER, OF_CONTROLLER_MANAGER])
def test_a_component_has_one_kubeconfig_for_all_that_it_asks(table: Any) -> None:
    line = command_line(table, COMPONENT, ("kube-api-qps=100",))
    assert [word.partition("=")[0] for word in line if "kubeconfig" in word] == [
        "--kubeconfig",
        "--authentication-kubeconfig",
        "--authorization-kubeconfig",
    ]
    assert {"--feature-gates=WatchListClient=true", "--kube-api-qps=100"} <= set(line)
    assert not any("leader-elect" in word for word in line)


def test_a_controller_manager_signs_with_the_pool_s_authority() -> None:
    line = command_line(OF_CONTROLLER_MANAGER, COMPONENT, ())
    assert "--cluster-signing-key-file=/k/ca.key" in line
    assert "--service-account-private-key-file=/k/sa.key" in line
    assert "--cluster-signing-duration=1h0m0s" in line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v", r"--apiserver-flag 'v': expected NAME=VALUE"),
        ("--v=4", r"'--v=4': expected NAME=VALUE, the name without dashes"),
        ("=4", r"expected NAME=VALUE"),
        ("secure-port=1", r"--apiserver-flag secure-port: the pool sees to it"),
        ("etcd-servers=http://a:1", r"etcd-servers: the pool sees to it"),
    ],
)
def test_what_cannot_be_given_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_given("--apiserver-flag", [text])


def test_each_component_s_own_affairs_are_the_pool_s_too() -> None:
    check_given("--scheduler-flag", ["etcd-servers=it has none, and says so"])
    with pytest.raises(ConfigError, match="--controller-manager-flag root-ca-file: the pool sees to it"):
        check_given("--controller-manager-flag", ["root-ca-file=/x"])
