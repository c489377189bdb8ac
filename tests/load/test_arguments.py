"""From the command line to `RunOptions`: defaults, environment, and what is refused before anything is started."""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.apiserver.faults.kinds import StallInformer
from harness.apiserver.faults.spec import FaultSpec
from harness.load import openfiles
from harness.load.arguments import add_arguments, options_from
from harness.wire.errors import ConfigError
from tests.load.plays import TINY
from tests.pool.binaries.standin import install


class Parser(argparse.ArgumentParser):
    """Locust's takes `env_var` for each argument; here it is kept to be looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[str, str] = {}
        for flag, keywords in (
            ("-u", {"dest": "num_users", "type": int}),
            ("-r", {"dest": "spawn_rate", "type": float}),
            ("-t", {"dest": "run_time", "type": int}),
            ("-H", {"dest": "host"}),
            ("--master", {"action": "store_true"}),
            ("--processes", {"type": int}),
        ):
            self.add_argument(flag, **keywords)  # type: ignore[arg-type]

    def add_argument_group(self, *args: Any, **keywords: Any) -> Any:
        group = super().add_argument_group(*args, **keywords)
        plain = group.add_argument

        def add(flag: str, *, env_var: str = "", **rest: Any) -> Any:
            self.variables[flag] = env_var
            return plain(flag, **rest)

        group.add_argument = add  # type: ignore[assignment, method-assign]
        return group


def parse(*arguments: str) -> Any:
    parser = Parser()
    add_arguments(parser)
    return options_from(parser.parse_args(arguments))


def test_no_argument_is_needed() -> None:
    options = parse()
    assert (options.kubelets, options.spawn_rate, options.run_time_s) == (20, 50.0, None)
    assert options.pool.members == 1
    assert options.pool.nodes == 20
    assert (options.executors, options.allow_exec) == (0, False)
    assert Path(options.scenario).name == "density.yaml"
    assert options.record.parent == Path("reports/runs")


def test_every_argument_has_a_variable_of_its_own() -> None:
    parser = Parser()
    add_arguments(parser)
    assert parser.variables["--pool-port"] == "SWARMLET_POOL_PORT"
    assert len(set(parser.variables.values())) == len(parser.variables)


def test_what_is_given_arrives() -> None:
    options = parse(
        *("-u", "7", "-r", "2.5", "-t", "90", "--scenario", TINY, "--members", "3", "--cores", "0.5"),
        *("--cost", "get_cached_us=5", "--cost", "list_us=7", "--etcd", "fsync_s=0.1", "--seed", "9"),
        *(
            "--fault",
            "stall-informer member=member-1 for=20s at=5s",
            "--fault",
            "goaway",
            "--record",
            "/tmp/somewhere",
            "--http",
            "h2",
        ),
    )
    assert (options.kubelets, options.spawn_rate, options.run_time_s, options.seed) == (7, 2.5, 90.0, 9)
    assert options.scenario == TINY
    assert options.pool.costs == {"get_cached_us": 5.0, "list_us": 7.0}
    assert options.pool.etcd == {"fsync_s": 0.1}
    assert options.pool.modelled_cores() == 0.5
    assert options.faults == (FaultSpec(StallInformer(), "member-1", 20.0, 5.0),)
    assert options.pool.faults == ("goaway",)
    assert (options.record, options.http) == (Path("/tmp/somewhere"), "h2")


def test_faults_bring_the_links_that_they_need() -> None:
    options = parse(
        *("--members", "2", "--link", "member-0,store"),
        *("--fault", "cut between=clients,members step=create for=1s"),
        *("--fault", "link between=member-1,store latency=1ms"),
        *("--fault", "kill member=member-1 at=5s"),
    )
    assert [spec.fault.kind for spec in options.faults] == ["cut", "kill"]
    assert options.pool.faults == ("link between=member-1,store latency=0.001s",)
    assert options.pool.wanted_links == ("member-0,store", "clients,members", "member-1,store")


def test_a_fleet_may_be_at_rest() -> None:
    assert parse("--scenario", "none").scenario == ""


def test_endpoints_are_separated_by_commas() -> None:
    assert parse("--endpoints", "a:1,b:2,").endpoints == ("a:1", "b:2")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scenario", "nosuch"), ["'nosuch'", "density", "none"]),
        (("--members", "0"), ["0", "1 to 9"]),
        (("--members", "10"), ["10", "1 to 9"]),
        (("--cores", "x"), ["'x'", "auto", "host"]),
        (("--cores", "0"), ["'0'", "above 0"]),
        (("--cores", "nan"), ["'nan'", "above 0"]),
        (("--cores", "inf"), ["'inf'", "above 0"]),
        (("--cost", "foo=1"), ["costs", "'foo'", "known: "]),
        (("--cost", "get_cache_us=1"), ["did you mean 'get_cached_us'"]),
        (("--cost", "get_cached_us=-1"), ["get_cached_us", "-1"]),
        (("--cost", "get_cached_us"), ["--cost", "KEY=NUMBER"]),
        (("--cost", "get_cached_us=much"), ["--cost", "KEY=NUMBER"]),
        (("--etcd", "foo=1"), ["etcd", "'foo'", "known: "]),
        (("--etcd", "=1"), ["etcd", "''"]),
        (("--fault", "x"), ["'x'", "stall-informer"]),
        (("--fault", "stall-informer member=member-1 at=5s"), ["member-1", "member-0"]),
        (("--fault", "goaway member=member-1"), ["member-1", "member-0"]),
        (("--fault", "stall-informer at=5s", "-H", "http://h:1"), ["emulated"]),
        (("--fault", "kill member=etcd-0 at=5s"), ["'etcd-0'", "member-0, store, all"]),
        (("--fault", "cut between=clients,etcd-0 at=5s"), ["no such link", "clients,member-0"]),
        (("--fault", "kill member=store"), ["store keeps nothing", "--data-dir"]),
        (("--link", "clients"), ["--link 'clients'", "two parts"]),
        (("--balancer", "nginx"), ["balancer", "'nginx'", "haproxy"]),
        (("--balancer", "haproxy", "--balancer-binary", "/nowhere"), ["haproxy", "/nowhere"]),
        (("--balancer-policy", "source"), ["balancer-policy", "--balancer haproxy"]),
        (("--balancer-check", "tcp"), ["balancer-check", "--balancer haproxy"]),
        (("--etcd-binary", "/nowhere"), ["etcd-binary", "--etcd-servers binary"]),
        (("--etcd-cafile", "/nowhere"), ["etcd-cafile", "--etcd-servers https"]),
        (("--balancer", "haproxy", "-H", "http://h:1"), ["balancer"]),
        (
            ("--balancer", "haproxy", "--balancer-binary", sys.executable, "--endpoint-policy", "pinned"),
            ["--endpoint-policy pinned", "one address", "--balancer-policy"],
        ),
        (("--context", "prod"), ["--context", "--kubeconfig"]),
        (("--i-know", "prod"), ["--i-know", "--kubeconfig"]),
        (("--no-discover-members",), ["--no-discover-members", "--kubeconfig"]),
        (("--pool-host", "localhost"), ["host", "'localhost'"]),
        (("--goaway-chance", "0.03"), ["goaway-chance", "0.02"]),
        (("--executors", "0"), ["--executors 0", "above 0", "auto"]),
        (("--executors", "many"), ["--executors many", "above 0", "auto"]),
        (("--shutdown-delay", "-1"), ["shutdown-delay"]),
        (("--feature-gates", "ListFromCacheSnapshot"), ["feature-gates", "ListFromCacheSnapshot"]),
        (("--pool-port", "80"), ["80", "1024"]),
        (("--pool-port", "65535"), ["65535", "1024"]),
        (("--max-requests-inflight", "0"), ["max-requests-inflight", "0"]),
        (("--scrape-interval", "0.4"), ["--scrape-interval", "0.5"]),
        (("--scrape-interval", "nan"), ["--scrape-interval", "0.5"]),
        (("--metrics-bind-address", "9646"), ["--metrics-bind-address 9646", "HOST:PORT"]),
        (("--metrics-bind-address", "h:x"), ["--metrics-bind-address h:x", "HOST:PORT"]),
        (("--metrics-bind-address", ":65536"), ["65536", "HOST:PORT"]),
        (("-u", "0"), ["-u 0", "at least 1"]),
        (("-r", "0"), ["-r 0"]),
        (("-r", "-3"), ["-r -3"]),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_with_what_may_be(
    arguments: tuple[str, ...], words: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(*arguments)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "address"),
    [("", None), ("127.0.0.1:0", ("127.0.0.1", 0)), (":9646", ("", 9646)), ("[::1]:9646", ("::1", 9646))],
)
def test_where_metrics_are_served(text: str, address: tuple[str, int] | None) -> None:
    assert parse("--metrics-bind-address", text).metrics_bind_address == address


class TestOpenFiles:
    @pytest.fixture(autouse=True)
    def _limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """1,000 for each process."""
        monkeypatch.setattr(resource, "getrlimit", lambda _: (500, 1000))

    def test_as_many_kubelets_as_files_go(self) -> None:
        most = 1000 - openfiles.SPARE
        assert parse("-u", str(most)).kubelets == most
        with pytest.raises(
            ConfigError, match=rf"-u {most + 1}: needs 1001 .* allows 1000 .* for {most} kubelets"
        ):
            parse("-u", str(most + 1))

    def test_a_connection_for_each_watch_needs_more(self) -> None:
        with pytest.raises(ConfigError, match="enough for 21 kubelets"):
            parse("-u", "22", "--http", "http/1.1")

    def test_workers_share_the_clients_end(self) -> None:
        target = ("-u", "1600", "-H", "https://far:6443")
        parse(*target, "--master", "--processes", "2")
        parse(*target, "--master")  # its workers may be anywhere
        with pytest.raises(ConfigError, match="needs 1750"):
            parse(*target)
        with pytest.raises(ConfigError, match="needs 1750"):
            parse("-u", "1600", "--master", "--processes", "2")  # all of them meet in one emulated member

    def test_no_limit_is_no_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (500, resource.RLIM_INFINITY))
        parse("-u", "100000")


def test_a_fleet_may_be_told_what_its_kubelets_do() -> None:
    options = parse("--fleet", "kube_proxy=true,qps=10", "--fleet", "watch_list=false")
    assert options.fleet == {"kube_proxy": True, "qps": 10.0, "watch_list": False}
    with pytest.raises(ConfigError, match=r"--fleet kube_prox=true: .* did you mean kube_proxy"):
        parse("--fleet", "kube_prox=true")


def test_executors_are_a_number_or_as_many_as_are_needed() -> None:
    assert parse("--executors", "3").executors == 3
    assert parse("--executors", "auto").executors == 0
    assert parse("--allow-exec").allow_exec


def test_a_cluster_that_is_named_is_existing_and_so_is_one_that_is_asked_for() -> None:
    assert not parse().existing
    for arguments in (("--kubeconfig", "x"), ("-H", "https://h:1"), ("--backend", "existing")):
        options = parse(*arguments)
        assert (options.existing, options.pool.backend) == (True, "existing")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--backend", "emulated", "--kubeconfig", "x"),
            "--kubeconfig x: names a cluster that is there; --backend emulated starts one",
        ),
        (("--backend", "binaries", "-H", "https://h:1"), "--host https://h:1: names a cluster"),
        (
            ("--backend", "existing", "--members", "3"),
            "--members: no pool is started for a cluster that is there",
        ),
        (("--backend", "existing", "--pool-objects", "x.yaml"), "--pool-objects: no pool is started"),
        (("--kubeconfig", "x", "--cores", "host"), "--cores: no pool is started for a cluster that is there"),
        (("--endpoints", "h:1", "--link", "clients,member-0"), "--link: no pool is started"),
        (("--backend", "none"), "--backend 'none': none of emulated, binaries, existing"),
        (("--apiserver-flag", "v=2"), "--apiserver-flag: it is for real kube-apiservers"),
    ],
)
def test_a_backend_and_what_does_not_go_with_it_are_one_line(
    arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(*arguments)
    assert str(refused.value).startswith(message)


def test_faults_that_a_member_does_to_itself_are_no_real_one_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(install(tmp_path, "kube-apiserver", "etcd")))
    real = ("--backend", "binaries", "--members", "2")
    assert parse(*real, "--fault", "kill member=member-1 for=5s at=1s").pool.backend == "binaries"
    for when in ("at=1s", ""):
        with pytest.raises(ConfigError, match="--fault stall-informer: only an emulated member can do it"):
            parse(*real, "--fault", f"stall-informer for=5s {when}")
