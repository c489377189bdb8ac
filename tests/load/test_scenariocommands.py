"""``swarmlet scenario render`` and ``plan``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from harness.cli import app as cli
from harness.load.scenariocommands import app
from harness.wire.errors import ConfigError
from tests.conftest import DATA

UPSTREAM = DATA / "clusterloader2"
THROUGHPUT = str(UPSTREAM / "scheduler-throughput" / "config.yaml")


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_config_is_rendered_with_nodes_overrides_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    override = tmp_path / "o.yaml"
    override.write_text("CL2_SCHEDULER_THROUGHPUT_PODS: 7\n")
    monkeypatch.setenv("CL2_UNIFORM_QPS", "3")
    found = yaml.safe_load(run("render", THROUGHPUT, "--nodes", "50", "--overrides", str(override)))
    assert found["steps"][1]["phases"][0]["replicasPerNamespace"] == 7
    assert found["tuningSets"][1]["qpsLoad"]["qps"] == 3


def test_a_config_of_ours_has_a_plan_by_its_name() -> None:
    text = run("plan", "density", "--nodes", "20")
    assert text.startswith("density: ")
    assert "expected time: " in text


def test_each_test_of_a_suite_is_shown() -> None:
    suite = str(UPSTREAM / "density" / "scheduler-suite.yaml")
    text = run("plan", suite)
    assert [line for line in text.splitlines() if line.endswith(":")] == [
        "vanilla:",
        "pod-affinity:",
        "pod-anti-affinity:",
        "pod-topology-spread:",
    ]
    documents = list(yaml.safe_load_all(run("render", suite)))
    assert [document["name"] for document in documents] == ["density"] * 4


def test_a_config_that_cannot_be_run_is_rendered_and_then_refused() -> None:
    sample = (
        UPSTREAM / "density" / "scheduler" / "custom-scheduler-metrics" / "config-custom-schd-sample.yaml"
    )
    done = CliRunner().invoke(app, ["render", str(sample)])
    assert yaml.safe_load(done.output)["steps"]
    assert isinstance(done.exception, ConfigError)
    assert "sample.yaml:37: " in str(done.exception)
    assert CliRunner().invoke(app, ["plan", str(sample)]).output == ""


@pytest.mark.parametrize("name", ["nosuch", "none"])
def test_what_is_no_scenario_is_refused(name: str) -> None:
    assert isinstance(CliRunner().invoke(app, ["plan", name]).exception, ConfigError)


@pytest.mark.parametrize(("codes", "code"), [([0, 0, 0, 0], 0), ([0, 3, 0, 0], 3), ([3, 0, 4, 1], 1)])
def test_a_suite_is_run_test_by_test_and_ends_with_the_worst_of_them(
    codes: list[int], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run_locust(command: list[str], record: Path, _: object) -> int:
        commands.append([*command, str(record)])
        return codes[len(commands) - 1]

    monkeypatch.setattr("harness.experiment.locustrun.run_locust", run_locust)
    monkeypatch.setattr("harness.experiment.results.print_results", lambda folder, code, console: code)
    suite = str(UPSTREAM / "density" / "scheduler-suite.yaml")
    done = CliRunner().invoke(cli, ["run", suite, "--nodes", "7", "--record", str(tmp_path)])
    assert done.exit_code == code
    assert [Path(command[-1]).relative_to(tmp_path).name for command in commands] == [
        "vanilla",
        "pod-affinity",
        "pod-anti-affinity",
        "pod-topology-spread",
    ]
    assert "--overrides" not in commands[0]
    assert commands[1][commands[1].index("--overrides") + 1].endswith("pod-affinity/overrides.yaml")
