"""Provisioners of a run: their options, their users, and a run over virtual time with its record."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.apiserver.auth.nodemisses import OnMiss
from harness.compare.comparison import compare
from harness.compare.run import Run
from harness.load.arguments import RunOptions, add_arguments, options_from
from harness.load.informerusers import InformerUser
from harness.load.provisionerrun import fit_provisioners
from harness.load.provisionerusers import ClaimsUser, ProvisionerUser
from harness.load.provisionervirtual import _pool, run_virtual
from harness.load.users import ClusterLoaderUser, ControllersUser, KubeletUser
from harness.load.virtualarguments import check_virtual
from harness.wire.errors import ConfigError

ALONE = (ProvisionerUser, ClaimsUser, ControllersUser)


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = {
        "num_users": None,
        "spawn_rate": None,
        "run_time": None,
        "host": "",
        "master": False,
        "processes": None,
    }
    return parser.parse_args(arguments, argparse.Namespace(**given))


def options(*arguments: str, users: tuple[type[Any], ...] = ALONE) -> RunOptions:
    names = parsed(*arguments)
    environment = SimpleNamespace(user_classes=list(users), parsed_options=names)
    return fit_provisioners(environment, options_from(names))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--provisioner-replicas 0", "--provisioner-replicas 0: expected 1 to 100"),
        ("--provisioner old", "--provisioner old: allowed are modern, legacy"),
        ("--provisioner-options qps=-5", "provisioner option qps=-5 must be above 0"),
        ("--provisioner-options burst=0", "provisioner option burst=0 must be at least 1"),
        ("--provisioner-options workers=0", "provisioner option workers=0 must be at least 1"),
        ("--provisioner-options failures=2", "provisioner option failures=2 must be a share, 0 to 1"),
        ("--provisioner-options elecion=none", "did you mean election?"),
        ("--provisioner-options election=all", "allowed are per-claim, per-provisioner, none"),
        ("--provisioner-options create=normal:1", "expected one of constant:SECONDS"),
        ("--provisioner-options create=uniform:3:1", "expected uniform:LOW:HIGH"),
        ("--claims 0", "claims: 0 is less than 1"),
        ("--claims-rate -1", "claims: rate=-1 is not 0 or more"),
        ("--claims-rate nan", "claims: rate=nan is not 0 or more"),
        ("--claims-arrival late", "allowed are even, poisson"),
    ],
)
def test_options_that_are_none_are_told_in_one_line(arguments: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        options(*arguments.split())
    assert says in str(raised.value)
    assert raised.value.exit_code == 2


def test_provisioners_alone_have_no_kubelets_and_no_scenario() -> None:
    alone = options("--provisioner", "legacy", "--provisioner-options", "qps=20")
    assert (alone.kubelets, alone.scenario, alone.pool.nodes) == (0, "", 5000)
    assert alone.provisioners is not None
    assert alone.provisioners.options["workers"] == 4
    assert alone.provisioners.options["qps"] == 20.0


def test_beside_kubelets_the_fleet_and_the_scenario_stay() -> None:
    both = options(users=(KubeletUser, ClusterLoaderUser, *ALONE))
    assert (both.kubelets, Path(both.scenario).stem) == (20, "density")
    assert both.provisioners is not None


def test_two_locustfiles_bring_one_set_of_controllers() -> None:
    class Second(ControllersUser):
        """Of the other locustfile."""

    names = parsed()
    classes = [KubeletUser, ControllersUser, ProvisionerUser, ClaimsUser, Second]
    fit_provisioners(SimpleNamespace(user_classes=classes, parsed_options=names), options_from(names))
    assert classes == [KubeletUser, ControllersUser, ProvisionerUser, ClaimsUser]


def test_a_fleet_without_provisioners_knows_nothing_of_claims() -> None:
    assert options(users=(KubeletUser,)).provisioners is None
    for users in ((KubeletUser,), (KubeletUser, *ALONE), (InformerUser, *ALONE)):
        with pytest.raises(ConfigError, match="--virtual"):
            options("--virtual", users=users)


def run(folder: Path, *arguments: str) -> Run:
    assert run_virtual(options("--virtual", "--record", str(folder), *arguments)) == 0
    return Run(folder)


def test_a_virtual_run_leaves_a_record_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    modern = run(tmp_path / "m", "--arm", "modern", "--claims", "10")
    legacy = run(
        tmp_path / "l",
        "--arm",
        "legacy",
        "--claims",
        "10",
        "--provisioner",
        "legacy",
        "--provisioner-replicas",
        "2",
    )
    assert "virtual time" in capsys.readouterr().out
    rows = {row.row.key: row.figures for row in compare([modern, legacy]).rows}
    assert rows["claims-bound"]["modern"].median == rows["claims-bound"]["legacy"].median == 10
    assert rows["claim-requests"]["legacy"].median > 3 * rows["claim-requests"]["modern"].median  # type: ignore[operator]
    assert rows["watches-busiest"]["legacy"].median is not None  # the members were scraped
    assert modern.manifest.status == "completed"


def test_two_virtual_runs_of_a_seed_are_the_same(tmp_path: Path) -> None:
    first, second = (run(tmp_path / name, "--claims", "5", "--seed", "7") for name in ("a", "b"))
    assert first.events == second.events
    assert first.requests.equals(second.requests)


@pytest.mark.parametrize(
    "given",
    [
        "--kubeconfig f",
        "--endpoints 127.0.0.1:1",
        "--context c",
        "--backend binaries",
        "--backend existing",
        "--etcd-servers binary",
        "--data-dir d",
        "--goaway-chance 0.01",
        "--balancer haproxy",
        "--link clients,member-0",
        "--pool-objects f.yaml",
        "--fault reset",
        "--pace 2",
        "--http h2",
        "--scenario load",
        "--fleet qps=1",
        "--prometheus-url http://p",
        "--executors 2",
        "--allow-exec",
        "--audit-every 5",
        "--sign-csrs false",
        "--metrics-bind-address :0",
    ],
)
def test_an_option_that_a_virtual_run_would_do_without_is_refused_by_name(given: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_virtual(parsed("--virtual", *given.split()))
    flag = given.split()[0]
    assert str(raised.value).startswith(f"--virtual: {flag}: ")
    assert raised.value.exit_code == 2
    check_virtual(parsed(*given.split()))


@pytest.mark.parametrize(("name", "value"), [("host", "h"), ("master", True), ("processes", 2)])
def test_locusts_own_options_for_more_than_one_process_are_refused(name: str, value: object) -> None:
    names = parsed("--virtual")
    setattr(names, name, value)
    with pytest.raises(ConfigError, match=f"--virtual: .*--{name}"):
        check_virtual(names)


def test_what_says_no_more_than_the_default_is_no_trouble() -> None:
    same = ("--backend", "emulated", "--scenario", "none", "--prometheus", "none", "--http", "auto")
    check_virtual(parsed("--virtual", *same, "--pace", "1"))


def test_an_emulated_pools_options_are_those_of_the_virtual_members() -> None:
    given = options(
        *(
            "--virtual",
            "--members",
            "2",
            "--cores",
            "3",
            "--event-ttl",
            "60",
            "--max-requests-inflight",
            "90",
        ),
        *("--feature-gates", "ListFromCacheSnapshot=false", "--protobuf-answers", "true"),
        *(
            "--node-authorizer",
            "member-1.on-miss=wait",
            "--etcd",
            "fsync_s=0.02",
            "--cost",
            "bind_pod_us=900",
        ),
        *("--priority-and-fairness", "false"),
    )
    pool = _pool(given)
    first, second = (member.options for member in pool.members)
    assert (first.cores, first.event_ttl_s, first.server_concurrency) == (3.0, 60.0, 90)
    assert (first.protobuf_answers, first.priority_and_fairness) == (True, False)
    assert not first.feature_gates.list_from_cache_snapshot
    assert first.costs == {"bind_pod_us": 900.0}
    assert (first.node_authorizer.on_miss, second.node_authorizer.on_miss) == (OnMiss.DENY, OnMiss.WAIT)
    assert pool.store.model.options.fsync_s == 0.02
    pool.close()
