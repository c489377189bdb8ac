"""Exec and RestartApiserver: what the test asks of the run's master, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.clusterloader import Config
from harness.clusterloader.measurements.exec import refuse_commands
from harness.clusterloader.messages import AnyMessage, Execute, Executed, Restart, Restarted
from harness.wire.errors import ConfigError
from tests.clusterloader.conftest import Write
from tests.clusterloader.fake import FakeCluster
from tests.clusterloader.together import Together, crew

STEP = """\
name: commands
namespace: {prefix: ns, deleteAutomanagedNamespaces: false}
steps:
- name: first
  measurements:
  - {Identifier: it, Method: METHOD, Params: {PARAMS}}
"""


def config(write: Write, method: str, params: str) -> Config:
    return write(STEP.replace("METHOD", method).replace("PARAMS", params))


def run(
    config: Config, answer: Callable[[AnyMessage], AnyMessage]
) -> tuple[tuple[str, ...], list[AnyMessage], FakeCluster]:
    """A test's failures, what its master was asked, and its cluster."""
    together: Together = crew(config, 0)
    asked: list[AnyMessage] = []

    def master(_: str, message: AnyMessage) -> AnyMessage:
        asked.append(message)
        return answer(message)

    together.master = master
    cluster = FakeCluster()
    finished = cluster.run(together)
    assert finished is not None
    return finished.failures, asked, cluster


def done(message: AnyMessage) -> AnyMessage:
    return Executed(number=message.number, error="", log="exec-1.log")


def test_exec_has_the_master_run_its_command(write: Write) -> None:
    failures, asked, _ = run(config(write, "Exec", "command: [make, it], timeout: 5m"), done)
    assert failures == ()
    assert asked == [Execute(number=1, command=("make", "it"), timeout_s=300.0)]


def test_exec_has_an_hour_by_default(write: Write) -> None:
    _, asked, _ = run(config(write, "Exec", "command: [make]"), done)
    assert asked == [Execute(number=1, command=("make",), timeout_s=3600.0)]


def test_a_command_that_fails_fails_its_step(write: Write) -> None:
    def failed(message: AnyMessage) -> AnyMessage:
        return Executed(number=message.number, error="command 'make' failed: exit code 2", log="exec-1.log")

    failures, asked, _ = run(config(write, "Exec", "command: [make]"), failed)
    (failure,) = failures
    assert failure == (
        "[step: 01] first: measurement call Exec - it error: command 'make' failed: exit code 2 "
        "(its output: logs/exec-1.log)"
    )
    assert len(asked) == 1


def test_a_command_that_fails_is_run_again_where_that_is_asked_for(write: Write) -> None:
    def second(message: AnyMessage) -> AnyMessage:
        return Executed(number=message.number, error="failed" if message.number == 1 else "", log="")

    failures, asked, _ = run(config(write, "Exec", "command: [make], retries: 2"), second)
    assert (failures, len(asked)) == ((), 2)

    def never(message: AnyMessage) -> AnyMessage:
        return Executed(number=message.number, error="failed", log="")

    failures, asked, _ = run(config(write, "Exec", "command: [make], retries: 2"), never)
    assert len(asked) == 3
    assert failures[0].endswith("error: failed, tried 3 times")


def test_exec_without_a_program_fails(write: Write) -> None:
    failures, asked, _ = run(config(write, "Exec", "command: []"), done)
    assert failures[0].endswith("params.command: [] is not allowed; expected at least a program")
    assert asked == []


@pytest.mark.parametrize("params", ["timeout: 1m", "command: make", "command: [1]"])
def test_exec_with_other_parameters_is_refused_before_it_runs(write: Write, params: str) -> None:
    with pytest.raises(ConfigError, match=r"config.yaml:\d+: .*Exec.*params.command"):
        config(write, "Exec", params)


def test_a_config_with_commands_is_refused_with_its_place(write: Write) -> None:
    with pytest.raises(ConfigError) as refused:
        refuse_commands(config(write, "Exec", "command: [rm]"))
    assert str(refused.value).endswith(
        "config.yaml:6: steps[0].measurements[0]: Exec runs a command on this machine; --allow-exec allows it"
    )
    refuse_commands(config(write, "Sleep", "duration: 1s"))


def test_an_apiserver_is_restarted_by_the_master(write: Write) -> None:
    def restarted(message: AnyMessage) -> AnyMessage:
        return Restarted(number=message.number, member="member-1", seconds=34.5)

    params = "downSeconds: 5, readyTimeout: 1m"
    failures, asked, cluster = run(config(write, "RestartApiserver", params), restarted)
    assert failures == ()
    assert asked == [Restart(number=1, down_s=5, ready_timeout_s=60.0)]
    (note,) = cluster.of("apiserver-restarted")
    assert (note["step"], note["member"], note["seconds"]) == ("first", "member-1", 34.5)


def test_restarts_have_upstreams_defaults(write: Write) -> None:
    _, asked, _ = run(config(write, "RestartApiserver", ""), lambda message: Restarted(number=message.number))
    assert asked == [Restart(number=1, down_s=30, ready_timeout_s=600.0)]


def test_a_restart_that_fails_fails_its_step(write: Write) -> None:
    def failed(message: AnyMessage) -> AnyMessage:
        return Restarted(number=message.number, member="member-1", error="not ready within 60 s")

    failures, _, _ = run(config(write, "RestartApiserver", ""), failed)
    assert failures[0].endswith("RestartApiserver - it error: member-1: not ready within 60 s")


def test_a_target_whose_apiservers_cannot_be_restarted_skips_aloud(write: Write) -> None:
    def cannot(message: AnyMessage) -> AnyMessage:
        return Restarted(number=message.number, unsupported="it is no pool")

    failures, _, cluster = run(config(write, "RestartApiserver", ""), cannot)
    assert failures == ()
    (skipped,) = cluster.of("skipped-measurement")
    assert (skipped["method"], skipped["reason"]) == ("RestartApiserver", "it is no pool")
