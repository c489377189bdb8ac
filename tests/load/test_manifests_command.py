"""``swarmlet manifests`` as a command. It is here because it reads what is handed on with Locust's own parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli import app
from harness.clusterloader import load_config
from harness.load.cluster.permissions import Rule, needed, policy_rules
from harness.load.informerarguments import informer_plan
from harness.wire.errors import ConfigError
from tests.load.plays import DEPLOYED, paths_of
from tests.manifests.filled import container, option, the

HERE = ("--i-know", "in-cluster")
INFORMERS, WRITER = "resource=pods", "resource=secrets"


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)


def manifests(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    app(["manifests", *arguments], standalone_mode=False)
    return [each for each in yaml.safe_load_all(capsys.readouterr().out) if each is not None]


def test_the_fleet_of_5000_on_20_workers(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--workers", "20", "--nodes", "5000", *HERE)
    objects = manifests(capsys, *given, "--fleet", "kube_proxy=true", "--metrics-bind-address=:9100")
    job, workers = the("Job", objects), the("Deployment", objects)
    args = container(job)["args"]
    assert option(args, "--fleet") == "kube_proxy=true"
    assert option(args, "-r") == "50"
    assert {"name": "metrics", "containerPort": 9100} in container(job)["ports"]
    assert workers["spec"]["replicas"] == 20
    assert container(workers)["resources"]["limits"]["cpu"] == "1"


def test_as_many_workers_as_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    objects = manifests(capsys, "none", "--nodes", "20000", *HERE)
    workers = the("Deployment", objects)["spec"]["replicas"]
    assert 4 <= workers <= 40
    assert option(container(the("Job", objects))["args"], "--expect-workers") == str(workers)


def test_a_scenario_of_ones_own_with_its_variables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nnamespace: {number: 1}\ntuningSets: [{name: q, qpsLoad: {qps: {{.CL2_QPS}}}}]\nsteps:\n"
        "- name: wait\n  measurements: [{identifier: s, method: Sleep, params: {duration: 1s}}]\n"
    )
    objects = manifests(capsys, "mine.yaml", "--nodes", "9", *HERE, "--variable", "CL2_QPS=3")
    assert option(container(the("Job", objects))["args"], "--scenario") == "/etc/swarmlet/scenario/mine.yaml"
    assert container(the("Job", objects))["env"] == [{"name": "CL2_QPS", "value": "3"}]
    assert "mine.yaml" in the("ConfigMap", objects, "swarmlet-scenario")["data"]


@pytest.mark.parametrize(
    ("arguments", "rights"),
    [
        (("none",), needed("impersonate")),
        (
            ("none", "--fleet", "kube_proxy=true", "--identity", "certificate"),
            needed("certificate", kube_proxy=True),
        ),
        (("none", "--locustfile", paths_of("provisioners")), needed("impersonate", provisioners=True)),
        (
            ("--locustfile", paths_of("informers"), "--informers", INFORMERS, "--writer", WRITER),
            needed("impersonate", informers=informer_plan([INFORMERS], "none", [WRITER])),
        ),
        (
            (DEPLOYED, "--locustfile", paths_of("kubelets"), "--identity", "certificate"),
            needed("certificate", config=load_config(DEPLOYED, 9, (), {})),
        ),
    ],
    ids=["a fleet", "kube-proxies", "provisioners", "informers", "a scenario"],
)
def test_the_rights_are_those_of_what_the_run_has(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], rights: list[Rule]
) -> None:
    objects = manifests(capsys, "--nodes", "9", *HERE, *arguments)
    assert the("ClusterRole", objects)["rules"] == policy_rules(rights)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--i-know in-cluster"),
        (("--workers", "10", *HERE), "--workers 10: not within 1 to 9"),
        (("nosuch", *HERE), "scenario 'nosuch'"),
        (("--processes", "3"), "manifests --processes: the manifests have one master and --workers"),
        (("--kubeconfig", "x"), "manifests --kubeconfig: no file of this machine is in the pods"),
        (("--fleeet", "x"), "manifests --fleeet: there is no such option; did you mean --fleet?"),
        (("--prometheus-http-config", "file"), "manifests: file is a file of this machine"),
        (("--prometheus-http-config=file",), "manifests: file is a file of this machine"),
        ((*HERE, "--executors", "x"), "--executors x"),
        ((*HERE, "--fleet", "qps=x"), "qps"),
        ((*HERE, "--identity", "token"), "--identity token and --tokens FILE need each other"),
        ((*HERE, "-t", "soon"), "run: "),
        ((*HERE, "--record-storage", "much"), "--record-storage much: neither a quantity, as 2Gi, nor none"),
        ((*HERE, "--record-storage", "0"), "--record-storage 0"),
        ((*HERE, "--variable", "A=1"), "--variable A=1: not CL2_NAME=VALUE"),
        ((*HERE, "--calibration", "none"), "--calibration none: cannot be read"),
        ((*HERE, "--locustfile", "file"), r"--locustfile file: its name must end in .py"),
        ((*HERE, "--locustfile", "broken.py"), "--locustfile broken.py: is no Python: "),
        ((*HERE, "--overrides", "none.yaml"), "--overrides none.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "broken.py").write_text("class\n")
    with pytest.raises(ConfigError) as refused:
        app(["manifests", "--nodes", "9", *arguments], standalone_mode=False)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2
