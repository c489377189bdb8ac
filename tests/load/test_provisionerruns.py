"""Whole runs with provisioners, as processes: alone, beside kubelets, with bad options; and one over virtual time.

They need processes: what is looked at is that the locustfile's users, hooks and end go together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.compare.comparison import compare
from harness.compare.run import Run
from tests.load.plays import AT_MOST, TINY, WHOLE_RUNS, Outcome, Outcomes, Play, assert_ended_well, put_on

pytestmark = WHOLE_RUNS

CLAIMS = 5
_GIVEN = (
    "--claims",
    str(CLAIMS),
    "--provisioner-options",
    "create=constant:1",
    "--cores",
    "host",
    *AT_MOST,
)


def alone(folder: Path) -> Outcome:
    return Play(folder, *_GIVEN, locustfile="provisioners").end()


def virtual(folder: Path) -> Outcome:
    return Play(folder, *_GIVEN, "--virtual", locustfile="provisioners").end()


def beside_kubelets(folder: Path) -> Outcome:
    return Play(folder, *_GIVEN, "--scenario", TINY, locustfile="kubelets,provisioners").end()


def bad_option(folder: Path) -> Outcome:
    return Play(folder, "--provisioner-options", "qps=-5", locustfile="provisioners").end()


def bad_beside_virtual(folder: Path) -> Outcome:
    return Play(folder, "--virtual", "--backend", "binaries", locustfile="provisioners").end()


PLAYS: list[Callable[[Path], Outcome]] = [alone, virtual, beside_kubelets, bad_option, bad_beside_virtual]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Of every play; they are put on together, before the first test asks for one: they mostly wait."""
    folder = tmp_path_factory.mktemp("provisioners")
    return put_on(PLAYS, folder, len(PLAYS))


@pytest.mark.parametrize("play", [alone, virtual, beside_kubelets])
def test_the_run_ends_when_every_claim_is_bound(outcomes: Outcomes, play: Callable[[Path], Outcome]) -> None:
    outcome = outcomes(play)
    assert_ended_well(outcome)
    (bound,) = outcome.events("claims-bound")
    assert bound["bound"] == CLAIMS


def test_beside_kubelets_the_scenario_is_run_too(outcomes: Outcomes) -> None:
    outcome = outcomes(beside_kubelets)
    assert outcome.manifest.results["scenario"] == "Success"
    assert Run(outcome.record).sent(user="kubelet") > 0


def sent(run: Run) -> Counter[tuple[str, str]]:
    """What provisioners and the claims' maker sent and got, by verb and resource. The Lease's renewals go by the time
    that passes, and refusals by how long the rights take."""
    frame = run.requests.astype({"user": str, "verb": str, "name": str})
    frame = frame[frame["user"].isin(("provisioner", "claims")) & frame["code"].between(200, 299)]
    rows = zip(frame["verb"], frame["name"], frame["count"], strict=True)
    counts: Counter[tuple[str, str]] = Counter()
    for verb, name, count in rows:
        if name != "leases":
            counts[verb, name] += int(count)
    return counts


def test_a_claim_costs_the_same_requests_in_real_and_in_virtual_time(outcomes: Outcomes) -> None:
    real, imitated = (sent(Run(outcomes(play).record)) for play in (alone, virtual))
    assert real == imitated
    assert real["create", "persistentvolumes"] == CLAIMS
    assert real["create", "events"] == 2 * CLAIMS


def test_its_rows_are_in_the_comparison(outcomes: Outcomes) -> None:
    run = Run(outcomes(alone).record)
    run.manifest.marks = []  # of a busy machine
    rows = {row.row.key: row for row in compare([run]).rows}
    for key in ("claims-bound", "claim-bound-p99", "claim-requests", "claim-requests-create-events"):
        (figure,) = rows[key].figures.values()
        assert figure.known, key


@pytest.mark.parametrize(
    ("play", "says"),
    [
        (bad_option, "provisioner option qps=-5 must be above 0"),
        (bad_beside_virtual, "--virtual: --backend: members are emulated ones of this process"),
    ],
)
def test_a_bad_option_is_one_line(outcomes: Outcomes, play: Callable[[Path], Outcome], says: str) -> None:
    outcome = outcomes(play)
    assert (outcome.code, outcome.left) == (2, [])
    (line,) = (line for line in outcome.output.splitlines() if line.startswith("swarmlet: "))
    assert line.removeprefix("swarmlet: ").startswith(says)
    assert "Traceback" not in outcome.output
    assert not outcome.record.exists()
