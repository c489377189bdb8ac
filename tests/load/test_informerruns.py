"""Whole runs with informers: alone with a spoilt cache, beside kubelets in several processes, and with bad options."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.compare.comparison import compare
from harness.compare.run import Run
from tests.load.plays import AT_MOST, TINY, WHOLE_RUNS, Outcome, Outcomes, Play, assert_ended_well, put_on

pytestmark = WHOLE_RUNS

_MIX = """
rate: 10
kinds:
- {name: paged, limit: 20}
- {name: exact, resourceVersion: exact, ageS: 1, limit: 20}
- {name: get, get: true}
"""
_FEW = ("--cores", "host", "--writer", "objects=60,rate=10")


def spoilt(folder: Path) -> Outcome:
    """Once informers have seen how it should be."""
    quiet = ("--cores", "host", "--writer", "objects=60,rate=0", "--informers", "count=3")
    play = Play(folder, *quiet, locustfile="informers")
    play.wait_for_event("informers-synced")
    fault = ("pool", "fault", "corrupt-cache", "resource=configmaps", "--run", str(folder))
    subprocess.run([sys.executable, "-c", "from harness.cli import main; main()", *fault], check=True)
    return play.end_at_rest()


def beside_kubelets(folder: Path) -> Outcome:
    """Both locustfiles as they are, with a scenario, in two processes, on two members."""
    mix = folder.with_name("mix.yaml")
    mix.write_text(_MIX)
    crowds = ("--informers", "count=4,restart_every_s=3", "--informers", "count=2,resource=pods,mode=list")
    arguments = ("--scenario", TINY, "--members", "2", "--processes", "2", "--lists", str(mix), *AT_MOST)
    return Play(folder, *_FEW, *crowds, *arguments, locustfile="kubelets,informers").end()


def bad_mix(folder: Path) -> Outcome:
    mix = folder.with_name("bad.yaml")
    mix.write_text("kinds:\n- {name: a, weight: heavy}\n")
    return Play(folder, "--lists", str(mix), locustfile="informers").end()


PLAYS: list[Callable[[Path], Outcome]] = [spoilt, beside_kubelets, bad_mix]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Of every play; they are put on together, before the first test asks for one."""
    folder = tmp_path_factory.mktemp("informers")
    return put_on(PLAYS, folder, len(PLAYS))


def test_a_spoilt_watch_cache_fails_the_run_with_its_story(outcomes: Outcomes) -> None:
    outcome = outcomes(spoilt)
    assert (outcome.code, outcome.left, outcome.manifest.status) == (1, [], "failed"), outcome.output
    (violation,) = outcome.events("informer-violation")
    assert violation["violation"] == "differs"
    assert violation["text"].startswith("not in its state, revision ")
    (text,) = outcome.manifest.invalid[:1]
    assert text.startswith(
        f"informers were told wrong: differs: auditor at member-0: configmaps {violation['key']}"
    )
    assert outcome.manifest.results["informers"]["checked"]["violations"] == 1
    assert "Traceback" not in outcome.output


def test_informers_beside_kubelets_in_several_processes_are_found_right(outcomes: Outcomes) -> None:
    outcome = outcomes(beside_kubelets)
    assert_ended_well(outcome)
    results = outcome.manifest.results
    assert results["scenario"] == "Success"
    checked = results["informers"]["checked"]
    assert checked.get("violations", 0) == checked["unsynced"] == 0
    told = "what informers were told could not be compared at the end" in outcome.marks
    assert told == bool(checked["undecided"]), "on a busy machine some may not have heard of the last event"
    assert checked["compared"] > 10
    assert len(outcome.events("informers-checked")) == 2
    assert len(outcome.events("informers-synced")) == 2
    assert results["informers"]["events"] > 0


def test_its_rows_are_in_the_comparison(outcomes: Outcomes) -> None:
    run = Run(outcomes(beside_kubelets).record)
    run.manifest.marks = []  # of a busy machine
    rows = {row.row.key: row for row in compare([run]).rows}
    for key in (
        "informer-sync-last",
        "informer-delivery-p50-busiest",
        "list-exact-p99",
        "informer-evaluated",
    ):
        (figure,) = rows[key].figures.values()
        assert figure.known, key


def test_a_bad_mix_is_one_line(outcomes: Outcomes) -> None:
    outcome = outcomes(bad_mix)
    assert (outcome.code, outcome.left) == (2, [])
    (line,) = (line for line in outcome.output.splitlines() if line.startswith("swarmlet: "))
    assert line.endswith("bad.yaml:2: kinds[0].weight: expected `float`, got `str` ('heavy')")
    assert not outcome.record.exists()
