"""The order of samples, what each run is given, what is shown of it, and what becomes of one that does not begin."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from rich.console import Console

from harness.experiment.ledger import Attempt
from harness.experiment.locustrun import locust_command, refusal, run_locust
from harness.experiment.plan import ArmPlan, ExperimentPlan, against_itself, sample_arguments, slug
from harness.experiment.progress import left_s, minutes, progress_line
from harness.experiment.results import print_results
from harness.experiment.runner import run_experiment
from harness.wire.errors import ConfigError, SwarmletError
from tests.conftest import HANG_S
from tests.records import make_record

ONE = ArmPlan("1 master", ("--members", "1"))
HA = ArmPlan(
    "HA, 3 masters",
    ("--members", "3", "--fault", "stall-informer member=member-1 for=20s at=0s"),
    {"CL2_A": "1"},
)

FAULT = {"fault": "stall", "member": "m"}


def plan(**changes: Any) -> ExperimentPlan:
    return msgspec.structs.replace(ExperimentPlan("demo", "One or three", (ONE, HA), samples=2), **changes)


def test_arms_take_turns() -> None:
    assert list(plan().turns()) == [(ONE, 1), (HA, 1), (ONE, 2), (HA, 2)]


def test_over_virtual_time_no_idle_host_is_waited_for() -> None:
    virtual = msgspec.structs.replace(ONE, arguments=(*ONE.arguments, "--virtual"))
    mixed = plan(arms=(virtual, HA), cool_down_s=60.0)
    assert [mixed.waits_s(arm) for arm in mixed.arms] == [0.0, 60.0]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"arms": ()}, "it has no arms"),
        ({"arms": (ONE, ONE)}, "two arms have the same name"),
        ({"arms": (ONE, ArmPlan("1: Master", 2))}, "two arms have the same name"),
        ({"samples": 0}, "samples: 0 is less than 1"),
        ({"retries": -1}, "retries: -1 is less than 0"),
        ({"cool_down_s": -1.0}, "cool_down: -1 is no number of seconds"),
        ({"arms": (ArmPlan("--"),)}, "an arm's name needs a letter or a digit: '--'"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=rf"experiment demo: {text}"):
        plan(**changes).validate()


@pytest.mark.parametrize(
    ("name", "folder"), [("1 master", "1-master"), ("HA, 3 masters", "ha-3-masters"), ("--", "")]
)
def test_a_slug_is_a_folders_name(name: str, folder: str) -> None:
    assert slug(name) == folder


def test_a_sample_is_told_its_arm_its_number_and_a_seed_that_all_arms_share(tmp_path: Path) -> None:
    given = sample_arguments(plan(seed=10, arguments=("--cores", "0.5")), HA, 2, tmp_path / "r")
    assert list(zip(given[::2], given[1::2], strict=True)) == [
        ("--cores", "0.5"),
        ("--members", "3"),
        ("--fault", "stall-informer member=member-1 for=20s at=0s"),
        ("--seed", "12"),
        ("--arm", "HA, 3 masters"),
        ("--sample", "2"),
        ("--record", str(tmp_path / "r")),
    ]
    assert "12" in sample_arguments(plan(seed=10), ONE, 2, tmp_path)


def test_shuffled_arms_have_an_order_of_their_own_in_each_round_that_the_seed_gives_again() -> None:
    arms = tuple(ArmPlan(name) for name in "abc")
    orders = {}
    for seed in (1, 2):
        turns = list(plan(arms=arms, samples=6, order="shuffled", seed=seed).turns())
        assert turns == list(plan(arms=arms, samples=6, order="shuffled", seed=seed).turns())
        rounds = ["".join(arm.name for arm, _ in turns[at : at + 3]) for at in range(0, 18, 3)]
        assert [sample for _, sample in turns] == [k for k in range(1, 7) for _ in arms]
        assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
        assert len(set(rounds)) > 1
        orders[seed] = rounds
    assert orders[1] != orders[2]


def test_more_samples_leave_the_order_of_the_first_ones() -> None:
    few, many = (list(plan(samples=samples, order="shuffled").turns()) for samples in (2, 5))
    assert many[:4] == few


def test_an_arm_against_itself_is_that_arm_twice() -> None:
    twice = against_itself(plan(), "HA, 3 masters")
    assert [arm.name for arm in twice.arms] == ["HA, 3 masters", "HA, 3 masters again"]
    assert {(arm.arguments, *arm.environ) for arm in twice.arms} == {(HA.arguments, *HA.environ)}
    assert twice.title == "One or three: HA, 3 masters against itself"
    assert twice.declared() == ()
    assert against_itself(plan()).arms[0] == ONE
    with pytest.raises(ConfigError, match="experiment demo: no arm 'x'; there are 1 master, HA, 3 masters"):
        against_itself(plan(), "x")


def test_the_command_is_locusts_with_our_file() -> None:
    command = locust_command(["kubelets", "/x/mine.py"], ["-u", "5"])
    assert command[:3] == [sys.executable, "-m", "locust"]
    ours, mine = command[command.index("-f") + 1].split(",")
    assert Path(ours).is_file()
    assert mine == "/x/mine.py"
    assert command[-2:] == ["-u", "5"]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"kind": "target-ready", "members": ["a", "b"]}, "2 apiserver(s) ready"),
        ({"kind": "nodes-ready", "ready": 100}, "100 nodes ready"),
        ({"kind": "step-finished", "name": "create", "seconds": 1.25}, "create: 1.2 s"),
        ({"kind": "mark", "text": "a worker was lost"}, "noticed: a worker was lost"),
        ({**FAULT, "kind": "fault-started", "seconds": 20.0}, "fault: stall on m for 20 s"),
        ({**FAULT, "kind": "fault-started", "seconds": None}, "fault: stall on m"),
        ({**FAULT, "kind": "fault-failed", "error": "why"}, "fault stall on m failed: why"),
        ({"kind": "executors", "count": 2, "members": ["a", "b"]}, "operations by 2 executors: a, b"),
        ({"kind": "executors", "count": 1, "members": ["a"]}, ""),
        ({"kind": "exec-started", "command": ["make", "it"]}, "exec: make it"),
        ({"kind": "exec-output", "line": "made"}, "  | made"),
        ({"kind": "exec-ended", "error": "it failed"}, "exec: it failed"),
        ({"kind": "exec-ended", "error": ""}, ""),
        (
            {"kind": "member-ended", "member": "m", "seconds": 30.0},
            "m ended after 30.0 s, to be started again",
        ),
        (
            {"kind": "member-restarted", "member": "m", "seconds": 34.5},
            "m serves again, 34.5 s after it was told to end",
        ),
        (
            {"kind": "member-restart-failed", "member": "m", "error": "not ready"},
            "m did not come back: not ready",
        ),
        ({"kind": "run-ended", "status": "completed"}, "run completed"),
        ({"kind": "phase-started", "step": 1}, ""),
    ],
)
def test_what_is_shown_of_an_event(event: dict[str, Any], line: str) -> None:
    assert progress_line(event) == line


def writing(record: Path, *lines: str) -> list[str]:
    """A command that writes events and then ends with 3."""
    script = (
        "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.mkdir(); f = (p / 'events.jsonl').open('w')\n"
        "for line in sys.argv[2:]: f.write(line); f.flush()\n"
        "print('done'); sys.exit(3)"
    )
    return [sys.executable, "-c", script, str(record), *lines]


def test_events_are_followed_and_output_is_kept(tmp_path: Path) -> None:
    record, seen = tmp_path / "samples" / "a-1", []
    code = run_locust(
        writing(record, '{"kind":"a"}\n{"ki', 'nd":"b"}\n', '{"kind":"cut'), record, seen.append
    )
    assert code == 3
    assert [event["kind"] for event in seen] == ["a", "b"]
    assert (tmp_path / "samples" / "a-1.log").read_text() == "done\n"


def test_a_run_knows_whose_it_is(tmp_path: Path) -> None:
    script = "import os, sys; sys.exit(os.environ['SWARMLET_PARENT'] != str(os.getppid()))"
    assert run_locust([sys.executable, "-c", script], tmp_path / "r", lambda _: None) == 0


def test_when_we_are_interrupted_the_run_is_ended_and_waited_for(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time, pathlib\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('ended in order'), sys.exit(1)))\n"
        "p = pathlib.Path(sys.argv[1]); p.mkdir(); (p / 'events.jsonl').write_text('{\"kind\":\"begun\"}\\n')\n"
        "time.sleep(600)"
    )

    def interrupt(_: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    record = tmp_path / "r"
    with pytest.raises(KeyboardInterrupt):
        run_locust([sys.executable, "-c", script, str(record)], record, interrupt)
    assert (tmp_path / "r.log").read_text() == "ended in order\n"


@pytest.mark.parametrize(
    ("log", "text"),
    [
        ("starting\nswarmlet: --cores 'x': no\nworker quit\n", "--cores 'x': no"),
        ("starting\nlocust: error: unrecognized\n\n", "locust: error: unrecognized"),
        ("", "no output; see "),
    ],
)
def test_a_run_that_did_not_begin_says_why(tmp_path: Path, log: str, text: str) -> None:
    (tmp_path / "r.log").write_text(log)
    error = refusal(tmp_path / "r", 2)
    assert error is not None
    assert str(error).startswith(text)
    assert error.exit_code == 2


def test_a_run_that_began_is_no_refusal_unless_its_input_was_wrong(tmp_path: Path) -> None:
    make_record(tmp_path / "r")
    (tmp_path / "r.log").write_text("swarmlet: port 80: taken\n")
    assert refusal(tmp_path / "r", 1) is None
    assert str(refusal(tmp_path / "r", 2)) == "port 80: taken"


def test_an_experiment_of_runs_that_cannot_begin_ends_with_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(file=(tmp_path / "out").open("w"))
    script = "import sys; print('swarmlet: no such scenario', file=sys.stderr); sys.exit(2)"
    monkeypatch.setattr("harness.experiment.runner.locust_command", lambda *_: [sys.executable, "-c", script])
    with pytest.raises(SwarmletError, match="1 master, sample 1: no such scenario") as caught:
        run_experiment(plan(), tmp_path / "demo", console)
    console.file.close()
    assert caught.value.exit_code == 2
    assert "[1/4] 1 master, sample 1 of 2" in (tmp_path / "out").read_text()


def test_the_time_left_is_told_by_what_samples_of_each_arm_took() -> None:
    attempts = [Attempt("a", 1, "a-1", 10.0), Attempt("a", 2, "a-2", 20.0), Attempt("b", 1, "b-1", 100.0)]
    assert left_s(attempts, ["a", "b", "b"]) == 15 + 200
    assert left_s(attempts, ["c"]) == (15 + 100) / 2
    assert left_s([], ["a"]) is None
    assert (minutes(89.4), minutes(90)) == ("89 s", "1.5 min")


def test_an_experiment_is_not_written_over_another(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    with pytest.raises(ConfigError, match="already holds an experiment; give another --name"):
        run_experiment(plan(), tmp_path, Console(quiet=True))


def test_the_results_of_a_run_name_what_was_noticed(tmp_path: Path) -> None:
    make_record(tmp_path / "r", marks=(("a worker was lost", True),))
    with (tmp_path / "out").open("w") as output:
        assert print_results(tmp_path / "r", 1, Console(file=output)) == 1
    assert "noticed: a worker was lost" in (tmp_path / "out").read_text()


@pytest.mark.slow
def test_a_run_ends_with_the_killed_command_that_started_it(tmp_path: Path) -> None:
    """The command is `swarmlet run`'s own code, killed; Locust is told by no one."""
    record = tmp_path / "r"
    script = (
        "import sys, pathlib\n"
        "from harness.experiment.locustrun import locust_command, run_locust\n"
        "arguments = ['-u', '1', '-t', '600s', '--scenario', 'none', '--cores', 'host', '--record', sys.argv[1]]\n"
        "run_locust(locust_command(['kubelets'], arguments), pathlib.Path(sys.argv[1]), print)"
    )
    starter = subprocess.Popen([sys.executable, "-c", script, str(record)], stdout=subprocess.DEVNULL)
    try:
        events = record / "events.jsonl"
        deadline = time.monotonic() + 2 * HANG_S
        while not (events.exists() and b"target-ready" in events.read_bytes()):
            assert time.monotonic() < deadline, "no target"
            time.sleep(0.1)
        run = psutil.Process(starter.pid).children(recursive=True)
        assert run
    finally:
        os.kill(starter.pid, signal.SIGKILL)
        starter.wait()
    _, left = psutil.wait_procs(run, timeout=HANG_S)
    assert left == []
    assert msgspec.json.decode((record / "manifest.json").read_bytes())["status"] == "interrupted"
